"""Learned graphs of runs, stored in their folders or computed by the trained models, and what they changed.

A stored graph has all pairs of nodes that the run knew, each with its probability to be an edge.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures.homophily import PAIRS, PairValues, training_pairs
from gumbel_mpnn.rewiring.learned_graph import Changes, as_data, changes
from gumbel_mpnn.runs.predict import check_structure, graph_of_user, models_of, task_of
from gumbel_mpnn.runs.records import Record, Summary
from gumbel_mpnn.training import prepare
from gumbel_mpnn.training.build import pair_probability
from gumbel_mpnn.training.checkpoint import load_tensors, save_tensors
from gumbel_mpnn.util.errors import DataError, UserError

if TYPE_CHECKING:
    from gumbel_mpnn.runs.run import Run

GRAPH = "graph.safetensors"
"""Name of the file in the folder of a run."""
REMEDY = "delete its folder to do the run again"
HOMOPHILY = "edge_homophily"


@dataclass(frozen=True)
class Learned:
    """The learned graphs of runs, which have the same pairs."""

    graph: PairGraph
    probability: Tensor
    """Probability of every pair in each run, [R, P]."""
    node_ids: list[str] | None = None

    @property
    def mean(self) -> Tensor:
        """Mean probability of every pair over the runs, [P]."""
        return self.probability.mean(0)


def write_learned(path: Path, graph: PairGraph, probability: Tensor, node_ids: Sequence[str] | None) -> None:
    """Write the learned graph of a run."""
    tensors = {
        "pairs": graph.pair_index.int(),
        "probability": probability,
        "is_original": graph.is_original,
        **({} if graph.pair_weight is None else {"given_weight": graph.pair_weight.float()}),
    }
    ids = None if node_ids is None else [str(name) for name in node_ids]
    save_tensors(path, tensors, {"num_nodes": graph.num_nodes, "undirected": graph.undirected, "node_ids": ids})


def read_learned(files: Sequence[Path]) -> Learned:
    """Read the learned graphs of runs on the same graph."""
    first, about = load_tensors(files[0], REMEDY)
    probability = torch.empty(len(files), first["pairs"].shape[1])
    for row, file in enumerate(files):
        tensors, _ = load_tensors(file, REMEDY)
        probability[row] = tensors.pop("probability")
        if any(name not in first or not torch.equal(first[name], value) for name, value in tensors.items()):
            folder = Path(os.path.commonpath(files))
            raise DataError(f"the runs under {folder} are of different graphs: give the folder of one of them")
    pairs, given = first["pairs"].long(), first["is_original"]
    graph = PairGraph.build(
        pairs[:, given], about["num_nodes"], undirected=about["undirected"], candidate_index=pairs[:, ~given]
    )
    if "given_weight" in first:  # pairs are sorted in the file as in the graph
        graph = replace(graph, pair_weight=first["given_weight"])
    return Learned(graph, probability, about["node_ids"])


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


@dataclass(frozen=True)
class PairKind:
    """Measures of one kind of pairs, each the mean over the runs in which it is defined."""

    before: PairValues
    after: PairValues
    change: Summary | None
    """How much edge homophily rises from the given to the learned graph; None if it is not defined in any run."""

    @property
    def rises(self) -> bool:
        """Whether edge homophily rises by more than its standard deviation over the runs."""
        return self.change is not None and self.change.mean > self.change.std


@dataclass(frozen=True)
class PairMeasures:
    """Measures before and after rewiring, by the number of training nodes in a pair."""

    kinds: Mapping[str, PairKind]
    """`train_train`, `train_other` and `other_other`."""
    runs: int

    @property
    def overfits(self) -> bool:
        """Whether homophily rises among training nodes and not among the other nodes."""
        other = self.kinds["other_other"]
        return self.kinds["train_train"].rises and other.change is not None and not other.rises

    def sentence(self) -> str:
        """One sentence for the user if the learned graph overfits; empty otherwise."""
        inside, outside = (self.kinds[kind].change for kind in ("train_train", "other_other"))
        if not self.overfits or inside is None or outside is None:
            return ""
        return (
            f"edge homophily changes by {inside.mean:+.3f} among training nodes but by {outside.mean:+.3f} among other"
            " nodes: the improvement is on training nodes alone, that is overfitting"
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values; `homophily_change` is the mean over the runs, with its spread."""
        kinds = {
            name: {
                "before": kind.before,
                "after": kind.after,
                "homophily_change": None if kind.change is None else kind.change.to_dict(),
            }
            for name, kind in self.kinds.items()
        }
        return {**kinds, "runs": self.runs, "overfits": self.overfits}


def pair_measures(run: Run, threshold: float) -> PairMeasures:
    """Homophily of the given and the learned graphs by kind of pairs; `Run.measure_pairs` describes it."""
    if run.settings.rewiring is None:
        raise UserError(f"model {run.settings.model!r} learns no graph, so there is nothing to compare")
    data = copy.copy(run.data).cpu()
    return measure_pairs(_learned(run, data, run.records), data, [record.split for record in run.records], threshold)


def measure_pairs(learned: Learned, data: Data, splits: Sequence[int], threshold: float = 0.5) -> PairMeasures:
    """Measure the graph of every run with its own split, and average over the runs.

    `data` is the training graph, with masks [N] or [N, S]. Pairs of a smaller probability in a run than `threshold` are
    left out.
    """
    masks, nodes = by_split(data.train_mask), Data(y=data.y, num_nodes=data.num_nodes)
    given = Data(edge_index=learned.graph.pair_index[:, learned.graph.is_original], y=data.y, num_nodes=data.num_nodes)
    of_split = {split: training_pairs(given, masks[:, split]) for split in set(splits)}
    before = [of_split[split] for split in splits]
    after = [
        training_pairs(as_data(learned.graph, probability, nodes, threshold), masks[:, split])
        for probability, split in zip(learned.probability, splits, strict=True)
    ]
    kinds = {kind: _kind([values[kind] for values in before], [values[kind] for values in after]) for kind in PAIRS}
    return PairMeasures(kinds, len(splits))


def _kind(before: Sequence[PairValues], after: Sequence[PairValues]) -> PairKind:
    pairs = [(old[HOMOPHILY], new[HOMOPHILY]) for old, new in zip(before, after, strict=True)]
    rises = [new - old for old, new in pairs if old is not None and new is not None]
    return PairKind(_means(before), _means(after), Summary.of(rises) if rises else None)


def _means(runs: Sequence[PairValues]) -> PairValues:
    """Mean of every measure over the runs in which it is defined."""
    defined = {name: [value for of in runs if (value := of[name]) is not None] for name in runs[0]}
    return {name: math.fsum(values) / len(values) if values else None for name, values in defined.items()}
