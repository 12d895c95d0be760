"""The rewirer scores the pairs of a graph, adds a bias by their origin, and draws rewired graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph, without_pairs
from gumbel_mpnn.graph.pairs import can_be_taken_apart, renew_numbers, renew_pairs
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.layers import ReplicaModule
from gumbel_mpnn.nn.replica import sigmoid, spread
from gumbel_mpnn.rewiring.sampler import sample
from gumbel_mpnn.rewiring.scorers import NodeView, Scorer, scorers
from gumbel_mpnn.settings import RewiringSettings
from gumbel_mpnn.util.errors import check_between


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


def as_data(graph: PairGraph, probability: Tensor, data: Data, threshold: float = 0.5) -> Data:
    """Copy `data` with its edges replaced by the pairs whose `probability` [P] is at least `threshold`.

    The copy has these attributes:

    - `edge_index` [2, E], with both directions of every undirected pair.
    - `edge_probability` [E].
    - `edge_weight` [E], the probability times the weight in the given graph (1 for new edges and unweighted graphs).
      With `threshold=0` this is the graph that a model with `evaluation="expected"` is evaluated on.
    - `edge_origin` [E], true for edges of `data`.
    - `undirected`, false for a directed graph; true only if `data` has this attribute.

    Attributes of `data` that do not belong to edges are copied. A `Batch` can still be separated into its graphs.
    """
    check_between(0, 1, threshold=threshold)
    weight = graph.times_given(probability).detach()
    chosen = probability >= threshold
    index = graph.pair_index[:, chosen]
    about = {"edge_weight": weight, "edge_probability": probability, "edge_origin": graph.is_original}
    about = {name: value[chosen] for name, value in about.items()}
    if graph.undirected:
        index = torch.cat([index, index.flip(0)], dim=1)
        about = {name: value.repeat(2) for name, value in about.items()}
    order = torch.argsort(index[0] * graph.num_nodes + index[1])
    out = without_pairs(data, graph.num_nodes)
    out.edge_index = index[:, order]
    for name, value in about.items():
        out[name] = value[order]
    if can_be_taken_apart(out):
        renew_pairs(out, "edge_index", about)
    if not graph.undirected or "undirected" in out:
        _set_undirected(out, graph.undirected)
    return out


def _set_undirected(data: Data, undirected: bool) -> None:
    """Set the attribute `undirected` of a graph, or of each graph of a batch."""
    if can_be_taken_apart(data):
        data.undirected = torch.full((data.num_graphs,), undirected)
        renew_numbers(data, "undirected")
    else:
        data.undirected = undirected
