"""The rewirer: scores pairs, adds a bias by their origin, and draws graphs."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gumbel_mpnn.config import RewiringSettings
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.each_replica import sigmoid, spread
from gumbel_mpnn.nn.modules import ReplicaModule
from gumbel_mpnn.rewiring.edge_models import NodeView, Scorer, scorers
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph
from gumbel_mpnn.rewiring.sampler import sample


class Rewirer(ReplicaModule):
    """Computes logits for the pairs of a graph and draws graphs from them.

    It is a part of `GumbelMPNN` and `Rewired`, which initialize it and pass it the nodes. To rewire the graph of your
    own model, use `Rewired`.
    """

    def __init__(self, num_features: int, num_classes: int, replicas: int, settings: RewiringSettings) -> None:
        super().__init__()
        self.settings = settings
        options = settings.options_of("scorer", scorers.defaults(settings.scorer))
        self.scorer: Scorer = scorers[settings.scorer](
            replicas, num_features, num_classes, settings.channels, **options
        )
        bias = torch.empty(replicas, 2)
        if settings.origin == "learned":
            self.origin = nn.Parameter(bias)
        else:
            self.register_buffer("origin", bias)

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set the initial probability of given edges to `keep` and that of candidates to `add`, or all to ½."""
        with torch.no_grad():
            for column, probability in enumerate((self.settings.add, self.settings.keep)):
                start = math.log(probability / (1 - probability)) if self.settings.origin != "none" else 0.0
                self.origin[:, column] = start

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        candidate_bias, given_bias = (spread(bias, graph.num_pairs) for bias in self.origin.split(1, dim=1))
        theta: Tensor = self.scorer(nodes, graph) + candidate_bias + (given_bias - candidate_bias) * nodes.given
        return sigmoid(theta) if self.settings.sigmoids == 2 else theta

    def temperature(self, progress: Tensor | float) -> Tensor | float:
        """Temperature τ when a share `progress` of the epochs is done."""
        first, last = self.settings.tau, self.settings.tau_end
        return first * (last / first) ** progress if first != last else first

    def draw(self, theta: Tensor, graph: PairGraph, rng: ReplicaRNG, progress: Tensor | float) -> RewiredGraph:
        """Draw one graph per replica."""
        return RewiredGraph(graph, theta, sample(theta, self.temperature(progress), rng, hard=self.settings.hard))

    def evaluate(self, theta: Tensor, graph: PairGraph) -> RewiredGraph:
        """Graph of evaluation: pairs of probability ½ or more (`threshold`), or all weighted by their probability."""
        weight = sigmoid(theta)
        if self.settings.evaluation == "threshold":
            weight = (weight >= 0.5).to(theta.dtype)  # the same pairs as in `rewire`
        return RewiredGraph(graph, theta, weight)
