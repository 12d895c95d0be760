"""What a set of proposed pairs comes to."""

from __future__ import annotations

import torch
from torch import Tensor

from gumbel_mpnn.graph import PairGraph, contains, pair_key, pairs_of, undirected_keys


def clean(pairs: Tensor, graph: PairGraph) -> Tensor:
    """Of `pairs` [2, K] those that are neither edges nor self-pairs: `i < j`, sorted, each once, [2, M]."""
    keys = undirected_keys(pairs, graph.num_nodes)
    keys = keys[~contains(pair_key(graph.pair_index, graph.num_nodes), keys)]
    return pairs_of(keys, graph.num_nodes)


def largest_count(pairs: Tensor) -> int:
    """The number of pairs [2, M] at the node that has most."""
    return int(torch.bincount(pairs.flatten()).max()) if pairs.numel() else 0
