"""Soft labels of nodes and neighborhoods, which regularizers are computed from.

The soft label ỹ of a training node is its one-hot label; that of any other node is the softmax prediction of the model,
or with `labels="one-hot"`, as in the paper, the one-hot vector of the predicted class, which has no gradient.
By default, predictions are detached, so that a penalty acts on the edges only, through their weights. Otherwise, a
penalty on disagreeing neighbors would smooth the predictions over a graph that is still being learned, or would be
minimized by predicting one class for all nodes. With `detach=False`, the penalty acts on the predictions as well, as in
label propagation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gumbel_mpnn._util.errors import unknown_name
from gumbel_mpnn.graph.weighted import NO_WEIGHT
from gumbel_mpnn.nn.each_replica import total
from gumbel_mpnn.rewiring.regularizers.base import Regularizer
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


class SoftLabelRegularizer(Regularizer):
    """A regularizer that uses soft labels; `LabelConsistency` describes its options."""

    uses_labels = True

    def __init__(self, weight: float = 1.0, *, detach: bool = True, labels: str = "soft") -> None:
        super().__init__(weight)
        self.detach = detach
        self.labels = checked_choice("labels", labels, ["soft", "one-hot"])

    def soft_labels(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """Soft label ỹ of every node, [R, N, C]."""
        dtype, one_hot = graph.weight.dtype, self.labels == "one-hot"
        return soft_labels(logits, y, train_mask, dtype, detach=self.detach, one_hot=one_hot)


def checked_choice(option: str, value: str, known: Sequence[str]) -> str:
    """Return `value` if it is one of `known`, else raise a `UserError`."""
    if value not in known:
        raise unknown_name(f"value of the option {option!r}", value, known)
    return value


def soft_labels(
    logits: Tensor,
    y: Tensor,
    train_mask: Tensor,
    dtype: torch.dtype,
    *,
    detach: bool = True,
    one_hot: bool = False,
) -> Tensor:
    """Soft labels ỹ, [R, N, C]: labels of training nodes and predictions of all other nodes."""
    logits = logits.detach() if detach else logits
    classes = torch.arange(logits.shape[-1], device=y.device)
    labels = y[:, None] == classes  # one_hot does not accept the -1 of unlabelled nodes
    predicted = (logits.argmax(-1, keepdim=True) == classes).to(dtype) if one_hot else logits.softmax(-1, dtype=dtype)
    return torch.where(train_mask[..., None], labels.to(dtype), predicted)


def confidence(logits: Tensor, train_mask: Tensor, dtype: torch.dtype, *, detach: bool = True) -> Tensor:
    """Confidence 1 − H(ỹ) / log C, [R, N]: 1 for training nodes, 0 if all classes are equally likely."""
    logits = logits.detach() if detach else logits
    log_predicted = logits.log_softmax(-1, dtype=dtype)
    entropy = -(log_predicted.exp() * log_predicted).sum(-1)  # a probability may underflow to 0, its logarithm does not
    share = entropy / math.log(max(logits.shape[-1], 2))
    return (1 - share).masked_fill(train_mask, 1.0)


def neighborhood_labels(labels: Tensor, graph: RewiredGraph) -> Tensor:
    """p̃, [R, N, C]: weighted mean of the soft labels of a node's neighbors and itself."""
    neighbors = graph.graph.propagate(labels, graph.weight)
    return (labels + neighbors) / (1 + weighted_degree(graph))[..., None]


def weighted_degree(graph: RewiredGraph) -> Tensor:
    """Sum of the weights of a node's (incoming) edges, as in the layers of a backbone, [R, N]."""
    degree = graph.graph.degree(graph.weight, graph.weight.dtype)
    return degree.expand(graph.weight.shape[0], -1)  # a graph without pairs has one row for all replicas


def disagreement(labels: Tensor, graph: RewiredGraph) -> Tensor:
    """Weighted mean of 1 − y_i · y_j over edges, [R], for soft labels [R, N, C]; 0 if there are no edges."""
    weight = graph.edge_weight
    apart = 1 - graph.graph.pair_scores(labels, labels)
    return total(weight * apart) / nonzero(total(weight))


def nonzero(summed: Tensor) -> Tensor:
    """Replace sums of weights that are 0 by 1, to divide by them."""
    return summed.masked_fill(~is_positive(summed), 1.0)


def is_positive(summed: Tensor) -> Tensor:
    """Whether a sum of weights is above 0, up to rounding."""
    return summed > NO_WEIGHT
