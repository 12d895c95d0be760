"""Trained models of runs, and what they say about the nodes of the training graph and of other graphs."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from gumbel_mpnn.data.check import as_tensors, check_label_form, warn_of_ignored
from gumbel_mpnn.data.columns import FeatureColumn
from gumbel_mpnn.nn import TrainableModel
from gumbel_mpnn.nn.model import check_finite
from gumbel_mpnn.runs.record import Record
from gumbel_mpnn.training import Task, build_model, metrics, pick_device, prepare
from gumbel_mpnn.training.build import STRUCTURE, WITH_STRUCTURE, class_scores
from gumbel_mpnn.training.task import num_classes
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError
from gumbel_mpnn.util.tensors import coalesced

if TYPE_CHECKING:
    from gumbel_mpnn.runs.run import Run
    from gumbel_mpnn.runs.training_data import DataFacts

READ_ALIKE = "read it with features=run.feature_columns"
"""What to do about a graph with other features."""


def graph_of_user(data: object) -> Data:
    """Return a graph whose arrays are tensors, or raise a `UserError` if `data` is not a graph."""
    if not isinstance(data, Data):
        what = f"the name {data!r}" if isinstance(data, str) else f"a {type(data).__name__}"
        raise UserError(f"this method needs a graph: give a Data, as returned by gm.load, not {what}")
    if isinstance(data, Batch):  # which has lists of the names of its graphs
        data = copy.copy(data).update(dict.fromkeys(("node_ids", "class_names", "feature_columns")))
    return as_tensors(data)


def task_of(run: Run, data: Data | None = None, device: torch.device | str = "cpu", labelled: bool = False) -> Task:
    """The training graph or another one, with its candidates, as the models of a run see it.

    Labels and masks of another graph are used only if it is `labelled`; predictions do not need them.
    """
    facts = run.trained_on.facts
    given = run.data if data is None else graph_of_user(data)
    if given.get("x") is None and facts.identity:
        raise UserError(
            "the runs were trained on a graph without features, so they know its nodes only and cannot be applied"
            " to another graph: call this method without a graph, or give a copy of run.data with other edges"
        )
    if not given.num_nodes:
        raise UserError("this graph has no nodes: give at least one")
    if data is not None:
        _check_columns(given, facts)
        check_structure(given, run)
    if given.get("x") is not None and given.num_features != facts.num_features:
        hint = f": {READ_ALIKE}" if facts.feature_columns else ""
        raise UserError(
            f"the runs were trained on {facts.num_features} features, but this graph has {given.num_features}{hint}"
        )
    prepared = prepare(given, run.settings)
    if data is not None and not labelled:
        _warn_of_other_edges(given, facts, run.settings.data.undirected)
        prepared = _without_labels(prepared)
    task = Task.for_model(prepared, run.settings, device)
    return replace(task, num_classes=facts.num_classes)


def check_structure(given: Data, run: Run) -> None:
    """Raise a `UserError` if models that know positions in the training graph are applied to another graph."""
    kind = run.settings.data.features
    if kind not in (STRUCTURE, WITH_STRUCTURE):
        return
    own = run.data  # which other runs need not have
    is_same = (
        given.get("y") is not None
        and given.num_nodes == own.num_nodes
        and num_classes(given) == num_classes(own)
        and torch.equal(given.edge_index.cpu(), own.edge_index.cpu())
        # Positions beside features are scaled as these are.
        and (kind == STRUCTURE or _is_equal(given.get("x"), own.x))
    )
    if not is_same:
        raise UserError(
            f"these runs use positions in the graph that they were trained on (data.features={kind}), so they cannot be"
            " applied to another graph: use the training graph as it was, or train with another value of data.features"
        )


def _is_equal(x: Tensor | None, other: Tensor) -> bool:
    if x is None or x.shape != other.shape:
        return False
    one, two = (coalesced(each.detach().cpu().float()) for each in (x, other))
    return torch.equal(one.indices(), two.indices()) and torch.equal(one.values(), two.values())


def models_of(run: Run, task: Task, records: Sequence[Record]) -> Iterator[TrainableModel]:
    """Load the trained models one at a time, in evaluation mode."""
    for record in records:
        model = build_model(run.settings, task, [record.replica])
        model.load_state_dict(run.folder.state(record.replica))
        check_finite(model)
        yield model.eval()


def mean_probability(run: Run, data: Data | None) -> Tensor:
    """Class probabilities averaged over all runs, [N, C]."""
    scores = _scores(run, task_of(run, data), run.records)
    return torch.stack([each[0].softmax(-1) for each in scores]).mean(0)


def unseen_probability(run: Run) -> Tensor:
    """Class probabilities averaged over the runs that neither trained nor validated on the node, [N, C].

    They are NaN for nodes that every run used.
    """
    task = task_of(run)
    total, count = task.y.new_zeros(len(task.y), task.num_classes, dtype=torch.float32), torch.zeros(len(task.y))
    for record, scores in zip(run.records, _scores(run, task, run.records), strict=True):
        train, val, _ = task.masks([record.replica])
        unseen = ~(train | val)[0]
        total[unseen] += scores[0].softmax(-1)[unseen]
        count += unseen
    return total / count[:, None]  # 0 / 0 is NaN


def scores_on(run: Run, data: Data, records: Sequence[Record], device: str) -> list[float]:
    """Test metric of every run on another graph; `Run.scores` describes the arguments."""
    data = graph_of_user(data)
    for name in ("y", "train_mask", "test_mask"):
        if data.get(name) is None:
            raise DataError(f"this graph has no {name}: give it the labels and masks of the training graph")
    check_label_form(data.y)
    task = task_of(run, data, pick_device(device), labelled=True)
    if any(record.split >= task.num_splits for record in records):
        raise DataError(f"this graph has masks for {task.num_splits} splits: give it all those of the training graph")
    found = []
    for record, scores in zip(records, _scores(run, task, records), strict=True):
        test_mask = task.masks([record.replica])[2]
        if not test_mask.any():
            raise DataError(f"split {record.split} of this graph has no test nodes: add some to its test_mask")
        found.append(float(metrics[task.metric](scores, task.y, test_mask)[0]))
    return found


def confusion_matrix(run: Run) -> Tensor:
    """Number of test nodes by class (row) and predicted class (column), added over all runs, int64 [C, C]."""
    task = task_of(run)
    count = torch.zeros(task.num_classes**2, dtype=torch.int64)
    for record, scores in zip(run.records, _scores(run, task, run.records), strict=True):
        test = task.masks([record.replica])[2][0]
        count += (task.y * task.num_classes + scores[0].argmax(-1))[test].bincount(minlength=len(count))
    return count.view(task.num_classes, task.num_classes)


def _scores(run: Run, task: Task, records: Sequence[Record]) -> Iterator[Tensor]:
    """Class scores of every node by each run, [1, N, C]."""
    for model in models_of(run, task, records):
        with torch.no_grad():
            scores = class_scores(model, task, run.settings)
        yield scores


def _check_columns(data: Data, facts: DataFacts) -> None:
    """Raise a `UserError` if the features of a graph come from other columns than those of training."""
    columns = data.get("feature_columns")
    if columns is None or facts.feature_columns is None or tuple(columns) == facts.feature_columns:
        return
    pairs = zip_longest(facts.feature_columns, columns)
    trained, found = next((one, other) for one, other in pairs if one != other)
    raise UserError(
        f"the runs were trained on {_in_words(trained)} where this graph has {_in_words(found)}: {READ_ALIKE}"
    )


def _in_words(column: FeatureColumn | None) -> str:
    if column is None:
        return "no column"
    values = "" if column.categories is None else f" with the values {', '.join(map(repr, column.categories))}"
    return f"the column {column.name!r}{values}"


def _warn_of_other_edges(data: Data, facts: DataFacts, undirected: bool) -> None:
    """Warn if only one of a graph and the training graph has edge weights, and of what models ignore."""
    weighted = data.get("edge_weight") is not None
    if facts.weighted is not None and weighted != facts.weighted:
        with_weights, without = ("this graph has", "the training graph had none")
        if not weighted:
            with_weights, without = ("the training graph had", "this graph has none")
        warnings.warn(
            f"{with_weights} edge weights, but {without}, where each edge counts as 1", DataWarning, stacklevel=4
        )
    warn_of_ignored(data, undirected)


def _without_labels(data: Data) -> Data:
    """Copy of a graph in which no node has a label and all masks are empty."""
    data = copy.copy(data)
    for name in ("metric",):
        if name in data:
            del data[name]
    nodes = int(data.num_nodes or 0)
    data.train_mask = data.val_mask = data.test_mask = torch.zeros(nodes, dtype=torch.bool)
    data.y = torch.full((nodes,), -1)
    return data
