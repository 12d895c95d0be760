"""What a scorer is: node features and class beliefs in, a logit for every pair out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from gumbel_mpnn.config.registry import Registry
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import SparseFeatures
from gumbel_mpnn.nn.modules import ReplicaModule


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


class Scorer(ReplicaModule, ABC):
    """Logits θ of all pairs, apart from the bias by origin that `Rewirer` adds.

    A scorer sees features and beliefs, never a node's identity, so it serves graphs it was not trained on.
    """

    uses_beliefs: ClassVar[bool] = True

    def __init__(self, replicas: int, num_features: int, num_classes: int, channels: int) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""


scorers: Registry[Scorer] = Registry("scorer")
