"""Curvature and SDRF by their definitions, on matrices, with nothing kept from one step to the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn.baselines.sdrf_steps import Flow

Matrix = NDArray[np.int64]
Pair = tuple[int, int]


def matrix(pairs: Sequence[Pair], nodes: int) -> Matrix:
    """The symmetric adjacency matrix without self-loops."""
    a = np.zeros((nodes, nodes), np.int64)
    for i, j in pairs:
        a[i, j] = a[j, i] = i != j
    return a


def curvature_of(a: Matrix, i: int, j: int) -> float:
    """Definition 1 of Topping et al., with sets."""
    near = [set(np.flatnonzero(row).tolist()) for row in a]
    small, big = sorted((len(near[i]), len(near[j])))
    if small == 1:
        return 0.0
    counts = [
        count
        for one, other in ((i, j), (j, i))
        for k in near[one] - near[other] - {other}
        if (count := len(near[k] & near[other] - near[one] - {one}))
    ]
    triangles = len(near[i] & near[j])
    out = 2 / big + 2 / small - 2 + 2 * triangles / big + triangles / small
    return out + len(counts) / (max(counts) * big) if counts else out


def edges_of(a: Matrix) -> list[Pair]:
    """Pairs `i < j`, sorted."""
    return [(int(i), int(j)) for i, j in zip(*np.triu(a, 1).nonzero(), strict=True)]


def with_edge(a: Matrix, pair: Pair, there: int) -> Matrix:
    """A copy in which the pair is an edge or is none."""
    a = a.copy()
    a[pair] = a[pair[::-1]] = there
    return a


def candidates(a: Matrix, x: int, y: int) -> list[Pair]:
    """Ordered pairs of a node at x (or x) and a node at y (or y) that are no edges."""
    rows, columns = (sorted({end, *np.flatnonzero(a[end]).tolist()}) for end in (x, y))
    return [(i, j) for i in rows for j in columns if i != j and not a[i, j]]


def sdrf(
    a: Matrix, uniforms: Sequence[float], tau: float, bound: float | None
) -> list[tuple[Pair | None, Pair | None]]:
    """The edge added and the edge removed in each step, until there is nothing to do."""
    steps = []
    for uniform in uniforms:
        curvature = {pair: curvature_of(a, *pair) for pair in edges_of(a)}
        if not curvature:
            break
        x, y = min(curvature, key=lambda pair: (curvature[pair], pair))
        most = min(curvature, key=lambda pair: (-curvature[pair], pair))
        choices = candidates(a, x, y)
        added = removed = None
        if choices:
            gains = np.array([curvature_of(with_edge(a, pair, 1), x, y) for pair in choices])
            weights = np.exp(tau * (gains - gains.max())).cumsum()
            i, j = choices[int(np.searchsorted(weights, uniform * weights[-1], side="right"))]
            added = (min(i, j), max(i, j))
            a = with_edge(a, added, 1)
        if bound is not None and curvature[most] > bound:
            removed = most
            a = with_edge(a, removed, 0)
        if added is None and removed is None:
            break
        steps.append((added, removed))
    return steps


def edges_kept(flow: Flow) -> NDArray[np.int64]:
    """Numbers of the edges that a flow has now, in the order of its pairs."""
    used = np.flatnonzero(flow.state.ends[0] >= 0)
    return used[np.lexsort(flow.state.ends[::-1, used])]


def curvature_kept(flow: Flow) -> NDArray[np.float64]:
    """Curvature of each of the pairs of a flow, as it knows it."""
    return flow.state.curvature[edges_kept(flow)]
