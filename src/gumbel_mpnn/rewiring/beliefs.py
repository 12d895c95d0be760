"""What the model believes of a node's class before it looks at any edge."""

from __future__ import annotations

import torch
from torch import Tensor

from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures
from gumbel_mpnn.nn.activation import dropout
from gumbel_mpnn.nn.modules import Linear, ReplicaModule

WIDTH, DROPOUT = 64, 0.5


class BeliefHead(ReplicaModule):
    """A small perceptron on the features alone: no wrong edge can mislead it."""

    def __init__(self, replicas: int, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.hidden = Linear(replicas, num_features, WIDTH)
        self.out = Linear(replicas, WIDTH, num_classes)

    def forward(self, features: Tensor | SparseFeatures, rng: ReplicaRNG) -> Tensor:
        """Logits [R, N, C]."""
        logits: Tensor = self.out(dropout(torch.relu(self.hidden(features)), DROPOUT * self.training, rng))
        return logits
