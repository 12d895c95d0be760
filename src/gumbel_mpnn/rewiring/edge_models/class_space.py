"""An edge model with one parameter per pair of classes, which is unlikely to overfit."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.each_replica import spread
from gumbel_mpnn.nn.replica_rng import ReplicaRNG
from gumbel_mpnn.rewiring.edge_models.base import NodeView, Scorer, scorers
from gumbel_mpnn.rewiring.edge_models.bilinear import SymmetricForm


@scorers.register("class-space")
class ClassSpace(Scorer):
    """θ_ij = q_iᵀ B q_j + b, where q are the class beliefs of the nodes."""

    def __init__(self, replicas: int, num_features: int, num_classes: int, channels: int) -> None:
        super().__init__(replicas, num_features, num_classes, channels)
        self.form = SymmetricForm(replicas, num_classes)
        self.bias = nn.Parameter(torch.zeros(replicas, 1))

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set the bias to 0."""
        nn.init.zeros_(self.bias)

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        scores: Tensor = self.form(nodes.beliefs, graph) + spread(self.bias, graph.num_pairs)
        return scores
