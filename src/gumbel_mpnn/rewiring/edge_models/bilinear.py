"""The paper's edge model: a bilinear form of the features of two nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.each_replica import product, spread
from gumbel_mpnn.nn.modules import Linear, ReplicaModule
from gumbel_mpnn.nn.replica_rng import ReplicaRNG
from gumbel_mpnn.rewiring.edge_models.base import NodeView, Scorer, scorers


class SymmetricForm(ReplicaModule):
    """h_iᵀ W h_j for every pair, where W is the symmetric part of a learned matrix."""

    def __init__(self, replicas: int, channels: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.empty(replicas, channels, channels))

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Initialize with the identity, for which the score is the dot product."""
        with torch.no_grad():
            self.matrix.zero_().diagonal(dim1=1, dim2=2).fill_(1)

    def forward(self, hidden: Tensor, graph: PairGraph) -> Tensor:
        """[R, N, D] → [R, P], computed as (h W) · h without an array of pairs × channels."""
        symmetric = (self.matrix + self.matrix.transpose(1, 2)) / 2
        return graph.pair_scores(product(hidden, symmetric), hidden)


class BilinearForm(SymmetricForm):
    """h_iᵀ W h_j for every pair, where W is symmetric on undirected graphs only.

    On a directed graph, i → j and j → i are two pairs, and W is the learned matrix itself.
    """

    def forward(self, hidden: Tensor, graph: PairGraph) -> Tensor:
        """[R, N, D] → [R, P]."""
        if graph.undirected:
            return super().forward(hidden, graph)
        return graph.pair_scores(product(hidden, self.matrix), hidden)


@scorers.register("bilinear")
class Bilinear(Scorer):
    """θ_ij = h_iᵀ W h_j + b, where h are the features mapped to `channels` and scaled to length 1."""

    uses_beliefs = False
    space: ClassVar[Mapping[str, Any]] = {"channels": [32, 64, 128]}

    def __init__(self, replicas: int, num_features: int, num_classes: int, channels: int) -> None:
        super().__init__(replicas, num_features, num_classes, channels)
        self.encoder = Linear(replicas, num_features, channels, bias=False)
        self.form = BilinearForm(replicas, channels)
        self.bias = nn.Parameter(torch.zeros(replicas, 1))

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set the bias to 0."""
        nn.init.zeros_(self.bias)

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        hidden = F.normalize(self.encoder(nodes.features), dim=-1)
        scores: Tensor = self.form(hidden, graph) + spread(self.bias, graph.num_pairs)
        return scores
