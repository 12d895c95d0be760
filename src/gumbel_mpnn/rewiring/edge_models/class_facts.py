"""An edge model in class space that also weighs a few facts about a pair."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.each_replica import product
from gumbel_mpnn.nn.replica_rng import ReplicaRNG
from gumbel_mpnn.rewiring.edge_models.base import NodeView, scorers
from gumbel_mpnn.rewiring.edge_models.class_space import ClassSpace
from gumbel_mpnn.rewiring.edge_models.facts import COSINE, NAMES, pair_facts


@scorers.register("class-facts")
class ClassFacts(ClassSpace):
    """θ_ij = q_iᵀ B q_j + a · s_ij + b, where q are class beliefs and s are cosine, common neighbors and degrees.

    The weights of the facts start at 0, where this is `class-space`.
    """

    numbers_per_pair = len(NAMES)

    def __init__(self, replicas: int, num_features: int, num_classes: int, channels: int) -> None:
        super().__init__(replicas, num_features, num_classes, channels)
        self.of_facts = nn.Parameter(torch.zeros(replicas, len(NAMES)))
        self._facts: TensorCache[Tensor] = TensorCache()

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set the bias and the weights of the facts to 0."""
        super().init_own_parameters(rng)
        nn.init.zeros_(self.of_facts)

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        facts = self._facts.get(
            graph, [nodes.values, graph.pair_weight], lambda: _scaled(pair_facts(nodes.features, graph))
        )
        weighed = product(facts.expand(len(self.of_facts), -1, -1), self.of_facts[..., None]).squeeze(-1)
        return super().forward(nodes, graph) + weighed


def _scaled(facts: Tensor) -> Tensor:
    """Facts [..., P, 4] of about the same spread, so that their weights learn at about the same pace."""
    return torch.cat([COSINE * facts[..., :1], facts[..., 1:]], dim=-1)
