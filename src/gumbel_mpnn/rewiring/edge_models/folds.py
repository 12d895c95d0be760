"""Belief heads that are each trained without one part of the training nodes."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor, nn

from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures
from gumbel_mpnn.nn.modules import cross_entropy
from gumbel_mpnn.rewiring.edge_models.base import BeliefHead


class FoldedBeliefHead(BeliefHead):
    """`folds` belief heads; head k is not trained on training nodes of fold k.

    A single head knows the labels of its training nodes by heart: there, its beliefs are surer and better than anywhere
    else, and a scorer that learns from training nodes learns to trust them too much. In training, a training node
    has the beliefs of the head that was not trained on it.
    """

    def __init__(self, replicas: int, num_features: int, num_classes: int, folds: int) -> None:
        super().__init__(replicas, num_features, num_classes)
        self.others = nn.ModuleList(BeliefHead(replicas, num_features, num_classes) for _ in range(folds - 1))
        self.folds = folds

    def forward(self, features: Tensor | SparseFeatures, rng: ReplicaRNG) -> Tensor:
        """Logits of all heads, [R, K, N, C]."""
        return torch.stack([super().forward(features, rng), *(head(features, rng) for head in self.others)], dim=1)

    def beliefs(self, logits: Tensor, train_mask: Tensor | None = None) -> Tensor:
        """Class beliefs of every node without a gradient, [R, N, C]: means over the heads.

        With a `train_mask` [R, N], training nodes have the beliefs of the head that was not trained on them.
        """
        each = logits.detach().softmax(-1)
        mean = each.mean(1)
        if train_mask is None:
            return mean
        nodes = each.shape[2]
        own = each[:, fold_of(nodes, self.folds, each.device), torch.arange(nodes, device=each.device)]
        return torch.where(train_mask[..., None], own, mean)

    def loss(self, logits: Tensor, y: Tensor, train_mask: Tensor, weight: Tensor | None = None) -> Tensor:
        """Mean over the heads of their cross-entropy on the training nodes of other folds, [R]."""
        fold = fold_of(y.shape[-1], self.folds, logits.device)
        losses = [cross_entropy(logits[:, k], y, train_mask & (fold != k), weight) for k in range(self.folds)]
        return torch.stack(losses).mean(0)


@lru_cache(maxsize=8)
def fold_of(nodes: int, folds: int, device: torch.device) -> Tensor:
    """Fold of every node, int64 [N]: a random partition, which is always the same."""
    return (torch.randperm(nodes, generator=torch.Generator().manual_seed(0)) % folds).to(device)
