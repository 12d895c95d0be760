"""Sets of undirected node pairs, each pair one number."""

from __future__ import annotations

import torch
from torch import Tensor

from gumbel_mpnn.graph import PairGraph


def pair_key(pairs: Tensor, num_nodes: int) -> Tensor:
    """One number for each pair, in the order of the pairs: [2, K] → int64 [K]."""
    return pairs[0] * num_nodes + pairs[1]


def contains(keys: Tensor, some: Tensor) -> Tensor:
    """Which of `some` [K] are among the sorted `keys` [P], bool [K]."""
    if keys.numel() == 0:
        return torch.zeros_like(some, dtype=torch.bool)
    place = torch.searchsorted(keys, some).clamp_(max=keys.numel() - 1)
    return keys[place] == some


def clean(pairs: Tensor, graph: PairGraph) -> Tensor:
    """Of `pairs` [2, K] those that are neither edges nor self-pairs: `i < j`, sorted, each once, [2, M]."""
    ends = pairs.sort(dim=0).values
    key = pair_key(ends[:, ends[0] != ends[1]], graph.num_nodes).unique()
    key = key[~contains(pair_key(graph.pair_index, graph.num_nodes), key)]
    num_nodes = max(graph.num_nodes, 1)
    return torch.stack([key // num_nodes, key % num_nodes])


def largest_count(pairs: Tensor) -> int:
    """The number of pairs [2, M] at the node that has most."""
    return int(torch.bincount(pairs.flatten()).max()) if pairs.numel() else 0
