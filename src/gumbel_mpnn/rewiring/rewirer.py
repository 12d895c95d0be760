"""The rewirer scores the pairs of a graph, adds a bias by their origin, and draws rewired graphs.

Edges are drawn from the binary concrete distribution: Gumbel-softmax for the two classes "edge" and "no edge". A pair
with logit θ is an edge with probability σ(θ). If u is uniform in (0, 1), then θ + log u − log(1 − u) is above 0 with
exactly this probability (the difference of two Gumbel variables is logistic). The relaxed weight is the sigmoid of this
sum divided by the temperature τ; its gradient reaches θ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.layers import ReplicaModule
from gumbel_mpnn.nn.replica import sigmoid, spread
from gumbel_mpnn.rewiring.scorers import NodeView, Scorer, scorers
from gumbel_mpnn.settings import RewiringSettings
from gumbel_mpnn.util.errors import UserError

SMALLEST = torch.finfo(torch.float32).eps
"""Distance of uniform numbers from 0 and 1: the noise stays finite, below 16 in absolute value."""


def sample(theta: Tensor, tau: Tensor | float, rng: ReplicaRNG, *, hard: bool = True) -> Tensor:
    """Draw a weight for every pair, [R, P] → [R, P], at a temperature above 0, a tensor if it changes during training.

    If `hard`, weights are 0 and 1 with the gradient of the relaxed weights (straight-through).
    """
    if not isinstance(tau, Tensor) and not tau > 0:
        raise UserError(f"the temperature tau must be above 0, but is {tau}")
    uniform = rng.noise(theta.shape[1]).clamp_(SMALLEST, 1 - SMALLEST)
    noisy = theta + (torch.log(uniform) - torch.log1p(-uniform))
    soft = sigmoid(noisy / tau).to(theta.dtype)  # the noise has 32 bits, logits may have 16
    if not hard:
        return soft
    drawn = (noisy > 0).to(theta.dtype)
    return drawn + (soft - soft.detach())


@dataclass(frozen=True, eq=False)
class RewiredGraph:
    """Pairs of a graph with their scores and with the weights of one draw."""

    graph: PairGraph
    theta: Tensor
    """Logit of every pair's probability, [R, P]."""
    weight: Tensor
    """Weight of every pair in this draw, [R, P]."""

    @property
    def probability(self) -> Tensor:
        """Probability of every pair, [R, P]."""
        return sigmoid(self.theta)

    @property
    def edge_weight(self) -> Tensor:
        """Weight of every pair in this draw times its weight in the given graph, [R, P]."""
        return self.graph.times_given(self.weight)


class Rewirer(ReplicaModule):
    """Computes logits for the pairs of a graph and draws graphs from them.

    It is a part of `GumbelMPNN` and `Rewired`, which initialize it and pass it the nodes. To rewire the graph of your
    own model, use `Rewired`.
    """

    def __init__(self, num_features: int, num_classes: int, replicas: int, settings: RewiringSettings) -> None:
        super().__init__()
        self.settings = settings
        options = settings.options_of("scorer")
        self.scorer: Scorer = scorers[settings.scorer](replicas, num_features, num_classes, **options)
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
        return sigmoid(theta) if self.scorer.second_sigmoid else theta

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
