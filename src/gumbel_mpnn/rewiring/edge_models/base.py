"""What a scorer is: node features and class beliefs in, a logit for every pair out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gumbel_mpnn.config.registry import Registry
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures
from gumbel_mpnn.nn.activation import dropout
from gumbel_mpnn.nn.modules import Linear, ReplicaModule


@dataclass(frozen=True)
class NodeView:
    """What a scorer may look at."""

    features: Tensor | SparseFeatures
    """[N, F], shared by all replicas."""
    beliefs: Tensor
    """Class probabilities of every node as the model itself believes them, without gradient, [R, N, C]; [R, N, 0] for
    scorers that do not use them."""
    given: Tensor
    """Which pairs are shown as edges of the given graph, 0 or 1, [P] or [R, P]."""

    @property
    def values(self) -> Tensor:
        """The tensor that holds the features: what is computed of them is good while it stays as it is."""
        return self.features.values if isinstance(self.features, SparseFeatures) else self.features


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


class Scorer(ReplicaModule, ABC):
    """Logits θ of all pairs, apart from the bias by origin that `Rewirer` adds.

    A scorer sees features and beliefs, never a node's identity, so it serves graphs it was not trained on.
    """

    uses_beliefs: ClassVar[bool] = True
    numbers_per_pair: ClassVar[int] = 0
    """Numbers that a step keeps of every pair, beside the score."""

    def __init__(self, replicas: int, num_features: int, num_classes: int, channels: int) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""


scorers: Registry[Scorer] = Registry("scorer")
