"""The fixed pair set of a graph: laid out once, only its weights ever change."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.data import Data

from gumbel_mpnn.errors import DataError
from gumbel_mpnn.graph.layout import SparseLayout
from gumbel_mpnn.graph.sparse import matmul, sampled_product

if TYPE_CHECKING:
    from gumbel_mpnn.graph.weighted import WeightedGraph


@dataclass(frozen=True, eq=False)
class PairGraph:
    """P node pairs, each once, and the arcs (one or two per pair) along which messages flow.

    On an undirected graph a pair is `i < j` and has two arcs with one weight; on a directed graph a pair is the arc
    source → target. Pairs are sorted. Self-loops are no pairs: layers that need them add their own.
    """

    num_nodes: int
    undirected: bool
    pair_index: Tensor
    """int64 [2, P], source and target."""
    is_original: Tensor
    """bool [P], false for candidates that the given graph does not have."""
    pair_weight: Tensor | None
    """float [P], the weights the graph came with; None when all are 1."""
    arcs: SparseLayout
    """Rows are targets, columns sources."""
    arc_pair: Tensor
    """int64 [A], the pair each arc belongs to."""
    pair_arcs: Tensor
    """int64 [2, P] or [1, P], the arcs of each pair."""
    plain: dict[torch.dtype, WeightedGraph] = field(default_factory=dict, repr=False)
    """What layers share where no weights are learned, kept by `WeightedGraph.of`."""

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
        """Lay out edges and candidates; duplicates become one pair (weights averaged), self-loops are left out."""
        edge_index = torch.as_tensor(edge_index).as_subclass(Tensor)
        _check_edges(edge_index, edge_weight)
        key, merged = _distinct_pairs(edge_index, num_nodes, undirected)
        weight = None if edge_weight is None else _mean_by_group(edge_weight, *merged)
        original = torch.ones_like(key, dtype=torch.bool)
        if candidate_index is not None:
            check_candidates(candidate_index, num_nodes)
            new_key, _ = _distinct_pairs(candidate_index, num_nodes, undirected)
            new_key = new_key[~torch.isin(new_key, key)]
            key, order = torch.cat([key, new_key]).sort()
            original = torch.cat([original, torch.zeros_like(new_key, dtype=torch.bool)])[order]
            if weight is not None:
                weight = torch.cat([weight, weight.new_ones(new_key.numel())])[order]
        return cls._lay_out(key, num_nodes, undirected, original, weight)

    @classmethod
    def of(cls, data: Data, *, undirected: bool = True, candidates: bool = True) -> PairGraph:
        """The pair graph of `data` (`edge_index`, `edge_weight`, `candidate_index`), kept while `edge_index` lives.

        Without `candidates` it has the given edges only.
        """
        edge_index = data.edge_index
        weight, candidate_index = data.get("edge_weight"), data.get("candidate_index") if candidates else None
        given = [tensor for tensor in (edge_index, weight, candidate_index) if tensor is not None]
        stamp = [undirected, data.num_nodes, *((id(tensor), _version(tensor)) for tensor in given)]
        if edge_index in _graphs and _graphs[edge_index][0] == stamp:
            kept: PairGraph = _graphs[edge_index][1]
            return kept
        graph = cls.build(
            edge_index, int(data.num_nodes), undirected=undirected, edge_weight=weight, candidate_index=candidate_index
        )
        if not any(tensor.requires_grad for tensor in given):  # else each pass needs a gradient graph of its own
            _graphs[edge_index] = (stamp, graph, given[1:])
        return graph

    @classmethod
    def _lay_out(
        cls, key: Tensor, num_nodes: int, undirected: bool, original: Tensor, weight: Tensor | None
    ) -> PairGraph:
        pair_index = torch.stack([key // max(num_nodes, 1), key % max(num_nodes, 1)])
        source, target = pair_index
        pairs = torch.arange(key.numel(), device=key.device)
        if undirected:
            source, target = torch.cat([source, target]), torch.cat([target, source])
            pairs = pairs.repeat(2)
        order = torch.argsort(target * num_nodes + source)
        arc_pair = pairs[order]
        position = torch.empty_like(order)
        position[order] = torch.arange(order.numel(), device=key.device)
        return cls(
            num_nodes=num_nodes,
            undirected=undirected,
            pair_index=pair_index,
            is_original=original,
            pair_weight=weight,
            arcs=SparseLayout.build(target[order], source[order], num_nodes, num_nodes),
            arc_pair=arc_pair,
            pair_arcs=position.view(2 if undirected else 1, key.numel()),
        )

    @property
    def num_pairs(self) -> int:
        """P."""
        return self.pair_index.shape[1]

    @property
    def num_arcs(self) -> int:
        """A: twice P on an undirected graph, else P."""
        return self.arc_pair.numel()

    @cached_property
    def edge_index(self) -> Tensor:
        """int64 [2, A], source and target of every arc, as PyG's layers want it."""
        return torch.stack([self.arcs.col.long(), self.arc_target])

    @cached_property
    def arc_target(self) -> Tensor:
        """int64 [A], the node each arc points at."""
        return self.arcs.row.long()

    @cached_property
    def pairs(self) -> SparseLayout:
        """The pairs as positions of a matrix: rows are sources, columns targets."""
        return SparseLayout.build(self.pair_index[0], self.pair_index[1], self.num_nodes, self.num_nodes)

    def arc_weight(self, weight: Tensor | None, like: Tensor) -> Tensor:
        """Weight of every arc, [B, A] or [A]: the pair's `weight` ([B, P], [P] or None for 1) times the given one."""
        if self.pair_weight is not None:
            given = self.pair_weight.to(like.dtype)
            weight = given if weight is None else given * weight
        if weight is None:
            return like.new_ones(self.num_arcs)
        out: Tensor = _PairsToArcs.apply(weight, self.arc_pair, self.pair_arcs)  # type: ignore[no-untyped-call]
        return out

    def propagate(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """Weighted sum over incoming arcs: x [B, N, D], weight [B, P], [P] or None → [B, N, D]."""
        return self.propagate_arcs(x, self.arc_weight(weight, x))

    def propagate_arcs(self, x: Tensor, arc_weight: Tensor) -> Tensor:
        """The same with a weight for every arc, [B, A] or [A]."""
        return matmul(self.arcs, arc_weight, x)

    def degree(self, weight: Tensor | None = None, like: Tensor | None = None) -> Tensor:
        """Sum of the weights of incoming arcs, [B, N] ([1, N] for shared weights)."""
        like = torch.ones(1, device=self.arc_pair.device) if like is None else like
        return self.sum_arcs(self.arc_weight(weight, like))

    def sum_arcs(self, values: Tensor) -> Tensor:
        """Sum of arc values ([B, A] or [A]) at each target, [B, N]."""
        values = values.view(-1, self.num_arcs) if values.numel() else values.new_zeros(1, 0)
        return matmul(self.arcs, values, values.new_ones(values.shape[0], self.num_nodes, 1)).squeeze(-1)

    def arc_scores(self, target: Tensor, source: Tensor) -> Tensor:
        """Dot product target · source along every arc: two [B, N, D] → [B, A]."""
        return sampled_product(self.arcs, target, source)

    def pair_scores(self, source: Tensor, target: Tensor) -> Tensor:
        """Dot product source · target for every pair: two [B, N, D] → [B, P]."""
        return sampled_product(self.pairs, source, target)

    def to(self, device: torch.device | str) -> PairGraph:
        """The same graph on another device."""
        if self.pair_index.device == torch.empty(0, device=device).device:  # "cuda" is "cuda:0" where that is current
            return self
        return PairGraph(
            num_nodes=self.num_nodes,
            undirected=self.undirected,
            pair_index=self.pair_index.to(device),
            is_original=self.is_original.to(device),
            pair_weight=None if self.pair_weight is None else self.pair_weight.to(device),
            arcs=self.arcs.to(device),
            arc_pair=self.arc_pair.to(device),
            pair_arcs=self.pair_arcs.to(device),
        )

    def __repr__(self) -> str:
        kind = "undirected" if self.undirected else "directed"
        candidates = int((~self.is_original).sum())
        return f"PairGraph({self.num_nodes} nodes, {self.num_pairs} {kind} pairs, {candidates} of them candidates)"


class _PairsToArcs(torch.autograd.Function):
    """Gather whose gradient is a gather too: no atomic addition, so it is deterministic everywhere."""

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


def _distinct_pairs(index: Tensor, num_nodes: int, undirected: bool) -> tuple[Tensor, tuple[Tensor, Tensor, int]]:
    """Sorted distinct keys `i * N + j`, and how to merge edge values: (kept edges, their group, groups)."""
    source, target = index.long()
    if index.numel() and not (int(index.min()) >= 0 and int(index.max()) < num_nodes):
        wrong = int(((index < 0) | (index >= num_nodes)).any(0).nonzero()[0])
        ends = " to ".join(str(int(end)) for end in index[:, wrong])
        raise DataError(f"edge {wrong} goes from node {ends}, but the nodes are 0 to {num_nodes - 1}")
    if undirected:
        source, target = torch.minimum(source, target), torch.maximum(source, target)
    proper = source != target
    key, group = torch.unique(source[proper] * num_nodes + target[proper], return_inverse=True)
    return key, (proper, group, key.numel())


def _check_edges(edge_index: Tensor, edge_weight: Tensor | None) -> None:
    """Raise a `DataError` unless `edge_index` is [2, E] of whole numbers and `edge_weight` [E] of numbers."""
    whole = not (edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype == torch.bool)
    if edge_index.dim() != 2 or len(edge_index) != 2 or not (whole or edge_index.numel() == 0):
        raise DataError(f"edge_index must be integers of shape [2, E], not {edge_index.dtype} {list(edge_index.shape)}")
    if edge_weight is not None and edge_weight.shape != edge_index.shape[1:]:
        raise DataError(f"edge_weight must have shape [{edge_index.shape[1]}], not {list(edge_weight.shape)}")


def check_candidates(candidate_index: Tensor, num_nodes: int) -> None:
    """Raise a `DataError` unless `candidate_index` [2, M] has whole numbers of nodes that the graph has."""
    if candidate_index.dim() != 2 or len(candidate_index) != 2 or candidate_index.is_floating_point():
        form = f"{candidate_index.dtype} {list(candidate_index.shape)}"
        raise DataError(f"candidate_index must be int64 of shape [2, M], not {form}")
    outside = ((candidate_index < 0) | (candidate_index >= num_nodes)).any(0)
    if bool(outside.any()):
        first, second = candidate_index[:, int(outside.nonzero()[0])].tolist()
        raise DataError(
            f"candidate_index joins nodes {first} and {second}, but the nodes are 0 to {num_nodes - 1}: "
            "data.subgraph does not renumber candidates, so delete them and make them anew"
        )


def _version(tensor: Tensor) -> int:
    """A number that changes with the content; tensors made in inference mode have none."""
    return -1 if tensor.is_inference() else tensor._version


def _mean_by_group(values: Tensor, kept: Tensor, group: Tensor, groups: int) -> Tensor:
    total = values.new_zeros(groups).index_add_(0, group, values[kept])
    return total / torch.bincount(group, minlength=groups).clamp(min=1)


_graphs: WeakIdKeyDictionary = WeakIdKeyDictionary()
