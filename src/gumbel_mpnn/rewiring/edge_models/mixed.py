"""An edge model that adds a few facts about a pair to the bilinear form; these generalize to unseen nodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.each_replica import product, spread
from gumbel_mpnn.nn.replica_rng import ReplicaRNG
from gumbel_mpnn.rewiring.edge_models.base import NodeView, scorers
from gumbel_mpnn.rewiring.edge_models.bilinear import Bilinear
from gumbel_mpnn.rewiring.edge_models.facts import NAMES, pair_facts


@scorers.register("mixed")
class Mixed(Bilinear):
    """θ_ij = h_iᵀ W h_j + a · s_ij + b, where s are the agreement of beliefs, cosine, common neighbors and degrees.

    A bilinear form alone learns nothing about features that occur only in unseen nodes; the weight of the cosine
    applies to these as well.
    """

    uses_beliefs = True

    def __init__(self, replicas: int, num_features: int, num_classes: int, channels: int) -> None:
        super().__init__(replicas, num_features, num_classes, channels)
        self.of_facts = nn.Parameter(torch.empty(replicas, len(NAMES)))
        self.of_agreement = nn.Parameter(torch.empty(replicas, 1))
        self._facts: TensorCache[Tensor] = TensorCache()

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set the weights of cosine and agreement to 1, those of the other facts to 0."""
        super().init_own_parameters(rng)
        with torch.no_grad():
            self.of_facts.copy_(torch.tensor([1.0] + [0.0] * (len(NAMES) - 1)).expand_as(self.of_facts))
            self.of_agreement.fill_(1.0)

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        agreement = graph.pair_scores(nodes.beliefs, nodes.beliefs)
        facts = self._facts.get(graph, [nodes.values, graph.pair_weight], lambda: pair_facts(nodes.features, graph))
        weighed = product(facts.expand(len(self.of_facts), -1, -1), self.of_facts[..., None]).squeeze(-1)
        return super().forward(nodes, graph) + weighed + spread(self.of_agreement, graph.num_pairs) * agreement
