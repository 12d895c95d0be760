"""Soft median: a GCN whose neighbors count less the farther they are from the median of the neighborhood."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn import UserError
from gumbel_mpnn.graph import WeightedGraph
from gumbel_mpnn.nn import GCN, GCNConv, SparseFeatures, linear_sum, models

SMALLEST = 1e-12
"""Added to squared distances, so that the gradient of the root is finite."""
HALF = 0.5 - 1e-9
"""Share of the weight up to the median; a little less than half, so that rounding does not break ties."""


@models.register("soft-median")
class SoftMedian(GCN):
    """A GCN that replaces the sum over neighbors by their weighted soft median (Geisler et al., 2021).

    Let a_ij be the weights of a GCN, with the node itself, and m_i the median of the neighbors of i by these weights,
    separately for each channel. Neighbors count with s_ij = a_ij · exp(−‖x_j − m_i‖ / (T √D)), scaled such that
    their sum is Σ_j a_ij. For large temperatures T it is a GCN. The gradient also goes through the median, and on a
    GPU it is summed in no fixed order: runs of one seed are equal up to rounding.

    A step sorts an array of arcs × channels, which takes more memory and time than a GCN.

    Args:
        in_channels: Number of features per node.
        temperature: Temperature T.
        **options: Options of `gm.GCN`.
    """

    presets_of: ClassVar[tuple[str, ...]] = ("gcn",)
    space: ClassVar[Mapping[str, Any]] = {"temperature": {"low": 0.1, "high": 10.0, "log": True}}

    def __init__(self, in_channels: int, *, temperature: float = 0.5, **options: Any) -> None:
        if not 0 < temperature < math.inf:
            raise UserError(f"temperature must be above 0, but is {temperature}")
        self.temperature = temperature
        super().__init__(in_channels, **options)

    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> SoftMedianConv:
        """Create a graph convolution with soft medians."""
        return SoftMedianConv(replicas, in_channels, out_channels, self.temperature)


class SoftMedianConv(GCNConv):
    """Soft medians of x W over neighbors and the node itself, plus b."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int, temperature: float) -> None:
        super().__init__(replicas, in_channels, out_channels)
        self.temperature = temperature

    def sums(self, x: Tensor | SparseFeatures, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """The soft medians of x W."""
        sent = soft_median(self.linear(x), graph, self.temperature)
        return sent if shortcut is None else linear_sum([(x, shortcut)], sent)


def soft_median(x: Tensor, weighted: WeightedGraph, temperature: float) -> Tensor:
    """Weighted soft median over the neighbors of every node and the node itself, [R, N, D] → [R, N, D]."""
    graph, root = weighted.graph, weighted.inverse_root_degree.squeeze(-1)
    weight, own_weight = weighted.symmetric_arc_weight, root.square()
    median = x.gather(1, median_neighbor(x, weighted))
    squares = (x.square().sum(-1), median.square().sum(-1))
    one = torch.ones_like(squares[0])
    # Products, not gathers, whose gradient would be summed in no fixed order on a GPU.
    apart = graph.arc_scores(
        torch.cat([-2 * median, squares[1][..., None], one[..., None]], -1),
        torch.cat([x, one[..., None], squares[0][..., None]], -1),
    )
    apart, own_apart = ((d.clamp(min=0) + SMALLEST).sqrt() for d in (apart, (x - median).square().sum(-1)))
    scale = temperature * math.sqrt(x.shape[-1])
    nearest = _smallest(apart, own_apart, weight, weighted) / scale
    share = weight * (nearest.index_select(1, graph.edge_index[1]) - apart / scale).clamp(max=0).exp()
    own_share = own_weight * (nearest - own_apart / scale).exp()
    factor = (graph.sum_arcs(weight) + own_weight) / (graph.sum_arcs(share) + own_share)
    return factor[..., None] * (graph.propagate_arcs(x, share) + own_share[..., None] * x)


@torch.no_grad()
def _smallest(apart: Tensor, own: Tensor, weight: Tensor, weighted: WeightedGraph) -> Tensor:
    """Smallest distance of the node itself and of its neighbors with a non-zero weight, [R, N]."""
    present = apart.masked_fill(weight.expand_as(apart) == 0, torch.inf)
    return own.scatter_reduce(1, weighted.graph.edge_index[1].expand_as(present), present, "amin")


@torch.no_grad()
def median_neighbor(x: Tensor, weighted: WeightedGraph) -> Tensor:
    """The neighbor of each node, or the node itself, that has the median by GCN's weights, by channel, int64 [R, N, D].

    The median is the smallest value up to which there is half of the weight or more.
    """
    replicas, nodes, channels = x.shape
    if nodes == 0:
        return torch.empty(x.shape, dtype=torch.int64, device=x.device)
    graph, root = weighted.graph, weighted.inverse_root_degree.squeeze(-1)
    loops = torch.arange(nodes, device=x.device)
    target, source = torch.cat([graph.edge_index[1], loops]), torch.cat([graph.arcs.col.long(), loops])
    by_rank = x.argsort(dim=1)
    rank = torch.empty_like(by_rank).scatter_(1, by_rank, loops[:, None].expand_as(by_rank))
    # Neighbors sorted by node, then by value: the positions of a node are the same in all channels.
    key, order = (rank.index_select(1, source) + (target * nodes)[:, None]).sort(dim=1)
    weight = torch.cat([weighted.symmetric_arc_weight, root.square()], dim=1).double().expand(replicas, -1)
    sums = F.pad(weight[..., None].expand_as(key).gather(1, order).cumsum(1), (0, 0, 1, 0))
    bounds = (graph.arcs.rowptr.long() + torch.arange(nodes + 1, device=x.device))[:, None]
    bounds = bounds.expand(replicas, -1, channels)
    before, after = sums.gather(1, bounds).unfold(1, 2, 1).unbind(-1)
    least = before + HALF * (after - before)
    place = torch.searchsorted(sums.transpose(1, 2).contiguous(), least.transpose(1, 2).contiguous()).transpose(1, 2)
    place = torch.minimum(torch.maximum(place - 1, bounds[:, :-1]), bounds[:, 1:] - 1)
    return by_rank.gather(1, key.gather(1, place) % nodes)
