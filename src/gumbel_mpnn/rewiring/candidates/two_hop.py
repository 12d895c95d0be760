"""Candidates from each node's two-hop neighborhood, drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.errors import check_at_least, check_whole
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.streams import derive_seed
from gumbel_mpnn.rewiring.candidates.base import CandidateStrategy, candidates


@candidates.register("two_hop", "2-hop")
class TwoHop(CandidateStrategy):
    """For each node up to `per_node` random nodes at distance two, each as likely as the others.

    Args:
        per_node: How many nodes each node draws, without replacement; a pair that both ends draw counts once.
        seed: The same seed draws the same nodes of the same graph, on every machine and in every batch.
    """

    def __init__(self, per_node: int = 3, seed: int = 0) -> None:
        check_at_least(1, per_node=per_node)
        check_whole(seed=seed)
        self.per_node, self.seed = per_node, seed

    @property
    def reads(self) -> tuple[str, ...]:
        """Nothing but the edges."""
        return ()

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Each node with the nodes it drew, int64 [2, K]."""
        batch = data.get("batch")
        drawn = torch.from_numpy(draw(graph, self.per_node, self.seed, batch)).to(graph.pair_index.device)
        node, place = (drawn >= 0).nonzero().T
        return torch.stack([node, drawn[node, place]])


def draw(graph: PairGraph, per_node: int, seed: int, batch: Tensor | None = None) -> NDArray[np.int64]:
    """Random nodes at distance two of each node, [N, per_node], −1 where there are no more.

    Where `batch` [N] says which graph a node is in, nodes are numbered within it: what is drawn does not depend on the
    graphs before.
    """
    rowptr, col = (index.cpu().numpy() for index in (graph.arcs.rowptr, graph.arcs.col))
    first = _first_of_graph(graph.num_nodes, batch)
    number = np.arange(graph.num_nodes, dtype=np.uint64) - first
    streams = _scramble(number + np.uint64(derive_seed(seed, "two_hop")))
    drawn = np.full((graph.num_nodes, per_node), -1, dtype=np.int64)
    _compiled()(rowptr, col, first, streams, drawn)
    return drawn


def _first_of_graph(num_nodes: int, batch: Tensor | None) -> NDArray[np.uint64]:
    """The first node of the graph that each node is in, [N]."""
    if batch is None:
        return np.zeros(num_nodes, dtype=np.uint64)
    numbers = batch.cpu().numpy()
    return np.searchsorted(numbers, numbers).astype(np.uint64)


def _draw(
    rowptr: NDArray[np.int32],
    col: NDArray[np.int32],
    first: NDArray[np.uint64],
    streams: NDArray[np.uint64],
    drawn: NDArray[np.int64],
) -> None:
    """Fill each row of `drawn` [N, per_node] with the nodes at distance two whose hashes in its stream are smallest.

    However many paths lead to a node, its hash is the same on each: all are equally likely, and the two-hop
    neighborhood is walked through but never stored.
    """
    per_node = drawn.shape[1]
    hashes = np.empty(per_node, dtype=np.uint64)  # of the nodes drawn so far, ascending
    for node in range(drawn.shape[0]):
        neighbors = col[rowptr[node] : rowptr[node + 1]]
        count = 0
        for middle in neighbors:
            for other in col[rowptr[middle] : rowptr[middle + 1]]:
                # `_scramble`, written out: numba does not cache what calls a function that is compiled only now.
                value = streams[node] ^ (np.uint64(other) - first[node])
                value = (value ^ (value >> _SHIFTS[0])) * _FACTORS[0]
                value = (value ^ (value >> _SHIFTS[1])) * _FACTORS[1]
                value = value ^ (value >> _SHIFTS[2])
                if count == per_node and value >= hashes[count - 1]:
                    continue
                beside = np.searchsorted(neighbors, other)
                if other == node or (beside < neighbors.size and neighbors[beside] == other):
                    continue
                place = np.searchsorted(hashes[:count], value)
                if place < count and hashes[place] == value:  # no two nodes have the same hash
                    continue
                count = min(count + 1, per_node)
                for after in range(count - 1, place, -1):
                    hashes[after], drawn[node, after] = hashes[after - 1], drawn[node, after - 1]
                hashes[place], drawn[node, place] = value, other


def _scramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A permutation of the 64-bit numbers that looks random (the last step of SplitMix64)."""
    values = (values ^ (values >> _SHIFTS[0])) * _FACTORS[0]
    values = (values ^ (values >> _SHIFTS[1])) * _FACTORS[1]
    return values ^ (values >> _SHIFTS[2])


@cache
def _compiled() -> Callable[..., None]:
    """`_draw` as machine code, kept between runs where there is a folder to write to."""
    import numba

    try:
        compiled: Callable[..., None] = numba.njit(cache=True)(_draw)
    except RuntimeError:  # numba found no such folder
        compiled = numba.njit()(_draw)
    return compiled


_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
