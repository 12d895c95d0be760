"""A pair graph with weights: quantities that the layers of a forward pass share, computed once."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.graph.attention import attention, averages
from gumbel_mpnn.graph.pair_graph import PairGraph
from gumbel_mpnn.graph.symmetric import symmetric_product

NO_WEIGHT = 1e-12
"""Degrees up to this count as 0, so that the inverse and its square stay finite."""


class WeightedGraph:
    """Aggregations over `graph` with pair weights [B, P], [P] or None (all 1); weight 0 means that there is no edge."""

    def __init__(self, graph: PairGraph, weight: Tensor | None, dtype: torch.dtype) -> None:
        self.graph = graph
        self.arc_weight = graph.arc_weight(weight, dtype)

    @classmethod
    def of(cls, graph: PairGraph, weight: Tensor | None, dtype: torch.dtype) -> WeightedGraph:
        """The graph with `weight`; without weights the object is cached, so that its degrees are computed once."""
        if weight is not None or torch.is_inference_mode_enabled():  # tensors created there cannot be used in training
            return cls(graph, weight, dtype)
        # A copy, so that the cached object does not keep its owner alive.
        return _plain.get(graph, [graph.pair_weight], lambda: cls(replace(graph), None, dtype), dtype)

    @property
    def batch(self) -> int:
        """Batch size B of the weights; 1 if they are shared."""
        return 1 if self.arc_weight.dim() == 1 else self.arc_weight.shape[0]

    @cached_property
    def by_origin(self) -> list[WeightedGraph]:
        """The given edges alone, and the candidates alone."""
        parts = []
        for graph, arcs in self.graph.by_origin:
            part = WeightedGraph.__new__(WeightedGraph)
            part.graph, part.arc_weight = graph, self.arc_weight.index_select(-1, arcs)
            parts.append(part)
        return parts

    @cached_property
    def degree(self) -> Tensor:
        """Weighted in-degree without self-loops, [B, N, 1]."""
        return self.graph.sum_arcs(self.arc_weight)[..., None]

    @cached_property
    def inverse_root_degree(self) -> Tensor:
        """(1 + degree)^-½, including a self-loop, [B, N, 1]; finite for all weights ≥ 0."""
        return (1 + self.degree).rsqrt()

    @cached_property
    def mean_arc_weight(self) -> Tensor:
        """Weight of every arc in the mean over the neighbors of its target, [B, A]."""
        inverse = 1 / torch.where(self.degree > NO_WEIGHT, self.degree, 1.0)
        # A product, not a gather, whose gradient would be summed in no fixed order on a GPU.
        return self.arc_weight * self.graph.arc_scores(inverse, torch.ones_like(inverse))

    def mean(self, x: Tensor) -> Tensor:
        """Weighted mean over neighbors, [B, N, D] → [B, N, D]; 0 for a node without neighbors."""
        return self.graph.propagate_arcs(x, self.mean_arc_weight)

    @cached_property
    def symmetric_arc_weight(self) -> Tensor:
        """GCN's normalized weight of every arc, [B, A]: divided by the square roots of the degrees of both nodes."""
        root = self.inverse_root_degree.squeeze(-1)
        return self.arc_weight * root[:, self.graph.arc_target] * root[:, self.graph.arcs.col]

    def symmetric(self, x: Tensor) -> Tensor:
        """GCN's D^-½ (A + I) D^-½ x, [B, N, D] → [B, N, D]."""
        if x.is_cuda or self.arc_weight.requires_grad:
            return symmetric_product(self.graph.arcs, self.arc_weight, self.inverse_root_degree.squeeze(-1), x)
        neighbors = self.graph.propagate_arcs(x, self.symmetric_arc_weight)
        return torch.addcmul(neighbors, x, self.inverse_root_degree.square())

    def attend(self, x: Tensor, target: Tensor, source: Tensor, negative_slope: float) -> Tensor:
        """GAT's attention-weighted average over neighbors and the node itself, [B, N, D] → [B, N, D].

        Features are the concatenation of all heads. The score of an arc is the leaky ReLU of the sum of `target` and
        `source` [B, heads, N] at its ends; its weight multiplies its attention coefficient before normalization.
        """
        weight = self.arc_weight.view(self.batch, self.graph.num_arcs)
        scores = target.flatten(0, 1), source.flatten(0, 1)
        share, own_share = attention(self.graph.arcs, weight, *scores, negative_slope)
        by_head = target.shape[:2]
        return averages(self.graph.arcs, share.unflatten(0, by_head), own_share.unflatten(0, by_head), x)


_plain: TensorCache[WeightedGraph] = TensorCache()
