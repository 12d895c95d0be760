"""A rewired graph: the fixed pairs, the probability of each, and the weights of one draw."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import check_between
from gumbel_mpnn.graph import PairGraph, without_pairs
from gumbel_mpnn.graph.pairs import can_be_taken_apart, renew_numbers, renew_pairs
from gumbel_mpnn.nn.each_replica import sigmoid


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
