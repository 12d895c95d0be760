"""The rewirer: pairs are scored, biased by their origin, and drawn."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gumbel_mpnn.config import RewiringSettings
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.modules import ReplicaModule
from gumbel_mpnn.rewiring.edge_models import NodeView, Scorer, scorers
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph
from gumbel_mpnn.rewiring.sampler import sample


class Rewirer(ReplicaModule):
    """Logits for the pairs of a graph, and graphs drawn from them.

    It is a part of `GumbelMPNN` and `Rewired`, which draw its parameters and show it the nodes; around a model of one's
    own goes `Rewired`.

    Args:
        num_features: Number of features of a node.
        num_classes: Number of classes.
        replicas: R.
        settings: Scorer, bias by origin, temperature.
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
        """Given edges start at probability `keep` and candidates at `add`, or all at ½."""
        with torch.no_grad():
            for column, probability in enumerate((self.settings.add, self.settings.keep)):
                start = math.log(probability / (1 - probability)) if self.settings.origin != "none" else 0.0
                self.origin[:, column] = start

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        candidate_bias, given_bias = self.origin.unsqueeze(-1).unbind(1)
        theta: Tensor = self.scorer(nodes, graph) + candidate_bias + (given_bias - candidate_bias) * nodes.given
        return theta

    def temperature(self, progress: Tensor | float) -> Tensor | float:
        """τ when this share of the epochs is done."""
        first, last = self.settings.tau, self.settings.tau_end
        return first * (last / first) ** progress if first != last else first

    def draw(self, theta: Tensor, graph: PairGraph, rng: ReplicaRNG, progress: Tensor | float) -> RewiredGraph:
        """One graph drawn for each replica."""
        return RewiredGraph(graph, theta, sample(theta, self.temperature(progress), rng, hard=self.settings.hard))

    def evaluate(self, theta: Tensor, graph: PairGraph) -> RewiredGraph:
        """The graph of evaluation: by `threshold` pairs of probability ½ or more, else all weighed by it."""
        weight = theta.sigmoid()
        if self.settings.evaluation == "threshold":
            weight = (weight >= 0.5).to(theta.dtype)  # as `rewire` keeps them
        return RewiredGraph(graph, theta, weight)
