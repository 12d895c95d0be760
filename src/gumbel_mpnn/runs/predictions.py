"""Tables of predictions: of the training graph, with the splits that used each node, and of other graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.training.metrics import NEED_TWO_CLASSES, metrics
from gumbel_mpnn.util.errors import counted

if TYPE_CHECKING:
    import pandas as pd

    from gumbel_mpnn.runs.run import Run


def prediction_table(run: Run) -> pd.DataFrame:
    """Predictions of the nodes of the training graph; `Run.predictions` describes the columns."""
    import pandas as pd

    data = run.data
    columns: dict[str, Any] = {"node": _nodes(data)}
    known = data.y >= 0
    columns["label"] = _classes(known, run.named(data.y.clamp(min=0)))
    splits = sorted({record.split for record in run.records})
    for heading, name in (("trained", "train_mask"), ("validated", "val_mask"), ("tested", "test_mask")):
        columns[heading] = _splits_of(data.get(name), splits, len(data.y))
    kinds = {"out_of_fold": run.predict_proba(out_of_fold=True), "average": run.predict_proba()}
    for kind, probability in kinds.items():
        columns |= _most_probable(run, kind, f"{kind}_probability", probability)
    for kind, probability in kinds.items():
        columns |= _of_each_class(run, kind, probability)
    return pd.DataFrame(columns)


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
    columns |= _most_probable(run, "prediction", "probability", probability)
    return pd.DataFrame(columns | _of_each_class(run, "probability", probability))


def score_on(run: Run, data: Data, probability: Tensor) -> str:
    """Return a sentence with the metric of the runs on the labelled nodes of another graph.

    Classes are those of the runs that are written in the same way. Labels that the runs do not know count as wrong, and
    are left out of metrics that rank the nodes.
    """
    classes = probability.shape[1]
    known = list(map(str, run.trained_on.facts.class_names or range(classes)))[:classes]
    number_of = {name: number for number, name in enumerate(known)}
    names = data.get("class_names") or range(int(data.y.max()) + 1)
    number = torch.tensor([number_of.get(str(name), classes) for name in names] + [classes])
    labelled, y = data.y >= 0, number[data.y]  # the last number is that of nodes without a label, which are at -1
    scores, unknown = probability.log(), labelled & (y == classes)
    ranks = run.metric in NEED_TWO_CLASSES
    if ranks:
        labelled = labelled & ~unknown
    elif unknown.any():  # one more class, which is never predicted
        scores = torch.cat([scores, torch.full_like(scores[:, :1], -torch.inf)], dim=1)
    value = float(metrics[run.metric](scores[None], y.where(labelled, -1), labelled[None])[0])
    count = counted(int(labelled.sum()), "labelled node")
    figure = "is not defined" if value != value else f"{100 * value:.2f} %"
    parts = [f"{run.metric} {figure} on {count}", "nodes that were trained on count too"]
    if other := int(unknown.sum()):
        first = names[int(data.y[unknown][0])]
        parts.append(
            f"{counted(other, 'label')} that the runs do not know, such as {str(first)!r},"
            f" {'is' if other == 1 else 'are'} {'left out' if ranks else 'counted as wrong'}"
        )
    return "; ".join(parts)


def _nodes(data: Data) -> list[Any]:
    ids = data.get("node_ids")
    return list(range(int(data.num_nodes or 0))) if ids is None else list(ids)


def _splits_of(mask: Tensor | None, splits: Sequence[int], num_nodes: int) -> list[str]:
    """The splits of each node whose mask has it, separated by blanks."""
    if mask is None:
        return [""] * num_nodes
    columns = by_split(mask)[:, list(splits)].tolist()
    return [" ".join(str(split) for split, used in zip(splits, row, strict=True) if used) for row in columns]


def _most_probable(run: Run, name: str, probability_name: str, probability: Tensor) -> dict[str, Any]:
    """The most probable class of every node and its probability; empty for nodes without a prediction."""
    known = ~probability[:, 0].isnan()
    highest, classes = probability.nan_to_num().max(-1)
    return {name: _classes(known, run.named(classes)), probability_name: highest.where(known, torch.nan).tolist()}


def _of_each_class(run: Run, kind: str, probability: Tensor) -> dict[str, Any]:
    columns = probability.T.tolist()
    names = run.trained_on.facts.class_names or range(len(columns))
    # There may be more names than classes: models do not know the last classes if no node has them.
    return {f"{kind}[{name}]": column for name, column in zip(names, columns, strict=False)}


def _classes(known: Tensor, names: Sequence[Any]) -> pd.Series[Any]:
    """The names of classes, None where they are not known."""
    import pandas as pd

    named = [name if is_known else None for is_known, name in zip(known.tolist(), names, strict=True)]
    return pd.Series(named, dtype=object)  # numbers stay integers
