"""An edge model that judges a pair by the neighborhoods of its two nodes."""

from __future__ import annotations

import torch
from torch import Tensor

from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.each_replica import spread
from gumbel_mpnn.nn.fused_linear import linear_sum
from gumbel_mpnn.nn.modules import Linear
from gumbel_mpnn.rewiring.edge_models.base import NodeView, Scorer, scorers
from gumbel_mpnn.rewiring.edge_models.facts import COSINE, cosine

WIDTH = 32


@scorers.register("neighborhood")
class Neighborhood(Scorer):
    """θ_ij from the agreement of the beliefs of i and j, and from how well i and j agree with their given neighbors.

    If most edges around i and j agree, an edge between them can be trusted. If there are many random edges around them,
    it can be trusted only if i and j agree. The paper names scoring each pair on its own as a limitation (section
    Limitations).
    """

    numbers_per_pair = 3 * WIDTH

    def __init__(self, replicas: int, num_features: int, num_classes: int, channels: int) -> None:
        super().__init__(replicas, num_features, num_classes, channels)
        self.hidden = Linear(replicas, 6, WIDTH)
        self.out = Linear(replicas, WIDTH, 1)
        self._similarity: TensorCache[Tensor] = TensorCache()

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        agreement = graph.pair_scores(nodes.beliefs, nodes.beliefs)
        degree = graph.degree(nodes.given, nodes.given.dtype)
        # Mean agreement of a node with its given neighbors.
        trust = graph.degree(agreement * nodes.given, agreement.dtype) / degree.clamp(min=1)
        # In a graph without pairs, degrees have one row for all replicas.
        first, second = trust[:, graph.pair_index].expand(len(agreement), -1, -1).unbind(1)
        here, there = degree[:, graph.pair_index].log1p().expand(len(agreement), -1, -1).unbind(1)
        cosines = self._similarity.get(graph, [nodes.values], lambda: COSINE * cosine(nodes.features, graph))
        seen = torch.stack(
            [
                agreement,
                cosines.expand_as(agreement),
                torch.minimum(first, second),
                torch.maximum(first, second),
                torch.minimum(here, there),
                torch.maximum(here, there),
            ],
            dim=-1,
        )
        scores = linear_sum([(torch.relu(self.hidden(seen)), self.out.weight)]).squeeze(-1)
        assert self.out.bias is not None
        return scores + spread(self.out.bias[:, 0], graph.num_pairs)
