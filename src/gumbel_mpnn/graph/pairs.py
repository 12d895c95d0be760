"""Nodes and pairs as integers: sets of pairs, the edge lists they come from, the checks of both, and content order.

A pair has the key i · N + j, which preserves the order of pairs.

Searches and random draws break ties by node number. If a file is sorted by class, the number reveals the class.
Therefore, whatever breaks ties works on the graph in content order and maps its result back.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from gumbel_mpnn.util.errors import DataError
from gumbel_mpnn.util.tensors import dense_if_small

if TYPE_CHECKING:
    from gumbel_mpnn.graph.pair_graph import PairGraph

ROUNDS = 3
"""Rounds of hashing over neighbors: nodes with equal features are distinguished by nodes up to three hops away."""
ENTRIES_AT_ONCE = 2**23
"""Feature entries that are hashed at a time, which limits memory."""


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
    """Shallow copy of `data` without candidates."""
    bare = copy.copy(data)
    if "candidate_index" in bare:
        del bare.candidate_index
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

    proper: Tensor
    """int64 [E'], the edges that are not self-loops."""
    pair: Tensor
    """int64 [E'], the pair of each of these edges."""

    def pair_weight(self, edge_weight: Tensor, is_original: Tensor) -> Tensor:
        """Weight of every pair [P]: the differentiable mean over its edges, or 1 for a candidate."""
        values = edge_weight.index_select(0, self.proper)
        total = values.new_zeros(len(is_original)).index_add(0, self.pair, values)
        mean = total / torch.bincount(self.pair, minlength=len(is_original)).clamp(min=1)
        return torch.where(is_original, mean, 1)


def distinct_pairs(index: Tensor, num_nodes: int, undirected: bool) -> tuple[Tensor, ListedEdges]:
    """Sorted distinct keys `i * N + j` of the edges [2, E] without self-loops, and the mapping from edges to pairs."""
    ends = ordered(index) if undirected else index.long()
    proper = ends[0] != ends[1]
    key, pair = torch.unique(pair_key(ends[:, proper], num_nodes), return_inverse=True)
    return key, ListedEdges(proper.nonzero().flatten(), pair)


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
    _check_form("edge_index", edge_index, "E")
    if edge_weight is not None and edge_weight.shape != edge_index.shape[1:]:
        raise DataError(f"edge_weight must have shape [{edge_index.shape[1]}], not {list(edge_weight.shape)}")
    if num_nodes is not None and (wrong := _first_outside(edge_index, num_nodes)):
        edge, source, target = wrong
        raise DataError(f"edge {edge} goes from node {source} to node {target}, but nodes are 0 to {num_nodes - 1}")


def check_candidates(candidate_index: Tensor, num_nodes: int) -> None:
    """Raise a `DataError` unless `candidate_index` has integers of shape [2, M] from 0 to `num_nodes` - 1."""
    _check_form("candidate_index", candidate_index, "M")
    if wrong := _first_outside(candidate_index, num_nodes):
        _, first, second = wrong
        raise DataError(
            f"candidate_index joins nodes {first} and {second}, but the nodes are 0 to {num_nodes - 1}: "
            "data.subgraph does not renumber candidates, so delete them and compute them again"
        )


def _check_form(name: str, index: Tensor, length: str) -> None:
    if index.dim() != 2 or len(index) != 2 or not (is_whole(index) or index.numel() == 0):
        raise DataError(f"{name} must be integers of shape [2, {length}], not {index.dtype} {list(index.shape)}")


def _first_outside(index: Tensor, num_nodes: int) -> tuple[int, int, int] | None:
    """First column of `index` [2, E] with a number outside 0 to `num_nodes` - 1, and its numbers; None if all fit."""
    ends = index.as_subclass(Tensor).long()
    if not ends.numel() or (int(ends.min()) >= 0 and int(ends.max()) < num_nodes):
        return None
    column = int(((ends < 0) | (ends >= num_nodes)).any(0).nonzero()[0])
    return column, *ends[:, column].tolist()


def check_weights(edge_weight: Tensor) -> None:
    """Raise a `DataError` if a weight is negative or not finite."""
    wrong = ~(torch.isfinite(edge_weight) & (edge_weight >= 0))
    if bool(wrong.any()):
        edge = int(wrong.nonzero()[0])
        value = float(edge_weight.detach()[edge])
        problem = f"negative ({value:g})" if math.isfinite(value) else "not finite"
        raise DataError(f"the weight of edge {edge} is {problem}: weights are finite and at least 0")


def is_whole(index: Tensor) -> bool:
    """Whether the values are integers, not booleans."""
    return not (index.is_floating_point() or index.is_complex() or index.dtype == torch.bool)


def can_be_taken_apart(data: Data) -> bool:
    """Whether `data` is a batch of several graphs that PyG can split again."""
    return isinstance(data, Batch) and hasattr(data, "_slice_dict")


def content_order(graph: PairGraph, features: Iterable[Tensor] = (), batch: Tensor | None = None) -> Tensor:
    """Nodes sorted by a hash of their features [N, ...] and surroundings, int64 [N].

    The order does not depend on the numbering of the nodes, except for nodes that have the same features and
    surroundings; these are in a fixed random order. Weights and directions of edges are ignored. With a sorted `batch`
    [N], nodes of one graph stay together, and the order within a graph does not depend on the other graphs.
    """
    device = graph.pair_index.device
    key = torch.zeros(graph.num_nodes, dtype=torch.int64, device=device)
    for values in features:
        key = mixed(key + row_hash(values.to(device)))
    source, target = torch.cat([graph.pair_index, graph.pair_index.flip(0)], dim=1)
    for _ in range(ROUNDS):
        around = torch.zeros_like(key).index_add_(0, target, mixed(key + 1)[source])
        key = mixed(key + mixed(around))
    number = torch.arange(graph.num_nodes, device=device)
    if batch is not None:
        batch = batch.to(device)
        number = number - torch.searchsorted(batch, batch)
    order = mixed(number + 1).argsort(stable=True)
    order = order[key[order].argsort(stable=True)]
    return order if batch is None else order[batch[order].argsort(stable=True)]


def in_order(data: Data, order: Tensor) -> Data:
    """Copy `data` with its nodes renumbered: node k of the copy is node `order[k]` of `data`."""
    place = inverse(order)
    out = copy.copy(data)
    for name in data.node_attrs():
        value = data[name]
        if isinstance(value, Tensor):
            out[name] = dense_if_small(value).index_select(0, order.to(value.device))
        else:
            out[name] = [value[node] for node in order.tolist()]
    for name in ("edge_index", "candidate_index"):
        if data.get(name) is not None:
            index = data[name].as_subclass(Tensor)
            out[name] = place.to(index.device)[index.long()]
    out.num_nodes = len(order)
    return out


def row_hash(values: Tensor) -> Tensor:
    """Hash of every row of `values` [N, ...], int64 [N]; equal rows have equal hashes on every device."""
    values = dense_if_small(values.detach())
    if values.layout is not torch.strided:
        row, column = values.indices()
        hashes = torch.zeros(len(values), dtype=torch.int64, device=values.device)
        return hashes.index_add_(0, row, _bits(values.values()) * (mixed(column + 1) | 1))
    values = values.reshape(len(values), -1) if len(values) else values.new_zeros(0, 1)
    factor = mixed(torch.arange(1, values.shape[1] + 1, device=values.device)) | 1
    step = max(ENTRIES_AT_ONCE // max(values.shape[1], 1), 1)
    parts = [(_bits(rows) * factor).sum(1) for rows in values.split(step)]
    return torch.cat(parts) if parts else factor.new_zeros(0)


def _bits(values: Tensor) -> Tensor:
    """Convert values to int64: integers by value, floats by their bits."""
    if not values.is_floating_point():
        return values.long()
    values = values if values.dtype == torch.float64 else values.float()
    bits = (values + 0.0).contiguous()  # turns −0 into 0
    return bits.view(torch.int64) if bits.dtype == torch.float64 else bits.view(torch.int32).long()


def mixed(value: Tensor) -> Tensor:
    """Pseudorandom permutation of the 64-bit integers (the last step of SplitMix64)."""
    value = (value ^ ((value >> 30) & (2**34 - 1))) * -0x40A7B892E31B1A47
    value = (value ^ ((value >> 27) & (2**37 - 1))) * -0x6B2FB644ECCEEE15
    return value ^ ((value >> 31) & (2**33 - 1))
