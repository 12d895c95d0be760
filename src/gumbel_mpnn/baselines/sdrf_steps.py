"""The flow of SDRF: compiled steps that draw the edge to add without visiting every candidate around an edge.

The candidates of `x ~ y` are the pairs of a node in N(x) ∪ {x} and a node in N(y) ∪ {y} that are not edges. Unless `i`
is `x` or `j` is `y`, the curvature of `x ~ y` after adding `i ~ j` depends only on the kinds of `i` and `j`, of which
there are five each. So it is enough to count kinds.
"""

from __future__ import annotations

import math
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn.baselines.sdrf_state import BLOCK, DONE, State, add, extremes, remove, wide
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures.curvature import adjacency, curvature_terms
from gumbel_mpnn.measures.kernels import Adjacency, Scratch, Terms, clear, mark_neighbors, value
from gumbel_mpnn.nn.replica import derive_seed
from gumbel_mpnn.util.jit import compiled

KINDS = 6
"""Five kinds, and 0 for nodes that are not part of a candidate."""


class Around(NamedTuple):
    """Work space for the nodes around `x ~ y`; all kinds are 0 between calls."""

    kind_x: NDArray[np.uint8]
    """[N], kind of each neighbor of `x` as the first node of a candidate."""
    kind_y: NDArray[np.uint8]
    """[N], kind of each neighbor of `y` as the second node of a candidate."""
    after: NDArray[np.float64]
    """[N], curvature of `x ~ y` after a neighbor of only one of its nodes is joined to the other one."""


class Flow:
    """State of the flow on an undirected graph, which can be advanced a few steps at a time.

    Between two calls of `advance`, the graph is complete and the flow can be stopped. `tau` is the inverse temperature
    of the draw of the edge to add. The edge of largest curvature is removed if that is above `removal_bound`; None for
    no removal.
    """

    def __init__(self, graph: PairGraph, steps: int, tau: float, removal_bound: float | None, seed: int) -> None:
        self.tau, self.bound = tau, math.inf if removal_bound is None else removal_bound
        self.uniforms = np.random.default_rng(derive_seed(seed, "sdrf")).random(steps)
        self.finished = steps == 0
        """Whether no further step is possible."""
        self.state = _first_state(graph, steps)
        nodes = graph.num_nodes
        self._around = Around(np.zeros(nodes, np.uint8), np.zeros(nodes, np.uint8), np.zeros(nodes))

    def advance(self, count: int) -> None:
        """Do up to `count` further steps."""
        last = min(self.done + count, len(self.uniforms))
        ended = advance(self.state, self._around, self.tau, self.bound, self.uniforms, last)
        self.finished = ended or self.done == len(self.uniforms)

    @property
    def done(self) -> int:
        """Number of steps done."""
        return int(self.state.sizes[DONE])

    @property
    def pairs(self) -> NDArray[np.int64]:
        """Current edges `i < j`, sorted, [2, P]."""
        ends = self.state.ends[:, self.state.ends[0] >= 0].astype(np.int64)
        return ends[:, np.lexsort((ends[1], ends[0]))]


def _first_state(graph: PairGraph, steps: int) -> State:
    """Initial state of a graph, with memory for `steps` more edges."""
    given, pairs = adjacency(graph), graph.pair_index.cpu().numpy()
    nodes, count = graph.num_nodes, pairs.shape[1]
    size, blocks = count + steps, -(-(count + steps) // BLOCK)
    # A node that gets neighbors is moved to twice its memory and 4 more, so that all its places together are less than
    # 4 (d + 3) if it has d neighbors at most. Memory that is never used is never touched, and so takes none.
    used = given.neighbor.size
    room = used + 4 * (used + 2 * steps) + 12 * min(nodes, 2 * steps)
    neighbor, edge = np.zeros(room, np.int32), np.zeros(room, np.int32)
    neighbor[:used], edge[:used] = given.neighbor, given.edge
    counted, curvature = curvature_terms(given, pairs)
    ends = np.full((2, size), -1, np.int32)
    ends[:, :count] = pairs
    return State(
        graph=Adjacency(given.start, given.degree, neighbor, edge),
        capacity=given.degree.copy(),
        ends=ends,
        terms=Terms(*(np.concatenate([term, np.zeros(steps, np.int32)]) for term in counted)),
        curvature=np.concatenate([curvature, np.zeros(steps)]),
        least=np.full(blocks, -1, np.int32),
        most=np.full(blocks, -1, np.int32),
        stale=np.ones(blocks, np.uint8),
        free=np.arange(size, dtype=np.int32)[::-1].copy(),
        touched=np.zeros(size, np.int32),
        is_touched=np.zeros(size, np.uint8),
        sizes=np.array([used, steps, 0, 0], np.int64),
        scratch=Scratch(np.zeros(nodes, np.uint8), np.zeros(nodes, np.int32)),
    )


@compiled
def advance(state: State, around: Around, tau: float, bound: float, uniforms: NDArray[np.float64], last: int) -> bool:
    """Do steps until `last` steps are done in total; returns whether no further step is possible.

    The number of steps done is part of the state, so that the two agree even after an interrupt.
    """
    for step in range(state.sizes[DONE], last):
        least, most = extremes(state)
        if least < 0:
            return True
        removing = state.curvature[most] > bound
        i, j = draw(state, around, least, tau, uniforms[step])
        if i >= 0:
            add(state, i, j)
        if removing:
            remove(state, most)
        if i < 0 and not removing:
            return True
        state.sizes[DONE] = step + 1
    return False


@compiled
def draw(state: State, around: Around, edge: int, tau: float, uniform: float) -> tuple[int, int]:
    """Draw a candidate of `edge` with probability softmax(τ · curvature after adding it); −1, −1 if there is none."""
    x, y = wide(state.ends[0, edge]), wide(state.ends[1, edge])
    rows, columns = with_neighbors(state, x), with_neighbors(state, y)
    table = find_kinds(state, around, edge)
    counts, best = count_kinds(state, around, x, rows, columns, table)
    out = -1, -1
    if best > -np.inf:
        weights = np.zeros((KINDS, KINDS))
        for a in range(1, KINDS):
            for b in range(1, KINDS):
                weights[a, b] = exp(tau * min(table[a, b] - best, 0.0))  # kinds above the best do not occur
        out = _choose(state, around, x, y, rows, columns, counts, weights, tau, best, uniform)
    around.kind_x[rows] = 0
    around.kind_y[columns] = 0
    return out


@compiled
def with_neighbors(state: State, node: int) -> NDArray[np.int64]:
    """A node and its neighbors, sorted."""
    begin, degree = state.graph.start[node], state.graph.degree[node]
    out = np.empty(degree + 1, np.int64)
    out[:degree], out[degree] = state.graph.neighbor[begin : begin + degree], node
    out.sort()
    return out


@compiled
def count_kinds(
    state: State,
    around: Around,
    x: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    table: NDArray[np.float64],
) -> tuple[NDArray[np.int64], float]:
    """Number of second nodes of each kind for each first node, [rows, KINDS], and the best curvature."""
    graph = state.graph
    counts = np.zeros((rows.size, KINDS), np.int64)
    totals = np.zeros(KINDS, np.int64)
    best = -np.inf
    for j in columns:
        totals[around.kind_y[j]] += 1
    for row in range(rows.size):
        i = rows[row]
        if i == x:
            for j in columns:
                if around.kind_y[j] and not around.kind_x[j]:
                    best = max(best, around.after[j])
        if not around.kind_x[i]:
            continue
        counts[row] = totals
        counts[row, around.kind_y[i]] -= 1  # itself
        for place in range(graph.start[i], graph.start[i] + graph.degree[i]):
            counts[row, around.kind_y[graph.neighbor[place]]] -= 1
        for kind in range(1, KINDS):
            if counts[row, kind]:
                best = max(best, table[around.kind_x[i], kind])
        if not around.kind_y[i]:
            best = max(best, around.after[i])
    return counts, best


@compiled
def _choose(
    state: State,
    around: Around,
    x: int,
    y: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    counts: NDArray[np.int64],
    weights: NDArray[np.float64],
    tau: float,
    best: float,
    uniform: float,
) -> tuple[int, int]:
    """First candidate at which the cumulative sum of weights exceeds `uniform` times the total."""
    graph, kind_x, kind_y = state.graph, around.kind_x, around.kind_y
    sums = np.zeros(rows.size)
    for row in range(rows.size):
        i = rows[row]
        if i == x:
            for j in columns:
                if kind_y[j] and not kind_x[j]:
                    sums[row] += exp(tau * (around.after[j] - best))
        elif kind_x[i]:
            for kind in range(1, KINDS):
                sums[row] += counts[row, kind] * weights[kind_x[i], kind]
            if not kind_y[i]:
                sums[row] += exp(tau * (around.after[i] - best))
    rest, chosen = uniform * sums.sum(), -1
    for row in range(rows.size):  # because of rounding, this may be the last row with a weight
        if sums[row] > 0:
            if chosen >= 0:
                rest -= sums[chosen]
            chosen = row
            if sums[row] > rest:
                break
    i = rows[chosen]
    mark = state.scratch.mark
    mark[i] = 1
    mark_neighbors(graph, i, mark, 1)
    last = -1
    for j in columns:
        if mark[j] or not (kind_y[j] or j == y):
            continue
        last = j
        direct = i == x or j == y
        rest -= exp(tau * (around.after[j if i == x else i] - best)) if direct else weights[kind_x[i], kind_y[j]]
        if rest < 0:
            break
    mark[i] = 0
    clear(graph, i, mark)
    return i, last


@compiled
def find_kinds(state: State, around: Around, edge: int) -> NDArray[np.float64]:
    """Fill `around`; returns the curvature after joining nodes of two kinds, [KINDS, KINDS].

    The kind of a neighbor of one node is 1 + (it has no four-cycle) + 2 · (it has the largest number of four-cycles);
    that of a neighbor of both nodes is 5.
    """
    graph, mark, number = state.graph, state.scratch.mark, state.scratch.number
    x, y = wide(state.ends[0, edge]), wide(state.ends[1, edge])
    first, second = graph.degree[x], graph.degree[y]
    triangles, cycles, largest = state.terms.triangles[edge], state.terms.cycles[edge], state.terms.largest[edge]
    mark_neighbors(graph, x, mark, 1)
    mark_neighbors(graph, y, mark, 2)
    mark[x] = mark[y] = 0
    for place in range(graph.start[x], graph.start[x] + first):
        node = graph.neighbor[place]
        if mark[node] == 1:
            for beyond in range(graph.start[node], graph.start[node] + graph.degree[node]):
                other = graph.neighbor[beyond]
                if mark[other] == 2:
                    number[node] += 1
                    number[other] += 1
    having = np.zeros(largest + 2, np.int64)  # number of nodes by their number of four-cycles
    for end in (x, y):
        for place in range(graph.start[end], graph.start[end] + graph.degree[end]):
            node = graph.neighbor[place]
            if mark[node] == (1 if end == x else 2):
                having[number[node]] += 1
    for end, own, kinds in ((x, 1, around.kind_x), (y, 2, around.kind_y)):
        for place in range(graph.start[end], graph.start[end] + graph.degree[end]):
            node = graph.neighbor[place]
            if mark[node] == 3:
                kinds[node] = 5
            elif mark[node] == own:
                here = number[node]
                kinds[node] = 1 + (here == 0) + 2 * (here == largest)
                # Joined to the other end, the node is a neighbor of both and has no four-cycles any more.
                left = cycles - (here > 0)
                having[here] -= 1
                for beyond in range(graph.start[node], graph.start[node] + graph.degree[node]):
                    other = graph.neighbor[beyond]
                    if mark[other] == 3 - own:
                        left -= number[other] == 1
                        having[number[other]] -= 1
                        having[number[other] - 1] += 1
                most = largest
                while most > 0 and having[most] == 0:
                    most -= 1
                around.after[node] = value(first + (own == 2), second + (own == 1), triangles + 1, left, most)
                for beyond in range(graph.start[node], graph.start[node] + graph.degree[node]):
                    other = graph.neighbor[beyond]
                    if mark[other] == 3 - own:
                        having[number[other]] += 1
                        having[number[other] - 1] -= 1
                having[here] += 1
    for end in (x, y):
        for place in range(graph.start[end], graph.start[end] + graph.degree[end]):
            mark[graph.neighbor[place]] = number[graph.neighbor[place]] = 0
    table = np.full((KINDS, KINDS), state.curvature[edge])
    for a in range(4):
        for b in range(4):
            more = (a & 1) + (b & 1)
            most = largest + ((a | b) >> 1)
            table[1 + a, 1 + b] = value(first, second, triangles, cycles + more, most)
    return table
