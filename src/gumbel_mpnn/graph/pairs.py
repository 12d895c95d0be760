"""Sets of node pairs [2, K], each pair one number: key = i · N + j, in the order of the pairs."""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch_geometric.data import Data

ABOUT_CANDIDATES = ("candidate_index", "max_candidates_per_node")
"""What a candidate strategy adds to a graph."""


def pair_key(pairs: Tensor, num_nodes: int) -> Tensor:
    """The key of every pair: [2, K] of any integers → int64 [K]."""
    ends = pairs.long()
    return ends[0] * num_nodes + ends[1]


def pairs_of(keys: Tensor, num_nodes: int) -> Tensor:
    """The pairs int64 [2, K] that have these keys [K]."""
    return torch.stack([keys // max(num_nodes, 1), keys % max(num_nodes, 1)])


def ordered(pairs: Tensor) -> Tensor:
    """The same pairs with the smaller node first, int64 [2, K]."""
    first, second = pairs.long()
    return torch.stack([torch.minimum(first, second), torch.maximum(first, second)])


def undirected_keys(pairs: Tensor, num_nodes: int) -> Tensor:
    """Sorted keys [P] of the pairs [2, K], whichever node comes first, each once and without self-pairs."""
    ends = ordered(pairs)
    keys: Tensor = pair_key(ends[:, ends[0] != ends[1]], num_nodes).unique()
    return keys


def contains(keys: Tensor, some: Tensor) -> Tensor:
    """Which of `some` [K] are among the sorted `keys` [P], bool [K]."""
    if keys.numel() == 0:
        return torch.zeros_like(some, dtype=torch.bool)
    place = torch.searchsorted(keys, some).clamp_(max=keys.numel() - 1)
    return keys[place] == some


def without_candidates(data: Data) -> Data:
    """A copy of `data` without candidates and what is said of them."""
    bare = copy.copy(data)
    for name in ABOUT_CANDIDATES:
        if name in bare:
            del bare[name]
    return bare


def says_directed(data: Data) -> bool:
    """Whether the graph, or one of a batch, says that its edges have a direction: `undirected` is there and false."""
    said = data.get("undirected")
    return said is False or (isinstance(said, Tensor) and not bool(said.all()))


def without_pairs(data: Data, num_nodes: int) -> Data:
    """A copy of `data` without edges, their attributes and candidates; it says how many nodes it has."""
    bare = without_candidates(data)
    bare.num_nodes = num_nodes  # said first, else PyG takes labels for an attribute of edges where these are as many
    for name in {"edge_index", *bare.edge_attrs()}:
        if name in bare:
            del bare[name]
    return bare
