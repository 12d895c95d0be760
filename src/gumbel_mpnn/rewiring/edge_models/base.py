"""Base class of scorers: node features and class beliefs in, a logit for every pair out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from gumbel_mpnn.config.registry import Registry
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures
from gumbel_mpnn.nn.activation import relu_dropout
from gumbel_mpnn.nn.model import COPIES_OF_A_LAYER, Sizes
from gumbel_mpnn.nn.modules import Linear, ReplicaModule


@dataclass(frozen=True)
class NodeView:
    """Input of a scorer."""

    features: Tensor | SparseFeatures
    """[N, F], shared by all replicas, or [R, N, F]."""
    beliefs: Tensor
    """Class probabilities that the model predicts for every node, without gradient, [R, N, C]; [R, N, 0] if the scorer
    does not use them."""
    given: Tensor
    """1 for pairs shown as edges of the given graph, otherwise 0, [P] or [R, P]."""

    @property
    def values(self) -> Tensor:
        """Tensor that holds the features; cached results are valid as long as it is unchanged."""
        return self.features.values if isinstance(self.features, SparseFeatures) else self.features


WIDTH, DROPOUT = 64, 0.5


class BeliefHead(ReplicaModule):
    """A small perceptron for the class beliefs. It sees features only, so wrong edges cannot mislead it."""

    def __init__(self, replicas: int, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.hidden = Linear(replicas, num_features, WIDTH)
        self.out = Linear(replicas, WIDTH, num_classes)

    def forward(self, features: Tensor | SparseFeatures, rng: ReplicaRNG) -> Tensor:
        """Logits [R, N, C]."""
        logits: Tensor = self.out(relu_dropout(self.hidden(features), DROPOUT * self.training, rng))
        return logits


class Scorer(ReplicaModule, ABC):
    """Computes logits θ of all pairs, without the bias by origin that `Rewirer` adds.

    A scorer sees features and beliefs but never the index of a node, so it can be used on unseen graphs.
    """

    uses_beliefs: ClassVar[bool] = True
    numbers_per_pair: ClassVar[int] = 0
    """Numbers that a training step stores for every pair, besides the score."""
    space: ClassVar[Mapping[str, Any]] = {}
    """Options that `tune` searches by default: a list of values or a range for each."""

    def __init__(self, replicas: int, num_features: int, num_classes: int, channels: int) -> None:
        super().__init__()
        self.channels = channels

    @abstractmethod
    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""

    @property
    def width(self) -> int:
        """Number of channels in which two nodes are compared."""
        return max((parameter.shape[-1] for parameter in self.parameters() if parameter.dim() == 3), default=0)

    def step_numbers(self, sizes: Sizes) -> int:
        """Upper bound on the numbers that one replica stores in a training step, besides parameters and scores."""
        return sizes.pairs * self.numbers_per_pair + COPIES_OF_A_LAYER * sizes.nodes * self.channels


scorers: Registry[Scorer] = Registry("scorer")
