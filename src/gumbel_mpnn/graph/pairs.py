"""Sets of node pairs [2, K], each encoded as one integer, key = i · N + j, which preserves the order of pairs.

If pairs of a PyG `Batch` are changed, its slices must be updated, without which it cannot be split again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

CANDIDATE_OF = "candidate_of"
"""Attribute with the digest of the nodes that the candidates of a graph were computed for."""
ABOUT_CANDIDATES = ("candidate_index", "max_candidates_per_node", CANDIDATE_OF)
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


def can_be_taken_apart(data: Data) -> bool:
    """Whether `data` is a batch of several graphs that PyG can split again."""
    return isinstance(data, Batch) and hasattr(data, "_slice_dict")


def renew_pairs(batch: Batch, index: str, about: Iterable[str] = ()) -> None:
    """Update the slices of the pairs `batch[index]` [2, K], which are sorted by their first node.

    The slices of the attributes `about`, which have one value per pair, are updated too.
    """
    first = batch[index][0].contiguous()
    starts = torch.searchsorted(first, batch.ptr.to(first.device)).cpu()
    first_nodes = batch.ptr[:-1].cpu()
    _renew(batch, index, starts, first_nodes)
    for name in about:
        _renew(batch, name, starts, torch.zeros_like(first_nodes))


def renew_numbers(batch: Batch, name: str) -> None:
    """Update the slices of the attribute `name` [B], which has one value per graph."""
    count = batch.ptr.numel() - 1
    _renew(batch, name, torch.arange(count + 1), torch.zeros(count, dtype=torch.int64))


def _renew(batch: Batch, name: str, starts: Tensor, increments: Tensor) -> None:
    # New dictionaries: a transform works on a shallow copy and must not change the original.
    batch._slice_dict = {**batch._slice_dict, name: starts}
    batch._inc_dict = {**batch._inc_dict, name: increments}
