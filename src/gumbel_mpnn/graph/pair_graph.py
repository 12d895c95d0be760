"""The fixed set of node pairs of a graph, laid out once, and the same set with weights, which change in every step."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.graph.layout import SparseLayout
from gumbel_mpnn.graph.pairs import (
    ListedEdges,
    check_candidates,
    check_edges,
    check_weights,
    contains,
    distinct_pairs,
    edge_index_of,
    inverse,
    pair_key,
    pairs_of,
    tensor_of,
    undirected_keys,
)
from gumbel_mpnn.graph.products import attention, averages, matmul, sampled_product, symmetric_product
from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.tensors import TensorCache, lasting_property

NO_WEIGHT = 1e-12
"""Degrees up to this count as 0, so that the inverse and its square stay finite."""


@dataclass(frozen=True, eq=False)
class PairGraph:
    """P distinct pairs of nodes and the arcs (one or two per pair) along which messages are sent.

    In an undirected graph a pair has `i < j` and two arcs with the same weight; in a directed graph a pair is the arc
    source → target. Pairs are sorted and contain no self-loops: layers that need self-loops add them.
    """

    num_nodes: int
    undirected: bool
    pair_index: Tensor
    """int64 [2, P], source and target."""
    is_original: Tensor
    """bool [P], false for candidates that are not edges of the given graph."""
    pair_weight: Tensor | None
    """float [P], the given edge weights; None if all are 1."""
    arcs: SparseLayout
    """The arcs as a matrix: rows are targets, columns are sources."""
    arc_pair: Tensor
    """int64 [A], the pair each arc belongs to."""
    pair_arcs: Tensor
    """int64 [2, P] or [1, P], the arcs of each pair."""

    @classmethod
    def build(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        *,
        undirected: bool = True,
        edge_weight: Tensor | None = None,
        candidate_index: Tensor | None = None,
    ) -> PairGraph:
        """Build a graph from edges and candidates; duplicates are merged (weights averaged), self-loops are removed."""
        edge_index = torch.as_tensor(edge_index).as_subclass(Tensor)
        check_edges(edge_index, edge_weight, num_nodes)
        if candidate_index is not None:
            check_candidates(candidate_index, num_nodes)
        graph, listed = cls._join(edge_index, num_nodes, undirected, candidate_index)
        return graph if edge_weight is None else graph._weighing(listed, edge_weight)

    @classmethod
    def of(cls, data: Data, *, undirected: bool = True, candidates: bool = True) -> PairGraph:
        """Build the graph of `data` (`edge_index`, `edge_weight`, `candidate_index`), cached while `edge_index` lives.

        In a directed graph every candidate becomes two pairs, i → j and j → i, because candidate strategies ignore
        directions. `build`, in contrast, takes candidates as directed arcs.

        Changes of `edge_index` in place are noticed, except those made through `edge_index.numpy()`, of which torch
        does not know: set `data.edge_index` to a new tensor instead.

        Args:
            data: Any graph; the weights may change between calls, and may require a gradient, at little cost.
            undirected: Whether every edge connects both directions.
            candidates: Whether to include candidates besides the given edges.
        """
        edge_index, edge_weight, num_nodes = edge_index_of(data), tensor_of(data, "edge_weight"), data.num_nodes
        candidate_index = tensor_of(data, "candidate_index") if candidates else None

        def lay_out() -> tuple[PairGraph, ListedEdges]:
            check_edges(edge_index, num_nodes=num_nodes)
            if candidate_index is not None:
                check_candidates(candidate_index, num_nodes)
            arcs = candidate_index if undirected or candidate_index is None else _both_ways(candidate_index)
            return cls._join(edge_index.as_subclass(Tensor), num_nodes, undirected, arcs)

        graph, listed = _layouts.get(edge_index, [edge_index, candidate_index], lay_out, undirected, num_nodes)
        if edge_weight is None:
            return graph
        check_edges(edge_index, edge_weight)
        return _weighted.get(graph, [edge_weight], lambda: graph._weighing(listed, edge_weight))

    @classmethod
    def _join(
        cls, edge_index: Tensor, num_nodes: int, undirected: bool, candidate_index: Tensor | None
    ) -> tuple[PairGraph, ListedEdges]:
        """Graph of edges and candidates without weights, and the mapping from edges to pairs."""
        key, listed = distinct_pairs(edge_index, num_nodes, undirected)
        original = torch.ones_like(key, dtype=torch.bool)
        if candidate_index is not None:
            new_key, _ = distinct_pairs(candidate_index, num_nodes, undirected)
            new_key = new_key[~contains(key, new_key)]
            given, (key, order) = key, torch.cat([key, new_key]).sort()
            original = torch.cat([original, torch.zeros_like(new_key, dtype=torch.bool)])[order]
            listed = replace(listed, pair=torch.searchsorted(key, given)[listed.pair])
        return cls._lay_out(key, num_nodes, undirected, original), listed

    def renumbered(self, order: Tensor) -> PairGraph:
        """The pairs in a graph whose node k is node `order[k]` of this one, undirected and without weights."""
        key = undirected_keys(inverse(order)[self.pair_index], self.num_nodes)
        return self._lay_out(key, self.num_nodes, True, torch.ones_like(key, dtype=torch.bool))

    def directed(self) -> PairGraph:
        """The arcs as pairs of their own: i → j and j → i with the origin and the weight of their pair."""
        if not self.undirected:
            return self
        key, order = pair_key(_both_ways(self.pair_index), self.num_nodes).sort()
        return self._with_pairs(key, self.num_nodes, False, order % max(self.num_pairs, 1))

    def among(self, nodes: Tensor, pairs: Tensor) -> PairGraph:
        """The graph of some nodes and of some pairs of these nodes, given by their numbers, both ascending."""
        place = torch.empty(self.num_nodes, dtype=torch.int64, device=nodes.device)
        place[nodes] = torch.arange(len(nodes), device=nodes.device)
        key = pair_key(place[self.pair_index[:, pairs]], len(nodes))
        return self._with_pairs(key, len(nodes), self.undirected, pairs)

    def _with_pairs(self, key: Tensor, num_nodes: int, undirected: bool, pair: Tensor) -> PairGraph:
        """Graph of pairs by their keys, each with the origin and the weight of a pair of this graph."""
        graph = self._lay_out(key, num_nodes, undirected, self.is_original[pair])
        return graph if self.pair_weight is None else replace(graph, pair_weight=self.pair_weight[pair])

    def _weighing(self, listed: ListedEdges, edge_weight: Tensor) -> PairGraph:
        """Copy of this graph with the given edge weights [E], which are checked; the layout is shared."""
        check_weights(edge_weight)
        return replace(self, pair_weight=listed.pair_weight(edge_weight, self.is_original))

    @classmethod
    def _lay_out(cls, key: Tensor, num_nodes: int, undirected: bool, original: Tensor) -> PairGraph:
        pair_index = pairs_of(key, num_nodes)
        source, target = pair_index
        pairs = torch.arange(key.numel(), device=key.device)
        if undirected:
            source, target = torch.cat([source, target]), torch.cat([target, source])
            pairs = pairs.repeat(2)
        order = torch.argsort(target * num_nodes + source)
        return cls(
            num_nodes=num_nodes,
            undirected=undirected,
            pair_index=pair_index,
            is_original=original,
            pair_weight=None,
            arcs=SparseLayout.build(target[order], source[order], num_nodes, num_nodes),
            arc_pair=pairs[order],
            pair_arcs=inverse(order).view(2 if undirected else 1, key.numel()),
        )

    @property
    def num_pairs(self) -> int:
        """Number of pairs, P."""
        return self.pair_index.shape[1]

    @property
    def num_arcs(self) -> int:
        """Number of arcs, A: twice P in an undirected graph, else P."""
        return self.arc_pair.numel()

    @lasting_property
    def edge_index(self) -> Tensor:
        """int64 [2, A], source and target of every arc, in PyG's format."""
        return torch.stack([self.arcs.col, self.arcs.row]).long()

    @lasting_property
    def pairs(self) -> SparseLayout:
        """The pairs as a matrix: rows are sources, columns are targets."""
        return SparseLayout.build(self.pair_index[0], self.pair_index[1], self.num_nodes, self.num_nodes)

    @lasting_property
    def by_origin(self) -> list[tuple[PairGraph, Tensor]]:
        """The given edges and the candidates as graphs of their own, each with the places of its arcs in this one."""
        nodes = torch.arange(self.num_nodes, device=self.pair_index.device)
        return [
            (self.among(nodes, chosen.nonzero().flatten()), chosen[self.arc_pair].nonzero().flatten())
            for chosen in (self.is_original, ~self.is_original)
        ]

    def arc_weight(self, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Weight of every arc, [B, A] or [A]: `weight` of its pair ([B, P], [P] or None for 1) times `pair_weight`."""
        if weight is not None:
            if weight.dim() not in (1, 2) or weight.shape[-1] != self.num_pairs:
                raise UserError(
                    f"pair weights of this graph must have the shape [{self.num_pairs}] or [R, {self.num_pairs}], "
                    f"not {list(weight.shape)}: pass edge weights together with their edge_index"
                )
            weight = weight if torch.is_autocast_enabled(weight.device.type) else weight.to(dtype)
        if self.pair_weight is not None:
            given = self.pair_weight.to(dtype)
            weight = given if weight is None else given * weight
        if weight is None:
            return torch.ones(self.num_arcs, dtype=dtype, device=self.arc_pair.device)
        out: Tensor = _PairsToArcs.apply(weight, self.arc_pair, self.pair_arcs)  # type: ignore[no-untyped-call]
        return out

    def times_given(self, values: Tensor) -> Tensor:
        """Values of every pair [..., P] times the weights that the graph came with."""
        return values if self.pair_weight is None else values * self.pair_weight.to(values.dtype)

    def propagate(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """Weighted sum over incoming arcs: x [B, N, D], pair weights [B, P], [P] or None → [B, N, D]."""
        return self.propagate_arcs(x, self.arc_weight(weight, x.dtype))

    def propagate_arcs(self, x: Tensor, arc_weight: Tensor) -> Tensor:
        """Weighted sum over incoming arcs: x [B, N, D], arc weights [B, A] or [A] → [B, N, D]."""
        return matmul(self.arcs, arc_weight, x)

    def degree(self, weight: Tensor | None = None, dtype: torch.dtype | None = None) -> Tensor:
        """Weighted in-degree, [B, N] ([1, N] for shared weights)."""
        return self.sum_arcs(self.arc_weight(weight, dtype or torch.get_default_dtype()))

    def sum_arcs(self, values: Tensor) -> Tensor:
        """Sum of arc values ([B, A] or [A]) over the arcs into each node, [B, N]."""
        values = values.view(-1, self.num_arcs) if values.numel() else values.new_zeros(1, 0)
        return matmul(self.arcs, values, values.new_ones(values.shape[0], self.num_nodes, 1)).squeeze(-1)

    def arc_scores(self, target: Tensor, source: Tensor) -> Tensor:
        """Dot product target · source for every arc: two [B, N, D] → [B, A]."""
        return sampled_product(self.arcs, target, source)

    def pair_scores(self, source: Tensor, target: Tensor) -> Tensor:
        """Dot product source · target for every pair: two [B, N, D] → [B, P]."""
        return sampled_product(self.pairs, source, target)

    def to(self, device: torch.device | str) -> PairGraph:
        """Copy the graph to another device."""
        if self.pair_index.device == torch.empty(0, device=device).device:  # "cuda" may be "cuda:0"
            return self
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return PairGraph(**{name: part.to(device) if hasattr(part, "to") else part for name, part in parts.items()})

    def __repr__(self) -> str:
        kind = "undirected" if self.undirected else "directed"
        candidates = int((~self.is_original).sum())
        return f"PairGraph({self.num_nodes} nodes, {self.num_pairs} {kind} pairs, {candidates} of them candidates)"


class _PairsToArcs(torch.autograd.Function):
    """Gather whose gradient is a gather too: without atomic additions, it is deterministic on every device."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, arc_pair: Tensor, pair_arcs: Tensor) -> Tensor:
        ctx.save_for_backward(pair_arcs)
        return weight.index_select(-1, arc_pair)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (pair_arcs,) = ctx.saved_tensors
        total = grad.index_select(-1, pair_arcs[0])
        for arcs in pair_arcs[1:]:
            total += grad.index_select(-1, arcs)
        return total, None, None


def _both_ways(index: Tensor) -> Tensor:
    return torch.cat([index, index.flip(0)], dim=1)


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
        return self.arc_weight * root[:, self.graph.arcs.row] * root[:, self.graph.arcs.col]

    def symmetric(self, x: Tensor) -> Tensor:
        """GCN's D^-½ (A + I) D^-½ x, [B, N, D] → [B, N, D]."""
        if x.is_cuda or self.arc_weight.requires_grad:
            return symmetric_product(self.graph.arcs, self.arc_weight, self.inverse_root_degree.squeeze(-1), x)
        neighbors = self.graph.propagate_arcs(x, self.symmetric_arc_weight)
        return torch.addcmul(neighbors, x, self.inverse_root_degree.square())

    def attend(self, x: Tensor, target: Tensor, source: Tensor, negative_slope: float) -> Tensor:
        """GAT's average over neighbors and the node itself, by `attention` and `averages`, [B, N, D] → [B, N, D]."""
        weight = self.arc_weight.view(self.batch, self.graph.num_arcs)
        scores = target.flatten(0, 1), source.flatten(0, 1)
        share, own_share = attention(self.graph.arcs, weight, *scores, negative_slope)
        by_head = target.shape[:2]
        return averages(self.graph.arcs, share.unflatten(0, by_head), own_share.unflatten(0, by_head), x)


_layouts: TensorCache[tuple[PairGraph, ListedEdges]] = TensorCache()
_weighted: TensorCache[PairGraph] = TensorCache()
_plain: TensorCache[WeightedGraph] = TensorCache()
