"""Metrics for all replicas at once, on the device of the logits and with fixed shapes, as CUDA graphs need them.

Each takes logits [R, N, C], classes [N] and a mask for every replica [R, N], and returns float64 [R]: NaN where the
metric is not defined, for example without a node in the mask. Ties are handled as in scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.data.splits import by_split, class_name
from gumbel_mpnn.nn.replica import total
from gumbel_mpnn.settings import DataSettings
from gumbel_mpnn.util.errors import DataError, DataWarning, unknown_name

Metric = Callable[[Tensor, Tensor, Tensor], Tensor]


def accuracy(logits: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Share of the nodes in each mask that are classified correctly: [R, N, C], [N], [R, N] → float64 [R]."""
    correct = (logits.argmax(-1) == y) & mask
    return correct.sum(-1).double() / mask.sum(-1)


def balanced_accuracy(logits: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Mean over the classes of the share of their nodes that are classified correctly: → float64 [R].

    Classes without a node in the mask are left out, as in scikit-learn's `balanced_accuracy_score`.
    """
    counts = _confusion(logits, y, mask)
    correct, of_class = counts.diagonal(dim1=1, dim2=2), counts.sum(2)
    return _mean_where(of_class > 0, correct / of_class)


def macro_f1(logits: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Mean over the classes of their F1 score: → float64 [R].

    As in scikit-learn's `f1_score(average="macro")`, classes that neither occur nor are predicted in the mask are left
    out, and a class that is predicted but has no node there counts 0.
    """
    counts = _confusion(logits, y, mask)
    correct, either = counts.diagonal(dim1=1, dim2=2), counts.sum(2) + counts.sum(1)
    return _mean_where(either > 0, 2 * correct / either)


def roc_auc(logits: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Probability that a node of class 1 scores above one of class 0, ties counted half: → float64 [R].

    With more than two classes, it is the mean over the classes of the same for the softmax probability of the class,
    its nodes against all others, as scikit-learn's `roc_auc_score(multi_class="ovr", average="macro")`. Classes without
    a node in the mask, which scikit-learn refuses, are left out.
    """
    return _of_classes(_area_under_roc, logits, y, mask)


def average_precision(logits: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Mean over the nodes of class 1 of the precision among the nodes that score at least as high: → float64 [R].

    This is scikit-learn's `average_precision_score`. With more than two classes, it is the mean over the classes of the
    same for the softmax probability of the class. Classes without a node in the mask are left out. With two classes, it
    is not defined (NaN) if class 1 has no node in the mask; scikit-learn warns and returns 0.
    """
    return _of_classes(_average_precision, logits, y, mask)


metrics: dict[str, Metric] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "macro_f1": macro_f1,
    "roc_auc": roc_auc,
    "average_precision": average_precision,
}
NEED_TWO_CLASSES = ("roc_auc", "average_precision")
"""Metrics that say nothing about nodes that are all of one class."""


def metric_of(data: Data, settings: DataSettings) -> str:
    """Name of the metric of runs on `data`: that of the settings, else that of the data, else `accuracy`."""
    name = settings.metric or (data.get("metric") or "accuracy")
    if not isinstance(name, str):
        raise DataError(f"data.metric must be the name of one metric, as 'accuracy', not {name!r}")
    check_name(name)
    return name


def check_name(name: str) -> None:
    """Raise an `UnknownNameError` unless there is a metric called `name`."""
    if name not in metrics:
        raise unknown_name("metric", name, metrics)


def check_metric(name: str, data: Data, splits: Iterable[int]) -> None:
    """Raise a `DataError` if a metric is not defined on the validation nodes of one of these splits.

    Warn if it is not defined on test nodes. Splits without validation or test nodes are not looked at.
    """
    if name not in NEED_TWO_CLASSES:
        return
    remedy = "set data.metric to another one, or use other splits"
    for split in splits:
        for part, masks in (("validation", data.val_mask), ("test", data.test_mask)):
            found = data.y.cpu()[by_split(masks.cpu())[:, split]].unique().tolist()
            if len(found) != 1:
                continue
            problem = (
                f"the metric {name} cannot be computed on the {part} nodes of split {split}, which are all of class"
                f" {class_name(data, found[0])}"
            )
            if part == "validation":
                raise DataError(f"{problem}: {remedy}")
            warnings.warn(f"{problem}, so that its runs have no test result: {remedy}", DataWarning, stacklevel=3)


def _confusion(logits: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Number of nodes in each mask by class and predicted class, float64 [R, C, C], which is exact in any order."""
    classes = logits.shape[-1]
    cell = y.clamp(min=0) * classes + logits.argmax(-1)
    counts = torch.zeros(len(logits), classes * classes, dtype=torch.float64, device=logits.device)
    return counts.scatter_add_(1, cell, mask.double()).view(-1, classes, classes)


def _of_classes(area: Metric, logits: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """The value of class 1 if there are two classes, else the mean of those classes for which it is defined."""
    if logits.shape[-1] == 2:
        return area((logits[..., 1] - logits[..., 0]).double(), mask & (y == 1), mask & (y == 0))
    probability = logits.double().softmax(-1).movedim(-1, 0).contiguous()
    each = [area(score, mask & (y == c), mask & (y != c)) for c, score in enumerate(probability)]
    values = torch.stack(each, dim=-1)
    return _mean_where(~values.isnan(), values)


def _area_under_roc(score: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Share of the pairs of a positive and a negative in which the positive scores higher, [R]; ties count half."""
    # Sorted scores of the negatives of each replica; all other nodes are at infinity.
    ranked = score.masked_fill(~negative, torch.inf).sort(-1).values
    below = torch.searchsorted(ranked, score) + torch.searchsorted(ranked, score, right=True)
    wins = (below * positive).sum(-1).double() / 2
    return wins / (positive.sum(-1) * negative.sum(-1))


def _average_precision(score: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Mean over the positives of the share of positives among the nodes that score at least as high, [R]."""
    hits, others = _as_high(score, positive), _as_high(score, negative)
    precision = torch.where(positive, hits / (hits + others), 0.0)
    return total(precision) / positive.sum(-1)


def _as_high(score: Tensor, chosen: Tensor) -> Tensor:
    """Number of chosen nodes whose score is that of each node or higher, float64 [R, N]."""
    ranked = score.masked_fill(~chosen, torch.inf).sort(-1).values
    return (chosen.sum(-1, keepdim=True) - torch.searchsorted(ranked, score)).double()


def _mean_where(defined: Tensor, values: Tensor) -> Tensor:
    """Mean of the values [R, C] that are defined; NaN if none is."""
    return torch.where(defined, values, 0.0).sum(-1) / defined.sum(-1)
