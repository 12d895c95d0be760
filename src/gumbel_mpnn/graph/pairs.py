"""Pairs of nodes: sets of them as sorted integers, the edge lists they come from, and the checks of both.

A pair has the key i · N + j, which preserves the order of pairs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from gumbel_mpnn.util.errors import DataError

CANDIDATE_OF = "candidate_of"
"""Attribute with the digest of the nodes that the candidates of a graph were computed for."""
ABOUT_CANDIDATES = ("candidate_index", CANDIDATE_OF)
"""Attributes that a candidate strategy adds to a graph."""


def pair_key(pairs: Tensor, num_nodes: int) -> Tensor:
    """Key of every pair: [2, K] of any integer type → int64 [K]."""
    ends = pairs.long()
    return ends[0] * num_nodes + ends[1]


def pairs_of(keys: Tensor, num_nodes: int) -> Tensor:
    """Pairs of the given keys: [K] → int64 [2, K]."""
    return torch.stack([keys // max(num_nodes, 1), keys % max(num_nodes, 1)])


def ordered(pairs: Tensor) -> Tensor:
    """Order the nodes of every pair, the smaller first: [2, K] → int64 [2, K]."""
    first, second = pairs.long()
    return torch.stack([torch.minimum(first, second), torch.maximum(first, second)])


def undirected_keys(pairs: Tensor, num_nodes: int) -> Tensor:
    """Sorted distinct keys [P] of the pairs [2, K], ignoring directions and self-loops."""
    ends = ordered(pairs)
    keys: Tensor = pair_key(ends[:, ends[0] != ends[1]], num_nodes).unique()
    return keys


def inverse(order: Tensor) -> Tensor:
    """Place of every number in a permutation, int64 [N]."""
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    return place


def contains(keys: Tensor, some: Tensor) -> Tensor:
    """Whether each of `some` [K] is among the sorted `keys` [P], bool [K]."""
    if keys.numel() == 0:
        return torch.zeros_like(some, dtype=torch.bool)
    place = torch.searchsorted(keys, some).clamp_(max=keys.numel() - 1)
    return keys[place] == some


def without_candidates(data: Data) -> Data:
    """Shallow copy of `data` without candidates and their attributes."""
    bare = copy.copy(data)
    for name in ABOUT_CANDIDATES:
        if name in bare:
            del bare[name]
    return bare


def says_directed(data: Data) -> bool:
    """Whether the graph, or a graph of the batch, has the attribute `undirected` and it is false."""
    said = data.get("undirected")
    return said is False or (isinstance(said, Tensor) and not bool(said.all()))


def without_pairs(data: Data, num_nodes: int) -> Data:
    """Shallow copy of `data` without edges, edge attributes and candidates, with `num_nodes` set."""
    bare = without_candidates(data)
    bare.num_nodes = num_nodes  # set first, else PyG takes labels for an edge attribute if N = E
    for name in {"edge_index", *bare.edge_attrs()}:
        if name in bare:
            del bare[name]
    return bare


@dataclass(frozen=True, eq=False)
class ListedEdges:
    """Mapping from the edges of an `edge_index` [2, E] to the pairs of a graph."""

    proper: Tensor | None
    """int64 [E'], the edges that are not self-loops; None if there are no self-loops."""
    pair: Tensor
    """int64 [E'], the pair of each of these edges."""

    def pair_weight(self, edge_weight: Tensor, is_original: Tensor) -> Tensor:
        """Weight of every pair [P]: the differentiable mean over its edges, or 1 for a candidate."""
        values = edge_weight if self.proper is None else edge_weight.index_select(0, self.proper)
        total = values.new_zeros(len(is_original)).index_add(0, self.pair, values)
        mean = total / torch.bincount(self.pair, minlength=len(is_original)).clamp(min=1)
        return torch.where(is_original, mean, 1)


def distinct_pairs(index: Tensor, num_nodes: int, undirected: bool) -> tuple[Tensor, ListedEdges]:
    """Sorted distinct keys `i * N + j` of the edges [2, E] without self-loops, and the mapping from edges to pairs."""
    ends = ordered(index) if undirected else index.long()
    proper = ends[0] != ends[1]
    key, pair = torch.unique(pair_key(ends[:, proper], num_nodes), return_inverse=True)
    return key, ListedEdges(None if len(pair) == len(proper) else proper.nonzero().flatten(), pair)


def tensor_of(data: Data, name: str) -> Tensor | None:
    """An attribute of a graph, or None; raises a `DataError` if it is an array, a list or anything but a tensor."""
    value = data.get(name)
    if value is None or isinstance(value, Tensor):
        return value
    raise DataError(f"data.{name} must be a tensor, not a {type(value).__name__}: convert it by torch.as_tensor")


def edge_index_of(data: Data, *, or_empty: bool = False) -> Tensor:
    """The `edge_index` [2, E] of a graph; with `or_empty`, a graph without one has no edges."""
    if not isinstance(data, Data):
        raise DataError(f"a graph must be a homogeneous Data object, not a {type(data).__name__}")
    edge_index = tensor_of(data, "edge_index")
    if edge_index is not None:
        return edge_index
    has_matrix = data.get("adj_t") is not None
    if or_empty and not has_matrix:
        return torch.empty(2, 0, dtype=torch.int64)
    instead = " (adj_t is not read)" if has_matrix else ""
    raise DataError(f"this graph has no edge_index{instead}: give it data.edge_index, integers of shape [2, E]")


def check_edges(edge_index: Tensor, edge_weight: Tensor | None = None, num_nodes: int | None = None) -> None:
    """Raise a `DataError` unless `edge_index` has integers of shape [2, E], from 0 to `num_nodes` - 1 if it is given.

    `edge_weight` must have the shape [E]; its values are checked by `check_weights`.
    """
    if edge_index.dim() != 2 or len(edge_index) != 2 or not (is_whole(edge_index) or edge_index.numel() == 0):
        raise DataError(f"edge_index must be integers of shape [2, E], not {edge_index.dtype} {list(edge_index.shape)}")
    if edge_weight is not None and edge_weight.shape != edge_index.shape[1:]:
        raise DataError(f"edge_weight must have shape [{edge_index.shape[1]}], not {list(edge_weight.shape)}")
    if num_nodes is not None:
        first = _first_outside(edge_index, num_nodes)
        if first is not None:
            source, target = edge_index.as_subclass(Tensor)[:, first].tolist()
            raise DataError(
                f"edge {first} goes from node {source} to node {target}, but nodes are 0 to {num_nodes - 1}"
            )


def check_weights(edge_weight: Tensor, name: Callable[[int], str] = "edge {}".format) -> None:
    """Raise a `DataError` if a weight is negative or not finite; `name` describes an edge in the message."""
    wrong = ~(torch.isfinite(edge_weight) & (edge_weight >= 0))
    if bool(wrong.any()):
        edge = int(wrong.nonzero()[0])
        value = float(edge_weight.detach()[edge])
        problem = f"negative ({value:g})" if math.isfinite(value) else "not finite"
        raise DataError(f"the weight of {name(edge)} is {problem}: weights are finite and at least 0")


def check_candidates(candidate_index: Tensor, num_nodes: int) -> None:
    """Raise a `DataError` unless `candidate_index` has integers of shape [2, M] from 0 to `num_nodes` - 1."""
    if candidate_index.dim() != 2 or len(candidate_index) != 2 or not is_whole(candidate_index):
        form = f"{candidate_index.dtype} {list(candidate_index.shape)}"
        raise DataError(f"candidate_index must be integers of shape [2, M], not {form}")
    outside = _first_outside(candidate_index, num_nodes)
    if outside is not None:
        first, second = candidate_index[:, outside].tolist()
        raise DataError(
            f"candidate_index joins nodes {first} and {second}, but the nodes are 0 to {num_nodes - 1}: "
            "data.subgraph does not renumber candidates, so delete them and compute them again"
        )


def _first_outside(index: Tensor, num_nodes: int) -> int | None:
    """First column of `index` [2, E] with a number outside 0 to `num_nodes` - 1; None if there is none."""
    ends = index.as_subclass(Tensor).long()
    if not ends.numel() or (int(ends.min()) >= 0 and int(ends.max()) < num_nodes):
        return None
    return int(((ends < 0) | (ends >= num_nodes)).any(0).nonzero()[0])


def is_whole(index: Tensor) -> bool:
    """Whether the values are integers, not booleans."""
    return not (index.is_floating_point() or index.is_complex() or index.dtype == torch.bool)


def can_be_taken_apart(data: Data) -> bool:
    """Whether `data` is a batch of several graphs that PyG can split again."""
    return isinstance(data, Batch) and hasattr(data, "_slice_dict")


def renew_pairs(batch: Batch, index: str, about: Iterable[str] = ()) -> None:
    """Update where PyG splits the pairs `batch[index]` [2, K], sorted by their first node, and values `about` them."""
    first = batch[index][0].contiguous()
    starts = torch.searchsorted(first, batch.ptr.to(first.device)).cpu()
    first_nodes = batch.ptr[:-1].cpu()
    _renew(batch, index, starts, first_nodes)
    for name in about:
        _renew(batch, name, starts, torch.zeros_like(first_nodes))


def renew_numbers(batch: Batch, name: str) -> None:
    """Update where PyG splits the attribute `name` [B], which has one value per graph."""
    count = batch.ptr.numel() - 1
    _renew(batch, name, torch.arange(count + 1), torch.zeros(count, dtype=torch.int64))


def _renew(batch: Batch, name: str, starts: Tensor, increments: Tensor) -> None:
    # New dictionaries: a transform works on a shallow copy and must not change the original.
    batch._slice_dict = {**batch._slice_dict, name: starts}
    batch._inc_dict = {**batch._inc_dict, name: increments}
