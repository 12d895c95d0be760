"""Compiled state of SDRF: a graph whose edges change, with the curvature of every edge and its extremes.

When an edge `u ~ v` is added or removed, the counts of all other edges are updated. These are counts of the graph
*without* this edge in both cases, so that they share their code: before and after are exchanged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn.measures.kernels import Adjacency, Scratch, Terms, clear, cycle_terms, mark_neighbors, value
from gumbel_mpnn.util.jit import compiled

BLOCK = 256
"""Number of edges per block; the lowest and the largest curvature of each block are stored."""
POOL_USED, FREE, TOUCHED, DONE = 0, 1, 2, 3
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
    """Memory of neighbors in use, number of free numbers, of touched edges, steps done."""
    scratch: Scratch


@compiled
def wide(number: int) -> int:
    """Convert a number to 64 bits, since a function is compiled again for every type of its arguments."""
    return np.int64(number)  # type: ignore[return-value]


@compiled
def _move(state: State, node: int) -> None:
    """Move the neighbors of a node to the end of the memory, with twice the capacity."""
    graph, begin = state.graph, state.sizes[POOL_USED]
    for offset in range(graph.degree[node]):
        graph.neighbor[begin + offset] = graph.neighbor[graph.start[node] + offset]
        graph.edge[begin + offset] = graph.edge[graph.start[node] + offset]
    graph.start[node] = begin
    state.capacity[node] = 2 * state.capacity[node] + 4
    state.sizes[POOL_USED] += state.capacity[node]


@compiled
def touch(state: State, edge: int) -> None:
    """Mark `edge` as touched: its curvature may have changed."""
    if not state.is_touched[edge]:
        state.is_touched[edge] = 1
        state.touched[state.sizes[TOUCHED]] = edge
        state.sizes[TOUCHED] += 1


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


@compiled
def add(state: State, u: int, v: int) -> int:
    """Add the edge `u ~ v` and update all curvatures; returns the number of the edge."""
    state.sizes[FREE] -= 1
    edge, graph, terms = wide(state.free[state.sizes[FREE]]), state.graph, state.terms
    triangles, cycles, largest, ties = cycle_terms(graph, u, v, state.scratch)
    terms.triangles[edge], terms.cycles[edge] = triangles, cycles
    terms.largest[edge], terms.ties[edge] = largest, ties
    shift(state, u, v, wide(1))
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
    touch(state, edge)
    settle(state)
    return edge


@compiled
def remove(state: State, edge: int) -> None:
    """Remove an edge, free its number, and update all curvatures."""
    graph, u, v = state.graph, wide(state.ends[0, edge]), wide(state.ends[1, edge])
    for node in (u, v):
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
    shift(state, u, v, wide(-1))
    settle(state)


@compiled
def settle(state: State) -> None:
    """Recompute the curvature of every touched edge, and its four-cycles if their largest number is unknown."""
    graph, terms = state.graph, state.terms
    for place in range(state.sizes[TOUCHED]):
        edge = wide(state.touched[place])
        i, j = wide(state.ends[0, edge]), wide(state.ends[1, edge])
        state.is_touched[edge] = 0
        state.stale[edge // BLOCK] = 1
        if terms.largest[edge] > 0 and terms.ties[edge] == 0:
            _, cycles, largest, ties = cycle_terms(graph, i, j, state.scratch)
            terms.cycles[edge], terms.largest[edge], terms.ties[edge] = cycles, largest, ties
        state.curvature[edge] = value(
            graph.degree[i], graph.degree[j], terms.triangles[edge], terms.cycles[edge], terms.largest[edge]
        )
    state.sizes[TOUCHED] = 0


@compiled
def change(terms: Terms, edge: int, without: int, within: int, sign: int) -> None:
    """Update the terms of `edge` for a node whose number of four-cycles through `edge` changes.

    It is `without` in the graph without `u ~ v` and `within` in the graph with it. `sign` is 1 if `u ~ v` is added and
    −1 if it is removed.
    """
    old, new = (without, within) if sign > 0 else (within, without)
    terms.cycles[edge] += (new > 0) - (old > 0)
    if old > 0 and old == terms.largest[edge]:
        terms.ties[edge] -= 1
    if new > terms.largest[edge]:
        terms.largest[edge], terms.ties[edge] = new, 1
    elif new > 0 and new == terms.largest[edge]:
        terms.ties[edge] += 1


@compiled
def shift(state: State, u: int, v: int, sign: int) -> None:
    """Update the terms of all other edges."""
    graph, mark = state.graph, state.scratch.mark
    for end, bit in ((u, 1), (v, 2)):
        mark_neighbors(graph, end, mark, bit)
    _opposite_edges(state, u, v, sign)
    for end, new, at_end in ((u, v, 1), (v, u, 2)):
        _edges_at(state, end, new, at_end, sign)
    for end, bit in ((u, 1), (v, 2)):
        clear(graph, end, mark, bit)


@compiled
def _opposite_edges(state: State, u: int, v: int, sign: int) -> None:
    """Update edges `i ~ j` with `u ~ i` and `j ~ v` but no diagonal, with which `u ~ v` closes a four-cycle."""
    graph, mark, at_i = state.graph, state.scratch.mark, wide(4)
    for place in range(graph.start[u], graph.start[u] + graph.degree[u]):
        i = wide(graph.neighbor[place])
        if mark[i] != 1:
            continue
        mark_neighbors(graph, i, mark, at_i)
        shared = 0  # neighbors of both i and v
        for beyond in range(graph.start[i], graph.start[i] + graph.degree[i]):
            shared += (mark[graph.neighbor[beyond]] & 2) >> 1
        for beyond in range(graph.start[i], graph.start[i] + graph.degree[i]):
            j = graph.neighbor[beyond]
            if mark[j] != 6:
                continue
            at_u, at_v = -1, shared - 1  # i and j themselves do not count
            for last in range(graph.start[j], graph.start[j] + graph.degree[j]):
                bits = mark[graph.neighbor[last]]
                at_u += (bits & 5) == 1
                at_v -= (bits & 6) == 6
            edge = wide(graph.edge[beyond])
            change(state.terms, edge, at_u, at_u + 1, sign)
            change(state.terms, edge, at_v, at_v + 1, sign)
            touch(state, edge)
        clear(graph, i, mark, at_i)


@compiled
def _edges_at(state: State, end: int, new: int, at_end: int, sign: int) -> None:
    """Update edges `end ~ j`: `new` becomes a neighbor of `end` alone, or of both `end` and `j`."""
    graph, mark, number, terms = state.graph, state.scratch.mark, state.scratch.number, state.terms
    at_new, at_j = 3 - at_end, wide(4)
    across = np.empty(mark.size, np.int32)
    for place in range(graph.start[end], graph.start[end] + graph.degree[end]):
        j, edge = wide(graph.neighbor[place]), wide(graph.edge[place])
        mark_neighbors(graph, j, mark, at_j)
        shares = (mark[j] & at_new) != 0
        # The nodes opposite to `new`: if it is shared, its four-cycles disappear, otherwise they appear.
        around, skipped, wanted = (new, at_new, at_end) if shares else (j, at_j, at_new)
        count = cost = 0
        for beyond in range(graph.start[around], graph.start[around] + graph.degree[around]):
            node = graph.neighbor[beyond]
            if (mark[node] & (7 - skipped)) == wanted and node != j:
                across[count] = node
                count += 1
                cost += graph.degree[node]
        if count:
            far, avoided, own = (j, end, at_j) if shares else (end, j, at_end)
            _count_across(state, across[:count], cost, far, avoided, own, at_end | at_j)
        for place_across in range(count):
            here, number[across[place_across]] = number[across[place_across]], 0
            change(terms, edge, here, here + (-1 if shares else 1), sign)
        change(terms, edge, count if shares else 0, 0 if shares else count, sign)
        terms.triangles[edge] += sign * shares
        touch(state, edge)
        clear(graph, j, mark, at_j)


@compiled
def _count_across(
    state: State, nodes: NDArray[np.int32], cost: int, far: int, avoided: int, own: int, bits: int
) -> None:
    """Count, for each of `nodes`, its neighbors that are neighbors of `far` and have only the mark `own` of `bits`.

    Edges are visited from the side that has fewer; `cost` is the number of edges at `nodes`.
    """
    graph, mark, number = state.graph, state.scratch.mark, state.scratch.number
    if graph.degree[far] < cost:
        from_far = 0
        for place in range(graph.start[far], graph.start[far] + graph.degree[far]):
            node = graph.neighbor[place]
            if (mark[node] & bits) == own and node != avoided:
                from_far += graph.degree[node]
        if from_far < cost:
            for node in nodes:
                mark[node] |= 8
            for place in range(graph.start[far], graph.start[far] + graph.degree[far]):
                node = graph.neighbor[place]
                if (mark[node] & bits) == own and node != avoided:
                    for beyond in range(graph.start[node], graph.start[node] + graph.degree[node]):
                        number[graph.neighbor[beyond]] += mark[graph.neighbor[beyond]] >> 3
            for node in nodes:
                mark[node] &= 7
            return
    for node in nodes:
        here = -1  # `avoided` is a neighbor of all of them
        for beyond in range(graph.start[node], graph.start[node] + graph.degree[node]):
            here += (mark[graph.neighbor[beyond]] & bits) == own
        number[node] = here
