"""A graph as a rewiring left it: the fixed pairs, how likely each is, and the weights of one draw."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import check_between
from gumbel_mpnn.graph import PairGraph, without_pairs
from gumbel_mpnn.graph.batches import can_be_taken_apart, renew_numbers, renew_pairs


@dataclass(frozen=True, eq=False)
class RewiredGraph:
    """The pairs of `graph` with what a scorer and a sampler made of them."""

    graph: PairGraph
    theta: Tensor
    """Logit of every pair's probability, [R, P]."""
    weight: Tensor
    """Weight of every pair in this draw, [R, P]."""

    @property
    def probability(self) -> Tensor:
        """Probability of every pair, [R, P]."""
        return self.theta.sigmoid()

    @property
    def edge_weight(self) -> Tensor:
        """Weight of every pair in this draw times the weight it was given with, [R, P]."""
        return self.graph.times_given(self.weight)


def as_data(graph: PairGraph, probability: Tensor, data: Data, threshold: float = 0.5) -> Data:
    """A copy of `data` with the pairs of `probability` [P] of at least `threshold` in place of its edges.

    `edge_index` has both directions of every undirected pair. `edge_probability` is the probability, `edge_weight` that
    times the weight that the edge was given with (1 for new edges and where there were no weights): all pairs together
    are what a model is evaluated on by `evaluation="expected"`. `edge_origin` is true for edges that `data` had, and
    `undirected` says that pairs are arcs, or that they are none where `data` said so. Everything else of `data` that is
    not about edges is kept, and a batch can be taken apart.
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
    """Say it of the graph, or of each graph of a batch."""
    if can_be_taken_apart(data):
        data.undirected = torch.full((data.num_graphs,), undirected)
        renew_numbers(data, "undirected")
    else:
        data.undirected = undirected
