"""What trained models say of a graph, their own or another one: class probabilities, tables of them, learned graphs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from gumbel_mpnn.data.check import IDENTITY, as_tensors, check_label_form, warn_of_ignored
from gumbel_mpnn.data.columns import FeatureColumn
from gumbel_mpnn.data.splits import MASKS, by_split
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.graph.pairs import can_be_taken_apart
from gumbel_mpnn.nn import TrainableModel
from gumbel_mpnn.nn.layers import check_finite
from gumbel_mpnn.rewiring.learned_graph import Changes, as_data, changes
from gumbel_mpnn.runs.store import FACTS, Learned, Record
from gumbel_mpnn.training import Task, build_model, data_hash, pick_device, prepare
from gumbel_mpnn.training.build import STRUCTURE, WITH_STRUCTURE, class_scores, pair_probability
from gumbel_mpnn.training.metrics import NEED_TWO_CLASSES, metrics
from gumbel_mpnn.training.task import num_classes
from gumbel_mpnn.util.errors import DataError, UserError, counted, unreadable
from gumbel_mpnn.util.files import read_json

if TYPE_CHECKING:
    import pandas as pd

    from gumbel_mpnn.runs.run import Run

READ_ALIKE = "read it with features=run.feature_columns"
"""What to do about a graph with other features."""


@dataclass(frozen=True)
class DataFacts:
    """What a trained model must know about its training data to be applied to other graphs."""

    num_features: int
    num_classes: int
    class_names: tuple[Any, ...] | None = None
    identity: bool = False
    """Whether the graph had no features, so that the model knows its nodes only."""
    feature_columns: tuple[FeatureColumn, ...] | None = None
    """Columns of the file of nodes that became features, if the graph was read from one."""
    source_files: dict[str, Any] | None = None
    """Arguments with which the files of the user can be read again; None for a batch, which is several graphs."""

    @classmethod
    def of(cls, data: Data) -> DataFacts:
        """Facts of a graph with features and labels."""
        names, columns, files = data.get("class_names"), data.get("feature_columns"), data.get("source_files")
        return cls(
            num_features=int(data.x.shape[1]),
            num_classes=num_classes(data),
            class_names=None if names is None else tuple(names),
            identity=bool(data.get(IDENTITY)),
            feature_columns=None if columns is None else tuple(columns),
            source_files=files if isinstance(files, dict) and files and not isinstance(data, Batch) else None,
        )

    @classmethod
    def read(cls, folder: Path) -> DataFacts | None:
        """Read the facts from the folder of a setting; None if there are none."""
        try:
            values = read_json((folder / FACTS).read_bytes())
            names, columns = values.pop("class_names"), values.pop("feature_columns")
            return cls(
                **values,
                class_names=None if names is None else tuple(names),
                feature_columns=None if columns is None else tuple(map(FeatureColumn.from_dict, columns)),
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise unreadable(str(folder / FACTS), error, "delete it and repeat the training command") from None

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values."""
        names = [name if isinstance(name, str | int | float) else str(name) for name in self.class_names or ()]
        return {**asdict(self), "class_names": None if self.class_names is None else names}


class TrainingData:
    """The training data of runs, read when they are first needed, and facts about them.

    `data` may be a function that reads them or raises a `DataError` that says what is missing.
    """

    def __init__(self, data: Data | Callable[[], Data], facts: DataFacts | None = None) -> None:
        self._data, self._facts = data, facts

    @cached_property
    def data(self) -> Data:
        """The data."""
        return self._data if isinstance(self._data, Data) else self._data()

    @cached_property
    def facts(self) -> DataFacts:
        """Facts about the data."""
        return DataFacts.of(self.data) if self._facts is None else self._facts


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
        _check_structure(given, run)
    if given.get("x") is not None and given.num_features != facts.num_features:
        hint = f": {READ_ALIKE}" if facts.feature_columns else ""
        raise UserError(
            f"the runs were trained on {facts.num_features} features, but this graph has {given.num_features}{hint}"
        )
    prepared = prepare(given, run.settings)
    if data is not None and not labelled:
        warn_of_ignored(given, run.settings.data.undirected)
        nodes = given.num_nodes
        masks = dict.fromkeys(MASKS, torch.zeros(nodes, dtype=torch.bool))
        prepared = copy.copy(prepared).update({**masks, "y": torch.full((nodes,), -1), "metric": None})
    task = Task.of(prepared, run.settings, device)
    return replace(task, num_classes=facts.num_classes)


def _check_structure(given: Data, run: Run) -> None:
    """Raise a `UserError` if models that know positions in the training graph are applied to another graph."""
    kind = run.settings.data.features
    if kind in (STRUCTURE, WITH_STRUCTURE) and data_hash(given) != run.records[0].data_hash:
        raise UserError(
            f"these runs use positions in the graph that they were trained on (data.features={kind}), so they cannot be"
            " applied to another graph: use the training graph as it was, or train with another value of data.features"
        )


def models_of(run: Run, task: Task, records: Sequence[Record]) -> Iterator[TrainableModel]:
    """Load the trained models one at a time, in evaluation mode."""
    for record in records:
        model = build_model(run.settings, task, [record.replica])
        model.load_state_dict(run.folder.state(record.replica))
        check_finite(model)
        yield model.eval()


def mean_probability(run: Run, data: Data | None) -> Tensor:
    """Class probabilities averaged over all runs, [N, C]."""
    return _probability_of_each(run, task_of(run, data)).mean(0)


def probabilities(run: Run) -> tuple[Tensor, Tensor]:
    """Class probabilities of the training graph, averaged over all runs and over those that did not see the node.

    Both are [N, C]. The latter runs neither trained nor validated on the node; NaN for nodes that every run used.
    """
    task = task_of(run)
    each, masks = _probability_of_each(run, task), [task.masks([record.replica]) for record in run.records]
    used = torch.stack([(train | val)[0] for train, val, _ in masks])
    return each.mean(0), each.masked_fill(used[..., None], torch.nan).nanmean(0)


def _probability_of_each(run: Run, task: Task) -> Tensor:
    """Class probabilities by each run, [R, N, C]."""
    return torch.stack([scores[0].softmax(-1) for scores in _scores(run, task, run.records)])


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
    tested = [task.masks([record.replica])[2] for record in records]
    each = zip(_scores(run, task, records), tested, strict=True)
    return [float(metrics[task.metric](scores, task.y, mask)[0]) for scores, mask in each]


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
    if columns is None or facts.feature_columns is None:
        return
    for trained, found in zip_longest(facts.feature_columns, columns):
        if trained != found:
            what = f"{_in_words(trained)} where this graph has {_in_words(found)}"
            raise UserError(f"the runs were trained on {what}: {READ_ALIKE}")


def _in_words(column: FeatureColumn | None) -> str:
    if column is None:
        return "no column"
    values = "" if column.categories is None else f" with the values {', '.join(map(repr, column.categories))}"
    return f"the column {column.name!r}{values}"


def prediction_table(run: Run) -> pd.DataFrame:
    """Predictions of the nodes of the training graph; `Run.predictions` describes the columns."""
    import pandas as pd

    data, known = run.data, run.data.y >= 0
    columns: dict[str, Any] = {"node": _nodes(data)}
    columns["label"] = _classes(known, run.named(data.y.clamp(min=0)))
    splits = sorted({record.split for record in run.records})
    for heading, name in (("trained", "train_mask"), ("validated", "val_mask"), ("tested", "test_mask")):
        columns[heading] = _splits_of(data.get(name), splits, len(data.y))
    average, unseen = probabilities(run)
    best, of_each = _columns(run, "out_of_fold", "out_of_fold_probability", "out_of_fold", unseen)
    best_average, of_each_average = _columns(run, "average", "average_probability", "average", average)
    return pd.DataFrame(columns | best | best_average | of_each | of_each_average)


def predictions_of(run: Run, data: Data, probability: Tensor | None = None, labelled: bool = False) -> pd.DataFrame:
    """Predictions of the nodes of another graph: class, its probability, that of every class and, on request, labels.

    `probability` is what `run.predict_proba(data)` returns, if it was called before.
    """
    import pandas as pd

    probability = run.predict_proba(data) if probability is None else probability
    columns: dict[str, Any] = {"node": _nodes(data)}
    if labelled:
        names = data.get("class_names") or range(int(data.y.max()) + 1)
        labels = [names[number] if number >= 0 else None for number in data.y.tolist()]
        columns["label"] = pd.Series(labels, dtype=object)
    best, of_each = _columns(run, "prediction", "probability", "probability", probability)
    return pd.DataFrame(columns | best | of_each)


def score_on(run: Run, data: Data, probability: Tensor) -> str:
    """Return a sentence with the metric of the runs on the labelled nodes of another graph.

    Classes are those of the runs that are written in the same way. Labels that the runs do not know count as wrong, and
    are left out of metrics that rank the nodes.
    """
    classes, ranks = probability.shape[1], run.metric in NEED_TWO_CLASSES
    names = data.get("class_names") or range(int(data.y.max()) + 1)
    number_of = {str(name): number for number, name in enumerate(run.named(torch.arange(classes)))}
    y = torch.tensor([number_of.get(str(name), classes) for name in names] + [-1])[data.y]
    unknown = y == classes  # one more class, which is never predicted
    y = y.masked_fill(unknown, -1) if ranks else y
    if unknown.any() and not ranks:
        probability = torch.cat([probability, torch.zeros(len(y), 1)], dim=1)
    value = float(metrics[run.metric](probability.log()[None], y, y[None] >= 0)[0])
    figure = "is not defined" if value != value else f"{100 * value:.2f} %"
    nodes = counted(int((y >= 0).sum()), "labelled node")
    text = f"{run.metric} {figure} on {nodes}; nodes that were trained on count too"
    if not unknown.any():
        return text
    verb = f"{'is' if unknown.sum() == 1 else 'are'} {'left out' if ranks else 'counted as wrong'}"
    first = str(names[int(data.y[unknown][0])])
    return f"{text}; {counted(int(unknown.sum()), 'label')} that the runs do not know, such as {first!r}, {verb}"


def _nodes(data: Data) -> list[Any]:
    ids = data.get("node_ids")
    return list(range(int(data.num_nodes or 0))) if ids is None else list(ids)


def _splits_of(mask: Tensor | None, splits: Sequence[int], num_nodes: int) -> list[str]:
    """The splits of each node whose mask has it, separated by blanks."""
    if mask is None:
        return [""] * num_nodes
    columns = by_split(mask)[:, list(splits)].tolist()
    return [" ".join(str(split) for split, used in zip(splits, row, strict=True) if used) for row in columns]


def _columns(run: Run, name: str, probability_name: str, kind: str, probability: Tensor) -> list[dict[str, Any]]:
    """Columns of the most probable class of every node and its probability, and columns of every class.

    The former are empty for nodes without a prediction.
    """
    known = ~probability[:, 0].isnan()
    highest, classes = probability.nan_to_num().max(-1)
    best = {name: _classes(known, run.named(classes)), probability_name: highest.where(known, torch.nan).tolist()}
    of_each = probability.T.tolist()
    # There may be more names than classes: models do not know the last classes if no node has them.
    names = run.trained_on.facts.class_names or range(len(of_each))
    return [best, {f"{kind}[{name}]": column for name, column in zip(names, of_each, strict=False)}]


def _classes(known: Tensor, names: Sequence[Any]) -> pd.Series[Any]:
    """The names of classes, None where they are not known."""
    import pandas as pd

    named = [name if is_known else None for is_known, name in zip(known.tolist(), names, strict=True)]
    return pd.Series(named, dtype=object)  # numbers stay integers


def mean_graph(run: Run, data: Data | None, threshold: float) -> Data:
    """Learned graph averaged over all runs; `Run.rewire` describes it. A batch is rewired graph by graph."""
    whole = _training_graph(run) if data is None else data
    if isinstance(whole, Batch) and can_be_taken_apart(whole):
        return Batch.from_data_list([mean_graph(run, each, threshold) for each in whole.to_data_list()])
    given = graph_of_user(whole)
    if run.settings.rewiring is None:
        _check_structure(given, run)
        rewired = prepare(given, run.settings)
        if rewired.edge_index is not given.edge_index:  # by SDRF
            if rewired.get("x") is not given.get("x"):  # positions among communities
                rewired = copy.copy(rewired)
                rewired.x = given.x
            return rewired
        if run.choice is None:
            raise UserError(f"model {run.settings.model!r} does not rewire the graph")
    learned = learned_by(run, run.records) if data is None else _computed(run, copy.copy(given).cpu())
    return as_data(learned.graph, learned.mean, copy.copy(given).cpu(), threshold).to(given.edge_index.device)


def graph_of_each(run: Run, records: Sequence[Record], threshold: float) -> Iterator[Data]:
    """Learned graph of each run; `Run.graphs` describes it."""
    if run.settings.rewiring is None:
        yield from [mean_graph(run, None, threshold)] * len(records)
    else:
        yield from (mean_graph(replace(run, records=(record,)), None, threshold) for record in records)


def changes_of(run: Run, threshold: float) -> Changes:
    """What the learned graph, averaged over all runs, changed; nothing if `auto` chose a plain model."""
    if run.settings.rewiring is None and run.choice is None:
        raise UserError(f"model {run.settings.model!r} has no edge probabilities, so there are no changes to list")
    learned = learned_by(run, run.records)
    return changes(learned.graph, learned.mean, threshold, _training_graph(run).get("node_ids"))


def learned_by(run: Run, records: Sequence[Record]) -> Learned:
    """Probabilities of the pairs of the training graph, as training stored them; 1 for all edges of a plain model."""
    if run.settings.rewiring is None:
        return _computed(run, copy.copy(run.data).cpu())
    return run.folder.learned([record.replica for record in records])


def _computed(run: Run, data: Data) -> Learned:
    """Probabilities of the pairs of a graph by each trained model; 1 for all edges if the model is a plain one."""
    if run.settings.rewiring is None:
        graph = PairGraph.of(data, undirected=run.settings.data.undirected, candidates=False)
        return Learned(graph, torch.ones(1, graph.num_pairs))
    task = task_of(run, data)
    found = (pair_probability(model, task, run.settings) for model in models_of(run, task, run.records))
    return Learned(task.graph, torch.stack([each[0] for each in found if each is not None]))


def _training_graph(run: Run) -> Data:
    """The training graph or, if its data cannot be read again, the given pairs of the stored learned graph alone."""
    try:
        return run.data
    except DataError:
        if run.settings.rewiring is None:
            raise
    stored = learned_by(run, run.records)
    bare = Data(edge_index=stored.graph.pair_index[:, stored.graph.is_original], num_nodes=stored.graph.num_nodes)
    return bare if stored.node_ids is None else bare.update({"node_ids": stored.node_ids})
