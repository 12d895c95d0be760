"""Compiled step of the layout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.jit import compiled

Floats = NDArray[np.float64]


@compiled
def forces(xy: Floats, size: Floats, source: NDArray[np.int64], target: NDArray[np.int64], weight: Floats) -> Floats:
    """Sum of all forces on every node, [N, 2].

    Nodes push each other away by the product of their sizes over the distance, edges pull by their length.
    """
    count = len(xy)
    out = np.zeros((count, 2))
    for one in range(count):
        x, y, own, fx, fy = xy[one, 0], xy[one, 1], size[one], 0.0, 0.0
        for other in range(one):
            dx, dy = x - xy[other, 0], y - xy[other, 1]
            push = own * size[other] / (dx * dx + dy * dy + 1e-3)
            fx += push * dx
            fy += push * dy
            out[other, 0] -= push * dx
            out[other, 1] -= push * dy
        out[one, 0] += fx
        out[one, 1] += fy
    for edge in range(len(source)):
        one, other = source[edge], target[edge]
        dx, dy = xy[one, 0] - xy[other, 0], xy[one, 1] - xy[other, 1]
        pull = weight[edge]
        out[one, 0] -= pull * dx
        out[one, 1] -= pull * dy
        out[other, 0] += pull * dx
        out[other, 1] += pull * dy
    return out
