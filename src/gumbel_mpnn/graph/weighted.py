"""A pair graph under given weights: what the layers of one forward pass share, computed once."""

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
"""A sum of weights up to this is none: its inverse and the square of that must stay finite."""


class WeightedGraph:
    """Aggregations over `graph` with pair weights [B, P], [P] or None (all 1); weight 0 is no edge at all."""

    def __init__(self, graph: PairGraph, weight: Tensor | None, dtype: torch.dtype) -> None:
        self.graph = graph
        self.arc_weight = graph.arc_weight(weight, dtype)

    @classmethod
    def of(cls, graph: PairGraph, weight: Tensor | None, dtype: torch.dtype) -> WeightedGraph:
        """The graph under `weight`; without weights always the same object, its degrees computed once and for all."""
        if weight is not None or torch.is_inference_mode_enabled():  # what is made there is of no use in training
            return cls(graph, weight, dtype)
        # Of a copy, so that what is kept for the graph does not hold it.
        return _plain.get(graph, [graph.pair_weight], lambda: cls(replace(graph), None, dtype), dtype)

    @property
    def batch(self) -> int:
        """B; 1 where all share the weights."""
        return 1 if self.arc_weight.dim() == 1 else self.arc_weight.shape[0]

    @cached_property
    def degree(self) -> Tensor:
        """Weighted in-degree without self-loops, [B, N, 1]."""
        return self.graph.sum_arcs(self.arc_weight)[..., None]

    @cached_property
    def inverse_root_degree(self) -> Tensor:
        """(1 + degree)^-½, the self-loop counted, [B, N, 1]; finite for every weight ≥ 0."""
        return (1 + self.degree).rsqrt()

    @cached_property
    def mean_arc_weight(self) -> Tensor:
        """The share of every arc in the mean over a node's neighbors, [B, A]; 0 for a node that has none."""
        inverse = 1 / torch.where(self.degree > NO_WEIGHT, self.degree, 1.0)
        # The target's factor as a product: the gradient of a gather would be added up in no fixed order on a GPU.
        return self.arc_weight * self.graph.arc_scores(inverse, torch.ones_like(inverse))

    def mean(self, x: Tensor) -> Tensor:
        """Weighted mean over neighbors; 0 for a node that has none."""
        return self.graph.propagate_arcs(x, self.mean_arc_weight)

    @cached_property
    def symmetric_arc_weight(self) -> Tensor:
        """GCN's weight of every arc, [B, A]: divided by the roots of both its ends' degrees."""
        root = self.inverse_root_degree.squeeze(-1)
        return self.arc_weight * root[:, self.graph.arc_target] * root[:, self.graph.arcs.col]

    def symmetric(self, x: Tensor) -> Tensor:
        """GCN's D^-½ (A + I) D^-½ x, [B, N, D] → [B, N, D]."""
        if x.is_cuda or self.arc_weight.requires_grad:
            return symmetric_product(self.graph.arcs, self.arc_weight, self.inverse_root_degree.squeeze(-1), x)
        neighbors = self.graph.propagate_arcs(x, self.symmetric_arc_weight)
        return torch.addcmul(neighbors, x, self.inverse_root_degree.square())

    def attend(self, x: Tensor, target: Tensor, source: Tensor, negative_slope: float) -> Tensor:
        """GAT's softmax average over neighbors and self, head by head.

        x [B, N, D], in which the heads' channels lie side by side; the score of an arc is the leaky ReLU of target +
        source, each [B, heads, N]. An arc's weight multiplies its share before the shares are made to sum to 1.
        """
        weight = self.arc_weight.view(self.batch, self.graph.num_arcs)
        scores = target.flatten(0, 1), source.flatten(0, 1)
        share, own_share = attention(self.graph.arcs, weight, *scores, negative_slope)
        by_head = target.shape[:2]
        return averages(self.graph.arcs, share.unflatten(0, by_head), own_share.unflatten(0, by_head), x)


_plain: TensorCache[WeightedGraph] = TensorCache()
