"""Compiled functions that update the curvatures of all edges after an edge is added or removed.

All counts are of the graph *without* this edge `u ~ v`, whether it is added or removed, so that both cases share their
code: before and after are exchanged.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.jit import compiled
from gumbel_mpnn.baselines.sdrf.state import FREE, TOUCHED, State, erase, insert, refresh, touch, wide
from gumbel_mpnn.measures.curvature_kernels import Terms, cycle_terms


@compiled
def add(state: State, u: int, v: int) -> int:
    """Add the edge `u ~ v` and update all curvatures; returns the number of the edge."""
    state.sizes[FREE] -= 1
    edge, terms = wide(state.free[state.sizes[FREE]]), state.terms
    triangles, cycles, largest, ties = cycle_terms(state.graph, u, v, state.scratch)
    terms.triangles[edge], terms.cycles[edge] = triangles, cycles
    terms.largest[edge], terms.ties[edge] = largest, ties
    shift(state, u, v, wide(1))
    insert(state, edge, u, v)
    touch(state, edge)
    settle(state)
    return edge


@compiled
def remove(state: State, edge: int) -> None:
    """Remove an edge and update all curvatures."""
    u, v = wide(state.ends[0, edge]), wide(state.ends[1, edge])
    erase(state, edge)
    shift(state, u, v, wide(-1))
    settle(state)


@compiled
def settle(state: State) -> None:
    """Recompute the curvature of every touched edge, and its four-cycles if their largest number is unknown."""
    terms = state.terms
    for place in range(state.sizes[TOUCHED]):
        edge = wide(state.touched[place])
        state.is_touched[edge] = 0
        if terms.largest[edge] > 0 and terms.ties[edge] == 0:
            i, j = wide(state.ends[0, edge]), wide(state.ends[1, edge])
            _, cycles, largest, ties = cycle_terms(state.graph, i, j, state.scratch)
            terms.cycles[edge], terms.largest[edge], terms.ties[edge] = cycles, largest, ties
        refresh(state, edge)
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
    for end, bit in ((u, 1), (v, 2)):
        _mark(state, end, bit)
    _opposite_edges(state, u, v, sign)
    for end, new, at_end in ((u, v, 1), (v, u, 2)):
        _edges_at(state, end, new, at_end, sign)
    for end, bit in ((u, 1), (v, 2)):
        _unmark(state, end, bit)


@compiled
def _opposite_edges(state: State, u: int, v: int, sign: int) -> None:
    """Update edges `i ~ j` with `u ~ i` and `j ~ v` but no diagonal, with which `u ~ v` closes a four-cycle."""
    graph, mark, at_i = state.graph, state.scratch.mark, wide(4)
    for place in range(graph.start[u], graph.start[u] + graph.degree[u]):
        i = wide(graph.neighbor[place])
        if mark[i] != 1:
            continue
        _mark(state, i, at_i)
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
        _unmark(state, i, at_i)


@compiled
def _edges_at(state: State, end: int, new: int, at_end: int, sign: int) -> None:
    """Update edges `end ~ j`: `new` becomes a neighbor of `end` alone, or of both `end` and `j`."""
    graph, mark, number, terms = state.graph, state.scratch.mark, state.scratch.number, state.terms
    at_new, at_j = 3 - at_end, wide(4)
    across = np.empty(mark.size, np.int32)
    for place in range(graph.start[end], graph.start[end] + graph.degree[end]):
        j, edge = wide(graph.neighbor[place]), wide(graph.edge[place])
        _mark(state, j, at_j)
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
        _unmark(state, j, at_j)


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


@compiled
def _mark(state: State, node: int, bit: int) -> None:
    for place in range(state.graph.start[node], state.graph.start[node] + state.graph.degree[node]):
        state.scratch.mark[state.graph.neighbor[place]] |= bit


@compiled
def _unmark(state: State, node: int, bit: int) -> None:
    for place in range(state.graph.start[node], state.graph.start[node] + state.graph.degree[node]):
        state.scratch.mark[state.graph.neighbor[place]] &= 7 - bit
