"""What the regularizers believe of every node's class and of its neighborhood.

Beliefs ỹ are the true label, one-hot, at training nodes and the model's softmax prediction at all others. By default
the predictions are detached: the penalty then acts on the edges alone, through the weights it sums over. The classifier
learns from its own loss; let through, a penalty on disagreeing neighbors would smooth its predictions over a graph that
is still being learned, or be met by predicting one class everywhere. With `detach=False` it does push the predictions
too, as label propagation does.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gumbel_mpnn.graph.weighted import NO_WEIGHT
from gumbel_mpnn.rewiring.regularizers.base import Regularizer
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


class SoftLabelRegularizer(Regularizer):
    """A regularizer that looks at beliefs, and lets its gradient through them or not.

    Args:
        weight: λ.
        detach: Keep the gradient from the predictions, so that only edges are moved.
    """

    uses_labels = True

    def __init__(self, weight: float = 1.0, *, detach: bool = True) -> None:
        super().__init__(weight)
        self.detach = detach

    def soft_labels(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """ỹ of every node, [R, N, C]."""
        return soft_labels(logits, y, train_mask, graph.weight.dtype, detach=self.detach)


def soft_labels(logits: Tensor, y: Tensor, train_mask: Tensor, dtype: torch.dtype, *, detach: bool = True) -> Tensor:
    """ỹ, [R, N, C]: the label at training nodes, the prediction elsewhere."""
    logits = logits.detach() if detach else logits
    predicted = logits.softmax(-1, dtype=dtype)
    labels = y[:, None] == torch.arange(logits.shape[-1], device=y.device)  # not one_hot: unlabelled nodes may be -1
    return torch.where(train_mask[..., None], labels.to(dtype), predicted)


def confidence(logits: Tensor, train_mask: Tensor, dtype: torch.dtype, *, detach: bool = True) -> Tensor:
    """1 − H(ỹ) / log C, [R, N]: 1 where the class is certain, as at training nodes, 0 where all are equally likely."""
    logits = logits.detach() if detach else logits
    log_predicted = logits.log_softmax(-1, dtype=dtype)
    entropy = -(log_predicted.exp() * log_predicted).sum(-1)  # from logarithms: a probability may underflow to 0
    share = entropy / math.log(max(logits.shape[-1], 2))
    return (1 - share).masked_fill(train_mask, 1.0)


def neighborhood_labels(beliefs: Tensor, graph: RewiredGraph) -> Tensor:
    """p̃, [R, N, C]: the weighted mean of the beliefs over a node's neighbors and itself."""
    neighbors = graph.graph.propagate(beliefs, graph.weight)
    return (beliefs + neighbors) / (1 + weighted_degree(graph))[..., None]


def weighted_degree(graph: RewiredGraph) -> Tensor:
    """Sum of the weights of a node's (incoming) edges as the layers see them, [R, N]."""
    degree = graph.graph.degree(graph.weight, graph.weight.dtype)
    return degree.expand(graph.weight.shape[0], -1)  # a graph without pairs knows of no replicas


def disagreement(beliefs: Tensor, graph: RewiredGraph) -> Tensor:
    """Mean of 1 − b_i · b_j over the weighted edges, [R]: beliefs [R, N, C]; 0 where there are none."""
    weight = graph.edge_weight
    apart = 1 - graph.graph.pair_scores(beliefs, beliefs)
    return (weight * apart).sum(-1) / nonzero(weight.sum(-1))


def nonzero(total: Tensor) -> Tensor:
    """`total` where something was summed, else 1: safe to divide by."""
    return total.masked_fill(~is_there(total), 1.0)


def is_there(total: Tensor) -> Tensor:
    """Whether a sum of weights is one of any weight at all."""
    return total > NO_WEIGHT
