"""Tables of predictions: of the training graph, with the splits that used each node, and of other graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.data.names import node_ids_of

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


def predictions_of(run: Run, data: Data) -> pd.DataFrame:
    """Predictions of the nodes of another graph: class, its probability, and that of every class."""
    import pandas as pd

    probability = run.predict_proba(data)
    columns: dict[str, Any] = {"node": _nodes(data)}
    columns |= _most_probable(run, "prediction", "probability", probability)
    return pd.DataFrame(columns | _of_each_class(run, "probability", probability))


def _nodes(data: Data) -> list[Any]:
    ids = node_ids_of(data)
    return list(range(int(data.num_nodes or 0))) if ids is None else list(ids)


def _splits_of(mask: Tensor | None, splits: Sequence[int], num_nodes: int) -> list[str]:
    """The splits of each node whose mask has it, separated by blanks."""
    if mask is None:
        return [""] * num_nodes
    columns = (mask[:, None] if mask.dim() == 1 else mask)[:, list(splits)].tolist()
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
