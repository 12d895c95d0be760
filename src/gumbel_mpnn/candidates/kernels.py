"""Compiled functions that draw candidates at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn.measures.kernels import Adjacency, clear, mark_neighbors
from gumbel_mpnn.util.jit import compiled

TRIES = 16
"""Random draws per pair wanted, if there are too many pairs to go through all."""
FEW = 64
"""All pairs are gone through if there are at most this many per pair wanted."""


@compiled
def scrambled(value: np.uint64) -> np.uint64:
    """Pseudorandom permutation of the 64-bit numbers (the last step of SplitMix64).

    It must never change: numba inlines it in functions of other files and caches them without noticing the change.
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def keep_smallest(hashes: NDArray[np.uint64], drawn: NDArray[np.int64], count: int, value: np.uint64, what: int) -> int:
    """Insert `what`, whose hash is `value`, into `count` of `drawn` by ascending `hashes`; returns the new number.

    The largest hash is dropped if the arrays are full. What is drawn already, and so has the same hash, is left out.
    """
    place = np.searchsorted(hashes[:count], value)
    if place == len(hashes) or (place < count and hashes[place] == value):
        return count
    count = min(count + 1, len(hashes))
    for after in range(count - 1, place, -1):
        hashes[after], drawn[after] = hashes[after - 1], drawn[after - 1]
    hashes[place], drawn[place] = value, what
    return count


@compiled
def draw_two_hop(
    rowptr: NDArray[np.int32],
    col: NDArray[np.int32],
    first: NDArray[np.uint64],
    stream: np.uint64,
    drawn: NDArray[np.int64],
    begin: int,
    end: int,
) -> None:
    """Fill rows `begin` to `end` of `drawn` [N, per_node] with the nodes at distance two with the smallest hashes.

    The hash of a node does not depend on the path to it, so all nodes are equally likely, and the two-hop neighborhood
    need not be stored. Nodes are numbered from the first node of their graph, `first` [N].
    """
    per_node = drawn.shape[1]
    hashes = np.empty(per_node, dtype=np.uint64)  # of the nodes drawn so far, ascending
    for node in range(begin, end):
        own = scrambled(np.uint64(node) - first[node] + stream)
        neighbors = col[rowptr[node] : rowptr[node + 1]]
        count = 0
        for middle in neighbors:
            for other in col[rowptr[middle] : rowptr[middle + 1]]:
                value = scrambled(own ^ (np.uint64(other) - first[node]))
                if count == per_node and value >= hashes[count - 1]:
                    continue
                beside = np.searchsorted(neighbors, other)
                if other == node or (beside < neighbors.size and neighbors[beside] == other):
                    continue
                count = keep_smallest(hashes, drawn[node], count, value, other)


@compiled
def draw_around(
    graph: Adjacency,
    pairs: NDArray[np.int64],
    edges: NDArray[np.int64],
    stream: np.uint64,
    drawn: NDArray[np.int64],
) -> None:
    """Fill each row of `drawn` [E, per_edge] with pairs `i · N + j` around an edge; missing pairs are −1.

    If there are few pairs, those with the smallest hashes are chosen. Otherwise, pairs are drawn at random until enough
    are found that are not edges.
    """
    num_nodes, per_edge = graph.start.size, drawn.shape[1]
    mark = np.zeros(num_nodes, np.uint8)
    first, second = np.empty(num_nodes, np.int64), np.empty(num_nodes, np.int64)
    hashes = np.empty(per_edge, np.uint64)
    for row in range(edges.size):
        x, y = pairs[0, edges[row]], pairs[1, edges[row]]
        mark_neighbors(graph, x, mark, 1)
        mark_neighbors(graph, y, mark, 2)
        mark[x], mark[y] = 1, 2
        num_first = _list_alone(graph, mark, x, 1, first)
        num_second = _list_alone(graph, mark, y, 2, second)
        own = scrambled(stream ^ np.uint64(x * num_nodes + y))
        if num_first * num_second <= FEW * per_edge:
            count = 0
            for a in range(num_first):
                for b in range(num_second):
                    key = min(first[a], second[b]) * num_nodes + max(first[a], second[b])
                    value = scrambled(own ^ np.uint64(key))
                    if count == per_edge and value >= hashes[count - 1]:
                        continue
                    if not _joined(graph, first[a], second[b]):
                        count = keep_smallest(hashes, drawn[row], count, value, key)
        else:
            count = 0
            for attempt in range(TRIES * per_edge):
                value = scrambled(own + np.uint64(attempt))
                a = first[value % np.uint64(num_first)]
                b = second[(value >> np.uint64(32)) % np.uint64(num_second)]
                key = min(a, b) * num_nodes + max(a, b)
                if (drawn[row, :count] == key).any() or _joined(graph, a, b):
                    continue
                drawn[row, count] = key
                count += 1
                if count == per_edge:
                    break
        for end in (x, y):
            mark[end] = 0
            clear(graph, end, mark)


@compiled
def _list_alone(graph: Adjacency, mark: NDArray[np.uint8], end: int, own: int, out: NDArray[np.int64]) -> int:
    """Write `end` and its neighbors with the mark `own` to `out`; returns their number."""
    out[0] = end
    count = 1
    for place in range(graph.start[end], graph.start[end] + graph.degree[end]):
        if mark[graph.neighbor[place]] == own:
            out[count] = graph.neighbor[place]
            count += 1
    return count


@compiled
def _joined(graph: Adjacency, i: int, j: int) -> bool:
    """Whether two nodes are neighbors, by binary search."""
    node, other = (i, j) if graph.degree[i] <= graph.degree[j] else (j, i)
    neighbors = graph.neighbor[graph.start[node] : graph.start[node] + graph.degree[node]]
    place = np.searchsorted(neighbors, other)
    return bool(place < len(neighbors) and neighbors[place] == other)
