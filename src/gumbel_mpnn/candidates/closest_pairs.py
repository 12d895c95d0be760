"""Exact search for the most similar pairs of a graph, one tile of the similarity matrix at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gumbel_mpnn.candidates.blocks import Block, Span
from gumbel_mpnn.candidates.similarity import full_precision, memory, sortable
from gumbel_mpnn.graph import PairGraph, contains, pair_key


def closest_pairs(x: Tensor, graph: PairGraph, blocks: Sequence[Block], quota: Tensor) -> Tensor:
    """Most similar pairs of each graph that are not edges, at most its `quota` [graphs], int64 [2, K].

    Similarity is the dot product of embeddings float32 [N, D]. Only pairs of similarity above 0 are returned. Ties are
    broken in favor of pairs with close node numbers, so that no node is preferred because of its number. A block of
    several graphs is one tile.
    """
    search = _Search(x, graph)
    quotas = quota.tolist()
    found = [graph.pair_index.new_empty(2, 0)]
    with full_precision():
        for block in blocks:
            if block.graph_of is not None:
                found.append(search.best_of_several(block, quota).pairs)
            elif quotas[block.graph]:
                found.append(search.best_of_one(block, quotas[block.graph]).pairs)
    return torch.cat(found, dim=1)


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
        """Sort by similarity, best first; ties by the distance of the node numbers, then by the first node."""
        first, second = self.pairs
        by_number = first.argsort()
        key = sortable(self.score, second - first)[by_number]
        return self[by_number[key.argsort(descending=True, stable=True)]]

    @staticmethod
    def join(parts: Sequence[Scored]) -> Scored:
        """Concatenate several lists of pairs."""
        return Scored(torch.cat([part.score for part in parts]), torch.cat([part.pairs for part in parts], dim=1))


class _Search:
    """Embeddings and edges of one search."""

    def __init__(self, x: Tensor, graph: PairGraph) -> None:
        self.x, self.num_nodes = x, graph.num_nodes
        self.edges = pair_key(graph.pair_index, graph.num_nodes)

    def best_of_one(self, block: Block, quota: int) -> Scored:
        """Best `quota` pairs of a block with one graph.

        Once `quota` pairs are found, only pairs that are better than the worst of them are collected. So there are
        never many more than twice the quota.
        """
        found: list[Scored] = []
        total, floor, floor_gap = 0, 0.0, 0
        for rows, cols in _tiles(block.chunks(_tile_side(self.x.device))):
            # Among equally similar pairs, the one whose node numbers are closer comes first.
            never_nearer = cols[0] - (rows[1] - 1) > floor_gap
            found.append(self._above(rows, cols, floor, strictly=floor == 0 or never_nearer))
            total += len(found[-1])
            if total > quota and (total > 2 * quota or floor == 0):
                found, total = [Scored.join(found).in_order()[:quota]], quota
                worst = found[0].pairs[:, -1].tolist()
                floor, floor_gap = float(found[0].score[-1]), worst[1] - worst[0]
        return Scored.join(found).in_order()[:quota]

    def best_of_several(self, block: Block, quota: Tensor) -> Scored:
        """Best pairs of each graph of a block, up to its `quota` [graphs]."""
        assert block.graph_of is not None
        span = (block.start, block.stop)
        found = self._above(span, span, 0.0, strictly=True)
        first, second = block.graph_of[found.pairs - block.start]
        found = found[first == second].in_order()
        graph, order = block.graph_of[found.pairs[0] - block.start].sort(stable=True)
        counts = torch.bincount(graph - block.graph)
        begins = counts.cumsum(0) - counts
        place = torch.arange(graph.numel(), device=graph.device) - begins[graph - block.graph]
        return found[order[place < quota[graph]]]

    def _above(self, rows: Span, cols: Span, floor: float, *, strictly: bool) -> Scored:
        """Pairs of a tile that are not edges and have a similarity above `floor`, or equal to it unless `strictly`."""
        height, width = rows[1] - rows[0], cols[1] - cols[0]
        tile = self.x.new_full((-(-height * width // _LANE), _LANE), -torch.inf)
        scores = tile.view(-1)[: height * width].view(height, width)
        torch.mm(self.x[slice(*rows)], self.x[slice(*cols)].T, out=scores)
        good = torch.gt if strictly else torch.ge
        # Most lanes have no good entry: checking their maxima takes a third of the time of checking every entry.
        lanes = good(tile.amax(dim=1), floor).nonzero().squeeze(1)
        lane, place = good(tile[lanes], floor).nonzero().T
        entry = lanes[lane] * _LANE + place
        pairs = torch.stack([rows[0] + entry // width, cols[0] + entry % width])
        found = Scored(tile[lanes[lane], place], pairs)[pairs[0] < pairs[1]]
        return found[~contains(self.edges, pair_key(found.pairs, self.num_nodes))]


def _tiles(chunks: Sequence[Span]) -> Iterator[tuple[Span, Span]]:
    """Tiles on and above the diagonal, those closest to it first."""
    for distance in range(len(chunks)):
        yield from zip(chunks, chunks[distance:], strict=False)


def _tile_side(device: torch.device) -> int:
    """Rows and columns of a tile; an entry needs up to 64 bytes, if all pairs of the tile are collected."""
    return max(math.isqrt(memory(device) // 64), 1)


_LANE = 64
