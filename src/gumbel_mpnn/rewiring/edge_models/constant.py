"""An edge model that scores all pairs alike, so that only the bias by origin tells them apart."""

from __future__ import annotations

from torch import Tensor

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.model import Sizes
from gumbel_mpnn.rewiring.edge_models.base import NodeView, Scorer, scorers


@scorers.register("constant")
class Constant(Scorer):
    """θ_ij = 0 for every pair, without parameters.

    With the bias by origin, given edges are drawn with probability `keep` and candidates with probability `add`; with
    `origin="none"`, both with ½. With `origin="learned"`, the two probabilities are learned, and nothing else.
    """

    uses_beliefs = False

    def __init__(self, replicas: int, num_features: int, num_classes: int, channels: int) -> None:
        super().__init__(replicas, num_features, num_classes, channels)
        self.replicas = replicas

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        return nodes.given.new_zeros(self.replicas, graph.num_pairs)

    def step_numbers(self, sizes: Sizes) -> int:
        """Nothing is stored."""
        return 0
