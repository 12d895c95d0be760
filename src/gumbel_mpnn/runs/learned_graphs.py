"""Learned graphs of runs: stored in their folders, or computed by the trained models."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring.changes import Changes, changes
from gumbel_mpnn.rewiring.rewirer import as_data
from gumbel_mpnn.runs.graph_file import Learned
from gumbel_mpnn.runs.pair_measures import PairMeasures, measure_pairs
from gumbel_mpnn.runs.record import Record
from gumbel_mpnn.runs.trained import check_structure, graph_of_user, models_of, task_of
from gumbel_mpnn.training import prepare
from gumbel_mpnn.training.build import pair_probability
from gumbel_mpnn.util.errors import DataError, UserError

if TYPE_CHECKING:
    from gumbel_mpnn.runs.run import Run


def mean_graph(run: Run, data: Data | None, threshold: float) -> Data:
    """Learned graph averaged over all runs; `Run.rewire` describes it."""
    given = _training_graph(run) if data is None else graph_of_user(data)
    if run.settings.rewiring is None:
        check_structure(given, run)
        rewired = prepare(given, run.settings)
        if rewired.edge_index is not given.edge_index:  # by SDRF
            if rewired.get("x") is not given.get("x"):  # positions among communities
                rewired = copy.copy(rewired)
                rewired.x = given.x
            return rewired
        if run.choice is None:
            raise UserError(f"model {run.settings.model!r} does not rewire the graph")
    here = copy.copy(given).cpu()
    learned = _learned(run, here, run.records) if data is None else _computed(run, here, run.records)
    return as_data(learned.graph, learned.mean, here, threshold).to(given.edge_index.device)


def graph_of_each(run: Run, records: Sequence[Record], threshold: float) -> Iterator[Data]:
    """Learned graph of each run; `Run.graphs` describes it."""
    if run.settings.rewiring is None:
        yield from [mean_graph(run, None, threshold)] * len(records)
        return
    given = _training_graph(run)
    here = copy.copy(given).cpu()
    learned = _learned(run, here, records)
    for probability in learned.probability:
        yield as_data(learned.graph, probability, here, threshold).to(given.edge_index.device)


def changes_of(run: Run, threshold: float) -> Changes:
    """What the learned graph, averaged over all runs, changed; nothing if `auto` chose a plain model."""
    if run.settings.rewiring is None and run.choice is None:
        raise UserError(f"model {run.settings.model!r} has no edge probabilities, so there are no changes to list")
    given = _training_graph(run)
    learned = _learned(run, copy.copy(given).cpu(), run.records)
    return changes(learned.graph, learned.mean, threshold, given.get("node_ids"))


def pair_measures_of(run: Run, threshold: float) -> PairMeasures:
    """Homophily of the given and the learned graphs by kind of pairs; `Run.measure_pairs` describes it."""
    if run.settings.rewiring is None:
        raise UserError(f"model {run.settings.model!r} learns no graph, so there is nothing to compare")
    learned = _learned(run, copy.copy(run.data).cpu(), run.records)
    return measure_pairs(learned, run.data, [record.split for record in run.records], threshold)


def _training_graph(run: Run) -> Data:
    """The training graph or, if its data cannot be read again, the given pairs of a stored learned graph alone."""
    try:
        return run.data
    except DataError:
        stored = run.folder.learned(record.replica for record in run.records)
        if stored is None:
            raise
    bare = Data(edge_index=stored.graph.pair_index[:, stored.graph.is_original], num_nodes=stored.graph.num_nodes)
    if stored.node_ids is not None:
        bare.node_ids = stored.node_ids
    return bare


def _learned(run: Run, data: Data, records: Sequence[Record]) -> Learned:
    """Probabilities of the pairs of the training graph, from files or, if some are missing, from the models."""
    stored = run.folder.learned(record.replica for record in records)
    return _computed(run, data, records) if stored is None else stored


def _computed(run: Run, data: Data, records: Sequence[Record]) -> Learned:
    """Probabilities of the pairs of a graph by each trained model; 1 for all edges if the model is a plain one."""
    if run.settings.rewiring is None:
        graph = PairGraph.of(data, undirected=run.settings.data.undirected, candidates=False)
        return Learned(graph, torch.ones(1, graph.num_pairs))
    task = task_of(run, data)
    learned = (pair_probability(model, task, run.settings) for model in models_of(run, task, records))
    return Learned(task.graph, torch.stack([each[0] for each in learned if each is not None]))
