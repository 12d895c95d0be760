"""GNNGuard: every layer weighs the edges by how similar its inputs are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import GCN, GCNConv, SparseFeatures, models

NO_SIMILARITY = 1e-12
"""Neighbors of a smaller similarity are left out, whatever the threshold."""


@models.register("gnn-guard", "gnnguard")
class GNNGuard(GCN):
    """A GCN whose layers weigh their edges by the similarity of their inputs (Zhang and Zitnik, 2020).

    The similarity s of two neighbors u and v is the cosine of their inputs, or 0 below `threshold`. The n neighbors of
    u that are left have the weights s_uv / Σ_v s_uv · n / (n + 1), and u itself has 1 / (n + 1). From the second layer
    on, weights are `memory` times those of the layer below, plus 1 − `memory` times the new ones.

    This is a simple form of GNNGuard: it prunes by a threshold on the similarity, as the authors' program does, and not
    also by a learned function of both directions of an edge. In training, inputs of upper layers are those after
    dropout.

    Args:
        in_channels: Number of features per node.
        threshold: Neighbors of a smaller similarity are left out.
        memory: Share of the weights of the layer below.
        **options: Options of `gm.GCN`.
    """

    presets_of: ClassVar[tuple[str, ...]] = ("gcn",)
    space: ClassVar[Mapping[str, Any]] = {
        "threshold": {"low": 0.0, "high": 0.3},
        "memory": {"low": 0.0, "high": 0.9, "step": 0.1},
    }

    def __init__(self, in_channels: int, *, threshold: float = 0.1, memory: float = 0.5, **options: Any) -> None:
        super().__init__(in_channels, **options)
        self.threshold, self.memory = threshold, memory

    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> GuardedConv:
        """Create a graph convolution on guarded edges."""
        return GuardedConv(replicas, in_channels, out_channels)

    def compute(self, x: Tensor | SparseFeatures, graph: WeightedGraph | Sequence[WeightedGraph]) -> Tensor:
        """Logits [R, N, out], on one graph or on a graph per layer."""
        graphs = [graph] * len(self.convs) if isinstance(graph, WeightedGraph) else graph
        guarded: list[GuardedGraph] = []
        for each in graphs:
            guarded.append(GuardedGraph(each, guarded[-1] if guarded else None, self.threshold, self.memory))
        if self.input is None:
            guarded[0].weigh(x)  # by all features, also if some are dropped below
        return super().compute(x, guarded)


class GuardedConv(GCNConv):
    """A graph convolution on edges that are weighed by its input."""

    def sums(self, x: Tensor | SparseFeatures, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """The layer without its bias."""
        assert isinstance(graph, GuardedGraph)
        if graph.share is None:
            graph.weigh(x)
        return super().sums(x, graph, shortcut)


class GuardedGraph(WeightedGraph):
    """A graph in whose products the neighbors of a node have GNNGuard's weights."""

    share: Tensor | None = None
    """Weights of the arcs, [B, A]; None before `weigh`."""
    own: Tensor | None = None
    """Weights of the nodes themselves, [B, N]."""

    def __init__(self, given: WeightedGraph, below: GuardedGraph | None, threshold: float, memory: float) -> None:
        self.graph, self.arc_weight = given.graph, given.arc_weight
        self.below, self.threshold, self.memory = below, threshold, memory

    def weigh(self, x: Tensor | SparseFeatures) -> None:
        """Compute the weights from the input of a layer."""
        similarity = cosine_of_arcs(x, self.graph)
        similar = similarity >= max(self.threshold, NO_SIMILARITY)
        similarity = torch.where(similar, similarity, 0.0) * self.arc_weight
        left, total = self.graph.sum_arcs(similar * self.arc_weight), self.graph.sum_arcs(similarity)
        scale = left / ((left + 1) * torch.where(total > 0, total, 1.0))
        # A product, not a gather, whose gradient would be summed in no fixed order on a GPU.
        share = similarity * self.graph.arc_scores(scale[..., None], torch.ones_like(scale)[..., None])
        own = 1 / (left + 1)
        if self.below is not None and self.below.share is not None and self.below.own is not None:
            share = self.memory * self.below.share + (1 - self.memory) * share
            own = self.memory * self.below.own + (1 - self.memory) * own
        self.share, self.own = share, own

    def symmetric(self, x: Tensor) -> Tensor:
        """Weighted sum over the neighbors and the node itself, [B, N, D] → [B, N, D]."""
        assert self.share is not None
        assert self.own is not None
        return self.graph.propagate_arcs(x, self.share) + self.own[..., None] * x


def cosine_of_arcs(x: Tensor | SparseFeatures, graph: PairGraph) -> Tensor:
    """Cosine of the inputs of the two nodes of every arc, [1, A] for features [N, F], [R, A] for [R, N, D]."""
    if isinstance(x, SparseFeatures):
        dense = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
        x = dense.index_put_((x.layout.row.long(), x.layout.col.long()), x.values)
    normal = F.normalize(x, dim=-1)
    if x.dim() == 3:
        return graph.arc_scores(normal, normal)
    return graph.pair_scores(normal[None], normal[None])[:, graph.arc_pair]
