"""Compiled functions: four-cycles and triangles for balanced Forman curvature, and common neighbors of pairs.

For an edge `i ~ j` let `only_i` be the neighbors of `i` that are neither `j` nor neighbors of `j`, and `only_j` vice
versa. The four-cycles through the edge without a diagonal are the edges between `only_i` and `only_j`, a bipartite
graph: the paper's #□ are its nodes of degree at least 1, and γ is its maximum degree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn.util.jit import compiled

Ints = NDArray[np.int64]


class Adjacency(NamedTuple):
    """Adjacency lists in one array; both directions of an edge have the same edge index."""

    start: NDArray[np.int64]
    """[N], offset of the neighbors of each node."""
    degree: NDArray[np.int64]
    """[N], number of neighbors of each node."""
    neighbor: NDArray[np.int32]
    """[A], the neighbors."""
    edge: NDArray[np.int32]
    """[A], index of the edge to each neighbor."""


class Terms(NamedTuple):
    """Counts for every edge, int32 [E] each."""

    triangles: NDArray[np.int32]
    """Number of triangles of the edge."""
    cycles: NDArray[np.int32]
    """Number of nodes on four-cycles without a diagonal, on both sides."""
    largest: NDArray[np.int32]
    """Maximum number of such four-cycles through one of these nodes."""
    ties: NDArray[np.int32]
    """Number of nodes that attain the maximum."""


class Scratch(NamedTuple):
    """Work space of one thread; all entries are 0 between calls."""

    mark: NDArray[np.uint8]
    """[N], 1 for neighbors of i, 2 for neighbors of j, 3 for both."""
    number: NDArray[np.int32]
    """[N], number of four-cycles through each node."""


@compiled
def value(first: int, second: int, triangles: int, cycles: int, largest: int) -> float:
    """Curvature of an edge whose nodes have the degrees `first` and `second`."""
    small, big = min(first, second), max(first, second)
    if small == 1:
        return 0.0
    out = 2 / big + 2 / small - 2 + 2 * triangles / big + triangles / small
    return out + cycles / (largest * big) if cycles > 0 else out


@compiled
def mark_neighbors(graph: Adjacency, node: int, mark: NDArray[np.uint8], bit: int) -> None:
    """Set a bit of `mark` [N] at the neighbors of `node`."""
    for place in range(graph.start[node], graph.start[node] + graph.degree[node]):
        mark[graph.neighbor[place]] |= bit


@compiled
def clear(graph: Adjacency, node: int, mark: NDArray[np.uint8], bit: int = 255) -> None:
    """Remove a bit of `mark` [N], or all, at the neighbors of `node`."""
    for place in range(graph.start[node], graph.start[node] + graph.degree[node]):
        mark[graph.neighbor[place]] &= 255 - bit


@compiled
def cycle_terms(graph: Adjacency, i: int, j: int, scratch: Scratch) -> tuple[int, int, int, int]:
    """Triangles, nodes on four-cycles, maximum number of four-cycles through a node, and ties, for the edge `i ~ j`."""
    mark, number = scratch
    triangles = cost_i = cost_j = 0
    for place in range(graph.start[i], graph.start[i] + graph.degree[i]):
        mark[graph.neighbor[place]] = 1
        cost_i += graph.degree[graph.neighbor[place]]
    for place in range(graph.start[j], graph.start[j] + graph.degree[j]):
        mark[graph.neighbor[place]] += 2
        cost_j += graph.degree[graph.neighbor[place]]
        triangles += mark[graph.neighbor[place]] == 3
    mark[i] = mark[j] = 0
    # Start from the side with fewer edges.
    near, far, near_mark, far_mark = (i, j, 1, 2) if cost_i <= cost_j else (j, i, 2, 1)
    nodes = largest = ties = 0
    for place in range(graph.start[near], graph.start[near] + graph.degree[near]):
        node = graph.neighbor[place]
        if mark[node] != near_mark:
            continue
        here = 0
        for beyond in range(graph.start[node], graph.start[node] + graph.degree[node]):
            other = graph.neighbor[beyond]
            if mark[other] == far_mark:
                here += 1
                number[other] += 1
        if here > 0:
            nodes += 1
            ties = 1 if here > largest else ties + (here == largest)
            largest = max(largest, here)
    for place in range(graph.start[far], graph.start[far] + graph.degree[far]):
        node = graph.neighbor[place]
        here, number[node] = number[node], 0
        if here > 0:
            nodes += 1
            ties = 1 if here > largest else ties + (here == largest)
            largest = max(largest, here)
    clear(graph, i, mark)
    clear(graph, j, mark)
    return triangles, nodes, largest, ties


@compiled
def fill_terms(
    graph: Adjacency, pairs: Ints, first: int, last: int, terms: Terms, curvature: NDArray[np.float64]
) -> None:
    """Count the terms of the edges from `first` to `last`, and compute their `curvature` [E]."""
    num_nodes = graph.start.size
    scratch = Scratch(np.zeros(num_nodes, np.uint8), np.zeros(num_nodes, np.int32))
    for edge in range(first, last):
        i, j = pairs[0, edge], pairs[1, edge]
        triangles, nodes, largest, ties = cycle_terms(graph, i, j, scratch)
        terms.triangles[edge], terms.cycles[edge] = triangles, nodes
        terms.largest[edge], terms.ties[edge] = largest, ties
        curvature[edge] = value(graph.degree[i], graph.degree[j], triangles, nodes, largest)


@compiled
def leap(neighbor: Ints, place: int, end: int, wanted: int) -> int:
    """First place before `end` whose neighbor is not below `wanted`; that at `place` is below it."""
    step = 1
    while place + step < end and neighbor[place + step] < wanted:
        place += step
        step *= 2
    return place + 1 + int(np.searchsorted(neighbor[place + 1 : min(place + step, end)], wanted))


@compiled
def find_common(start: Ints, neighbor: Ints, first: Ints, second: Ints, counts: Ints, arcs: Ints) -> None:
    """Count the common neighbors of each pair in `counts` [P], or fill `arcs` [2, T] unless T is 0.

    These are the arcs from both nodes of each pair to each of their common neighbors, in the order of the pairs. The
    arcs of the graph are sorted by node, with offsets `start` [N + 1], then by neighbor. The neighbors of two nodes are
    merged in leaps, so that a node with few of them is quickly compared with a hub.
    """
    total = 0
    for pair in range(len(first)):
        a, b = start[first[pair]], start[second[pair]]
        end_a, end_b = start[first[pair] + 1], start[second[pair] + 1]
        before = total
        while a < end_a and b < end_b:
            if neighbor[a] == neighbor[b]:
                if arcs.shape[1]:
                    arcs[0, total], arcs[1, total] = a, b
                total += 1
                a += 1
                b += 1
            elif neighbor[a] < neighbor[b]:
                a = leap(neighbor, a, end_a, neighbor[b])
            else:
                b = leap(neighbor, b, end_b, neighbor[a])
        counts[pair] = total - before
