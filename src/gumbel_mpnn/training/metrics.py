"""Accuracy and exact ROC-AUC, for all replicas at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Metric = Callable[[Tensor, Tensor, Tensor], Tensor]


def accuracy(logits: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Share of the nodes in each mask that are classified correctly: [R, N, C], [N], [R, N] → float64 [R]."""
    correct = (logits.argmax(-1) == y) & mask
    return correct.sum(-1).double() / mask.sum(-1)


def roc_auc(logits: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Probability that a node of class 1 scores above one of class 0, ties counted half: → float64 [R]."""
    score = (logits[..., 1] - logits[..., 0]).double()
    positive, negative = mask & (y == 1), mask & (y == 0)
    # Sorted scores of the negatives of each replica; all other nodes are at infinity.
    ranked = score.masked_fill(~negative, torch.inf).sort(-1).values
    below = torch.searchsorted(ranked, score) + torch.searchsorted(ranked, score, right=True)
    wins = (below * positive).sum(-1).double() / 2
    return wins / (positive.sum(-1) * negative.sum(-1))


metrics: dict[str, Metric] = {"accuracy": accuracy, "roc_auc": roc_auc}
