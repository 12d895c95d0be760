"""Compiled functions that find the common neighbors of pairs of nodes, for graphs on a CPU.

The arcs of a graph are sorted by node, then by neighbor; `start` [N + 1] are their offsets by node. The neighbors of
two nodes are merged in leaps, so that a node with few of them is quickly compared with a hub.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn.util.jit import compiled

Ints = NDArray[np.int64]


@compiled
def leap(neighbor: Ints, place: int, end: int, wanted: int) -> int:
    """First place before `end` whose neighbor is not below `wanted`; that at `place` is below it."""
    step = 1
    while place + step < end and neighbor[place + step] < wanted:
        place += step
        step *= 2
    low, high = place + 1, min(place + step, end)
    while low < high:
        middle = (low + high) // 2
        if neighbor[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def count_in_lists(start: Ints, neighbor: Ints, first: Ints, second: Ints) -> Ints:
    """Number of common neighbors of each pair, [P]."""
    counts = np.zeros(len(first), dtype=np.int64)
    for pair in range(len(first)):
        a, b = start[first[pair]], start[second[pair]]
        end_a, end_b = start[first[pair] + 1], start[second[pair] + 1]
        while a < end_a and b < end_b:
            if neighbor[a] == neighbor[b]:
                counts[pair] += 1
                a += 1
                b += 1
            elif neighbor[a] < neighbor[b]:
                a = leap(neighbor, a, end_a, neighbor[b])
            else:
                b = leap(neighbor, b, end_b, neighbor[a])
    return counts


@compiled
def arcs_to_common(start: Ints, neighbor: Ints, first: Ints, second: Ints, counts: Ints) -> Ints:
    """Arcs from both nodes of each pair to each of their common neighbors, [2, T], in the order of the pairs."""
    arcs = np.empty((2, counts.sum()), dtype=np.int64)
    place = 0
    for pair in range(len(first)):
        a, b = start[first[pair]], start[second[pair]]
        end = place + counts[pair]
        while place < end:
            if neighbor[a] == neighbor[b]:
                arcs[0, place] = a
                arcs[1, place] = b
                place += 1
                a += 1
                b += 1
            elif neighbor[a] < neighbor[b]:
                a = leap(neighbor, a, start[first[pair] + 1], neighbor[b])
            else:
                b = leap(neighbor, b, start[second[pair] + 1], neighbor[a])
    return arcs
