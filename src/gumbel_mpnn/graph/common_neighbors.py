"""Common neighbors of pairs of nodes."""

from __future__ import annotations

import torch
from torch import Tensor

PAIRS_AT_ONCE = 2**18
"""Pairs whose neighbors are looked up at once."""


def count_common(arcs: Tensor, num_nodes: int, pairs: Tensor) -> Tensor:
    """Number of nodes that are neighbors of both nodes of a pair [2, P], int64 [P].

    The neighbors of the node with fewer of them are looked up among those of the other node.

    Args:
        arcs: Nodes and their neighbors [2, A], sorted by node, then by neighbor, without repeats.
        num_nodes: Number of nodes.
        pairs: Pairs of nodes.
    """
    node, neighbor = arcs
    keys = node * num_nodes + neighbor
    degree = torch.bincount(node, minlength=num_nodes)
    begin = degree.cumsum(0) - degree
    first, second = pairs
    swap = degree[first] > degree[second]
    few, many = torch.where(swap, second, first), torch.where(swap, first, second)
    parts = [
        _count_in(few[k : k + PAIRS_AT_ONCE], many[k : k + PAIRS_AT_ONCE], degree, begin, neighbor, keys)
        for k in range(0, pairs.shape[1], PAIRS_AT_ONCE)
    ]
    return torch.cat(parts) if parts else degree.new_zeros(0)


def _count_in(few: Tensor, many: Tensor, degree: Tensor, begin: Tensor, neighbor: Tensor, keys: Tensor) -> Tensor:
    lengths = degree[few]
    pair = torch.repeat_interleave(torch.arange(len(few), device=few.device), lengths)
    step = torch.arange(len(pair), device=few.device) - (lengths.cumsum(0) - lengths)[pair]
    wanted = many[pair] * len(degree) + neighbor[begin[few][pair] + step]
    place = torch.searchsorted(keys, wanted).clamp(max=max(len(keys) - 1, 0))
    found = keys[place] == wanted if len(keys) else wanted < 0
    return torch.bincount(pair[found], minlength=len(few))
