"""Places of the nodes of the explorer: a force-directed layout, the same on every call."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
STEPS = 200
SMOOTHINGS = 20
GRAVITY = 0.3
REACH = 0.3


def layout(num_nodes: int, pairs: NDArray[np.int64], weight: Floats) -> Floats:
    """Places of N nodes between 0 and 1, [N, 2]. The cost of a step is quadratic in the number of nodes.

    `weight` [E] is how strongly each edge of `pairs` [2, E] pulls its ends together.
    """
    from gumbel_mpnn.report.page.layout_kernels import forces

    if not num_nodes:
        return np.zeros((0, 2))
    source, target = np.ascontiguousarray(pairs, dtype=np.int64)
    strength = np.asarray(weight, dtype=np.float64)
    degree = np.bincount(source, strength, num_nodes) + np.bincount(target, strength, num_nodes)
    size = 1 + degree.astype(np.float64)
    xy = _smooth(np.random.default_rng(0).normal(size=(num_nodes, 2)), source, target, strength)
    for step in range(STEPS):
        force = forces(xy, size, source, target, strength) - GRAVITY * size[:, None] * xy
        move = force / size[:, None]
        length = np.linalg.norm(move, axis=1, keepdims=True)
        longest = REACH * np.sqrt(num_nodes) * (1 - step / STEPS) + 1e-3
        xy += move * np.minimum(0.5, longest / np.maximum(length, 1e-12))
    return _in_a_square(xy)


def _smooth(xy: Floats, source: NDArray[np.int64], target: NDArray[np.int64], weight: Floats) -> Floats:
    """Places that are alike for nodes that are close in the graph: random ones, averaged along the edges."""
    count = len(xy)
    ends = sparse.coo_array((weight, (source, target)), shape=(count, count)).tocsr()
    ends = ends + ends.T + sparse.eye_array(count)
    ends = sparse.diags_array(1 / ends.sum(1)) @ ends
    for _ in range(SMOOTHINGS):
        xy = ends @ xy
        xy = (xy - xy.mean(0)) / np.maximum(xy.std(0), 1e-12)
    out: Floats = xy * np.sqrt(count)
    return out


def _in_a_square(xy: Floats) -> Floats:
    """Scale to the square from 0 to 1; single nodes far outside are brought to its border."""
    middle = np.median(xy, axis=0)
    distance = np.linalg.norm(xy - middle, axis=1, keepdims=True)
    reach = max(float(np.quantile(distance, 0.98)), 1e-9) * 1.1
    out: Floats = 0.5 + 0.5 * (xy - middle) * np.minimum(1, reach / np.maximum(distance, 1e-12)) / reach
    return out
