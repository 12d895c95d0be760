"""Compiled state of SDRF: a graph whose edges change, with the curvature of every edge and its extremes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.jit import compiled
from gumbel_mpnn.measures.curvature_kernels import Adjacency, Scratch, Terms, value

BLOCK = 256
"""Number of edges per block; the lowest and the largest curvature of each block are stored."""
POOL_USED, FREE, TOUCHED, LARGEST_CAPACITY, DONE = 0, 1, 2, 3, 4
"""Indices of `State.sizes`."""


class State(NamedTuple):
    """State of the graph. An edge is a number below S, shared by both its arcs; unused numbers are free."""

    graph: Adjacency
    """Neighbors in ascending order; a node may have memory for more of them."""
    capacity: NDArray[np.int64]
    """[N], number of neighbors that fit before those of a node have to be moved."""
    ends: NDArray[np.int32]
    """[2, S], smaller node first; −1 for a free number."""
    terms: Terms
    curvature: NDArray[np.float64]
    """[S]."""
    least: NDArray[np.int32]
    """Edge of lowest curvature of each block, −1 for none; ties are broken by the nodes of the edge."""
    most: NDArray[np.int32]
    """Edge of largest curvature of each block."""
    stale: NDArray[np.uint8]
    """Blocks that changed since `least` and `most` were computed."""
    free: NDArray[np.int32]
    """[S], stack of free numbers."""
    touched: NDArray[np.int32]
    """[S], edges whose curvature the current step may have changed, each once."""
    is_touched: NDArray[np.uint8]
    """[S], whether an edge is in `touched`."""
    sizes: NDArray[np.int64]
    """Memory of neighbors in use, number of free numbers, of touched edges, largest capacity of a node, steps done."""
    scratch: Scratch


@compiled
def wide(number: int) -> int:
    """Convert a number to 64 bits, since a function is compiled again for every type of its arguments."""
    return np.int64(number)  # type: ignore[return-value]


@compiled
def has_room(state: State) -> bool:
    """Whether one more edge can be added even if the neighbors of both its nodes have to be moved."""
    free: int = state.graph.neighbor.size - state.sizes[POOL_USED]
    return free >= 2 * grown(state.sizes[LARGEST_CAPACITY])


@compiled
def grown(capacity: int) -> int:
    """New capacity of a node whose `capacity` is used up."""
    return 2 * capacity + 4


@compiled
def insert(state: State, edge: int, u: int, v: int) -> None:
    """Make `u` and `v` neighbors, joined by `edge`."""
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
    """Move the neighbors of a node to the end of the memory, with twice the capacity."""
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
    """Remove `edge` and free its number."""
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
    """Mark `edge` as touched: its curvature may have changed."""
    if not state.is_touched[edge]:
        state.is_touched[edge] = 1
        state.touched[state.sizes[TOUCHED]] = edge
        state.sizes[TOUCHED] += 1


@compiled
def refresh(state: State, edge: int) -> None:
    """Compute the curvature of `edge` from its terms and the degrees of its nodes."""
    state.curvature[edge] = value(
        state.graph.degree[state.ends[0, edge]],
        state.graph.degree[state.ends[1, edge]],
        state.terms.triangles[edge],
        state.terms.cycles[edge],
        state.terms.largest[edge],
    )
    state.stale[edge // BLOCK] = 1


@compiled
def extremes(state: State) -> tuple[int, int]:
    """Edges of lowest and of largest curvature, −1 if there are no edges; ties are broken by the nodes of the edge."""
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
    """Edge with the smaller `sign` · curvature of two; ties are broken by their nodes. `one` may be −1 for no edge.

    It does not take the whole state as an argument, which would make it ten times slower.
    """
    if one < 0:
        return other
    difference = sign * (curvature[other] - curvature[one])
    if difference != 0:
        return other if difference < 0 else one
    if ends[0, other] != ends[0, one]:
        return other if ends[0, other] < ends[0, one] else one
    return other if ends[1, other] < ends[1, one] else one
