"""A graph whose edges come and go while curvatures, their least and their largest are kept up to date, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.jit import compiled
from gumbel_mpnn.measures.curvature_kernels import Adjacency, Scratch, Terms, value

BLOCK = 256
"""Edges whose least and largest curvature are kept together."""
POOL_USED, FREE, TOUCHED, LARGEST_CAPACITY, DONE = 0, 1, 2, 3, 4
"""Places in `State.sizes`."""


class State(NamedTuple):
    """An edge is a number below S, free or in use; both its arcs carry it."""

    graph: Adjacency
    """Neighbors in ascending order; each node may have room for some more."""
    capacity: NDArray[np.int64]
    """[N], neighbors that fit before a node's have to move."""
    ends: NDArray[np.int32]
    """[2, S], smaller node first; −1 for a free number."""
    terms: Terms
    curvature: NDArray[np.float64]
    """[S]."""
    least: NDArray[np.int32]
    """The edge of least curvature of each block of numbers, −1 for none; of equal ones, the first by its ends."""
    most: NDArray[np.int32]
    stale: NDArray[np.uint8]
    """Blocks where something changed since."""
    free: NDArray[np.int32]
    """[S], the free numbers, last in first out."""
    touched: NDArray[np.int32]
    """[S], edges whose curvature the step under way may have changed, each once."""
    is_touched: NDArray[np.uint8]
    """[S]."""
    sizes: NDArray[np.int64]
    """Neighbors' places in use, free numbers, touched edges, largest capacity of a node, steps done."""
    scratch: Scratch
    way: NDArray[np.int32]
    """[N], work space: 0 between calls."""


@compiled
def wide(number: int) -> int:
    """The same number in 64 bits: a function is compiled anew for every width of its arguments."""
    return np.int64(number)  # type: ignore[return-value]


@compiled
def has_room(state: State) -> bool:
    """Whether one more edge can be added even if both its ends' neighbors have to move."""
    free: int = state.graph.neighbor.size - state.sizes[POOL_USED]
    return free >= 2 * grown(state.sizes[LARGEST_CAPACITY])


@compiled
def grown(capacity: int) -> int:
    """How many places a node gets whose `capacity` is used up."""
    return 2 * capacity + 4


@compiled
def insert(state: State, edge: int, u: int, v: int) -> None:
    """Make `u` and `v` neighbors by `edge`."""
    graph = state.graph
    for node, other in ((u, v), (v, u)):
        if graph.degree[node] == state.capacity[node]:
            _move(state, node)
        place = graph.start[node] + graph.degree[node]
        while place > graph.start[node] and graph.neighbor[place - 1] > other:
            graph.neighbor[place], graph.edge[place] = graph.neighbor[place - 1], graph.edge[place - 1]
            place -= 1
        graph.neighbor[place], graph.edge[place] = other, edge
        graph.degree[node] += 1
    state.ends[0, edge], state.ends[1, edge] = min(u, v), max(u, v)


@compiled
def _move(state: State, node: int) -> None:
    """Give a node twice the room at the end of the pool."""
    graph, begin = state.graph, state.sizes[POOL_USED]
    for offset in range(graph.degree[node]):
        graph.neighbor[begin + offset] = graph.neighbor[graph.start[node] + offset]
        graph.edge[begin + offset] = graph.edge[graph.start[node] + offset]
    graph.start[node] = begin
    state.capacity[node] = grown(state.capacity[node])
    state.sizes[POOL_USED] += state.capacity[node]
    state.sizes[LARGEST_CAPACITY] = max(state.sizes[LARGEST_CAPACITY], state.capacity[node])


@compiled
def erase(state: State, edge: int) -> None:
    """Take `edge` away; its number is free from now on."""
    graph = state.graph
    for side in range(2):
        node = wide(state.ends[side, edge])
        graph.degree[node] -= 1
        found = False
        for place in range(graph.start[node], graph.start[node] + graph.degree[node]):
            found = found or graph.edge[place] == edge
            if found:
                graph.neighbor[place], graph.edge[place] = graph.neighbor[place + 1], graph.edge[place + 1]
    state.ends[0, edge] = state.ends[1, edge] = -1
    state.stale[edge // BLOCK] = 1
    state.free[state.sizes[FREE]] = edge
    state.sizes[FREE] += 1


@compiled
def touch(state: State, edge: int) -> None:
    """Note that the curvature of `edge` may have changed."""
    if not state.is_touched[edge]:
        state.is_touched[edge] = 1
        state.touched[state.sizes[TOUCHED]] = edge
        state.sizes[TOUCHED] += 1


@compiled
def refresh(state: State, mode: int, edge: int) -> None:
    """The curvature of `edge`, from its terms and its ends' degrees."""
    state.curvature[edge] = value(
        mode,
        state.graph.degree[state.ends[0, edge]],
        state.graph.degree[state.ends[1, edge]],
        state.terms.triangles[edge],
        state.terms.cycles[edge],
        state.terms.largest[edge],
    )
    state.stale[edge // BLOCK] = 1


@compiled
def extremes(state: State) -> tuple[int, int]:
    """The edges of least and of largest curvature, −1 where there is no edge; of equal ones the first by its ends."""
    curvature, ends = state.curvature, state.ends
    least = most = wide(-1)
    for block in range(state.stale.size):
        if state.stale[block]:
            low = high = wide(-1)
            for edge in range(block * BLOCK, min((block + 1) * BLOCK, curvature.size)):
                if ends[0, edge] >= 0:
                    low = _better(curvature, ends, low, edge, 1.0)
                    high = _better(curvature, ends, high, edge, -1.0)
            state.least[block], state.most[block], state.stale[block] = low, high, 0
        if state.least[block] >= 0:
            least = _better(curvature, ends, least, wide(state.least[block]), 1.0)
            most = _better(curvature, ends, most, wide(state.most[block]), -1.0)
    return least, most


@compiled
def _better(curvature: NDArray[np.float64], ends: NDArray[np.int32], one: int, other: int, sign: float) -> int:
    """Of two edges (`one` may be −1) that of smaller `sign` times curvature, else that of smaller ends.

    It is called for every edge of a block: with the whole state as argument it would be ten times slower.
    """
    if one < 0:
        return other
    difference = sign * (curvature[other] - curvature[one])
    if difference != 0:
        return other if difference < 0 else one
    if ends[0, other] != ends[0, one]:
        return other if ends[0, other] < ends[0, one] else one
    return other if ends[1, other] < ends[1, one] else one
