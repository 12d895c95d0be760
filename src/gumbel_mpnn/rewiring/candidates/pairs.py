"""Sets of undirected node pairs, each pair one number, and lists of pairs with their similarity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring.candidates.similarity import sortable


@dataclass(frozen=True, eq=False)
class Scored:
    """Pairs `i < j` with their similarity."""

    score: Tensor
    """float32 [K]."""
    pairs: Tensor
    """int64 [2, K]."""

    def __getitem__(self, which: Tensor | slice) -> Scored:
        """Some of the pairs."""
        return Scored(self.score[which], self.pairs[:, which])

    def __len__(self) -> int:
        return self.score.numel()

    def in_order(self) -> Scored:
        """Best first; of equals the nearest numbers, then the lowest."""
        first, second = self.pairs
        by_number = first.argsort()
        key = sortable(self.score, second - first)[by_number]
        return self[by_number[key.argsort(descending=True, stable=True)]]

    @staticmethod
    def join(parts: Sequence[Scored]) -> Scored:
        """One list after the other."""
        return Scored(torch.cat([part.score for part in parts]), torch.cat([part.pairs for part in parts], dim=1))


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
