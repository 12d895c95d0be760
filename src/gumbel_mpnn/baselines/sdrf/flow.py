"""Stochastic discrete Ricci flow on a graph."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures.curvature import adjacency, count_terms
from gumbel_mpnn.nn.replica_rng import derive_seed

if TYPE_CHECKING:
    from gumbel_mpnn.baselines.sdrf.state import State


class Flow:
    """State of the flow on an undirected graph, which can be advanced a few steps at a time.

    Between two calls of `advance`, the graph is complete and the flow can be stopped. `tau` is the inverse temperature
    of the draw of the edge to add. The edge of largest curvature is removed if that is above `removal_bound`; None for
    no removal.
    """

    def __init__(self, graph: PairGraph, steps: int, tau: float, removal_bound: float | None, seed: int) -> None:
        from gumbel_mpnn.baselines.sdrf.draw import Around

        self.num_nodes, self.tau = graph.num_nodes, tau
        self.bound = math.inf if removal_bound is None else removal_bound
        self.uniforms = np.random.default_rng(derive_seed(seed, "sdrf")).random(steps)
        self.finished = steps == 0
        """Whether no further step is possible."""
        self._log = np.full((steps, 4), -1, np.int64)
        self._state = _first_state(graph, steps)
        nodes = self.num_nodes
        self._around = Around(np.zeros(nodes, np.uint8), np.zeros(nodes, np.uint8), np.zeros(nodes))

    def advance(self, count: int) -> int:
        """Do up to `count` further steps; returns the number of steps done."""
        from gumbel_mpnn.baselines.sdrf.steps import FINISHED, FULL, advance

        before, last = self.done, min(self.done + count, len(self.uniforms))
        while not self.finished and self.done < last:
            how = advance(self._state, self._around, self.tau, self.bound, self.uniforms, self._log, last)
            if how == FULL:
                self._state = _enlarged(self._state)
            self.finished = how == FINISHED or self.done == len(self.uniforms)
        return self.done - before

    @property
    def done(self) -> int:
        """Number of steps done."""
        from gumbel_mpnn.baselines.sdrf.state import DONE

        return int(self._state.sizes[DONE])

    @property
    def log(self) -> NDArray[np.int64]:
        """Nodes of the edge added and of the edge removed in each step, −1 for none, [done, 4]."""
        return self._log[: self.done]

    @property
    def pairs(self) -> NDArray[np.int64]:
        """Current edges `i < j`, sorted, [2, P]."""
        ends = self._state.ends[:, self._numbers].astype(np.int64)
        return ends[:, np.lexsort((ends[1], ends[0]))]

    @property
    def curvature(self) -> NDArray[np.float64]:
        """Curvature of each of `pairs`, [P]."""
        ends, curvature = self._state.ends[:, self._numbers], self._state.curvature[self._numbers]
        return curvature[np.lexsort((ends[1], ends[0]))]

    @property
    def _numbers(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._state.ends[0] >= 0)


def _first_state(graph: PairGraph, steps: int) -> State:
    """Initial state of a graph, with memory for `steps` more edges."""
    from gumbel_mpnn.baselines.sdrf.state import BLOCK, State, grown
    from gumbel_mpnn.measures.curvature_kernels import Adjacency, Scratch, Terms, fill_values

    neighbors, pairs = adjacency(graph), graph.pair_index.cpu().numpy()
    nodes, count = graph.num_nodes, pairs.shape[1]
    size = count + steps
    counted = count_terms(neighbors, pairs)
    terms = Terms(*(np.concatenate([term, np.zeros(steps, np.int32)]) for term in counted))
    curvature = np.zeros(size)
    fill_values(neighbors, pairs, counted, curvature[:count])
    ends = np.full((2, size), -1, np.int32)
    ends[:, :count] = pairs
    largest = int(neighbors.degree.max(initial=0))
    room = np.zeros(2 * grown(largest) + 8 * steps, np.int32)
    blocks = -(-size // BLOCK)
    return State(
        graph=Adjacency(
            neighbors.start,
            neighbors.degree,
            np.concatenate([neighbors.neighbor, room]),
            np.concatenate([neighbors.edge, room]),
        ),
        capacity=neighbors.degree.copy(),
        ends=ends,
        terms=terms,
        curvature=curvature,
        least=np.full(blocks, -1, np.int32),
        most=np.full(blocks, -1, np.int32),
        stale=np.ones(blocks, np.uint8),
        free=np.arange(size, dtype=np.int32)[::-1].copy(),
        touched=np.zeros(size, np.int32),
        is_touched=np.zeros(size, np.uint8),
        sizes=np.array([neighbors.neighbor.size, steps, 0, largest, 0], np.int64),
        scratch=Scratch(np.zeros(nodes, np.uint8), np.zeros(nodes, np.int32)),
    )


def _enlarged(state: State) -> State:
    """Copy a state with more memory for neighbors."""
    from gumbel_mpnn.baselines.sdrf.state import LARGEST_CAPACITY, grown

    room = max(4 * grown(int(state.sizes[LARGEST_CAPACITY])), state.graph.neighbor.size // 4)
    more = np.zeros(room, np.int32)
    graph = state.graph._replace(
        neighbor=np.concatenate([state.graph.neighbor, more]), edge=np.concatenate([state.graph.edge, more])
    )
    return state._replace(graph=graph)
