"""A scorer that looks at whole neighborhoods: how strictly to judge a pair is read from what surrounds it."""

from __future__ import annotations

import torch
from torch import Tensor

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.modules import Linear
from gumbel_mpnn.rewiring.scorers.base import NodeView, Scorer, scorers

WIDTH = 16


@scorers.register("neighborhood")
class Neighborhood(Scorer):
    """θ_ij from the agreement of beliefs of i and j, and from how well i and j agree with their given neighbors.

    In a neighborhood whose edges mostly agree, an edge may be trusted; in one that random edges flooded it may not,
    unless it agrees itself. The paper names the look at single pairs as a limitation (its section Limitations).
    """

    def __init__(self, replicas: int, num_features: int, num_classes: int, channels: int) -> None:
        super().__init__(replicas, num_features, num_classes, channels)
        self.hidden = Linear(replicas, 4, WIDTH)
        self.out = Linear(replicas, WIDTH, 1)

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        agreement = graph.pair_scores(nodes.beliefs, nodes.beliefs)
        given = graph.is_original.to(agreement.dtype)
        degree = graph.degree(given, given)
        trust = graph.degree(agreement * given, agreement) / degree.clamp(min=1)
        ends = trust[:, graph.pair_index]
        size = degree[:, graph.pair_index].log1p().sum(1).expand_as(agreement)
        seen = torch.stack([agreement, ends.sum(1), (ends[:, 0] - ends[:, 1]).abs(), size], dim=-1)
        scores: Tensor = self.out(torch.relu(self.hidden(seen))).squeeze(-1)
        return scores
