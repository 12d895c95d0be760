"""Weighted medians of neighborhoods on a CPU, compiled; a module of its own, since importing numba takes a while."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.jit import compiled

LONG = 64
"""Neighborhoods up to this size are sorted by insertion, which takes no memory."""


@compiled
def _sort(values: NDArray[np.floating], order: NDArray[np.int64]) -> None:
    """Write the order of the values into `order`."""
    if len(values) > LONG:
        order[:] = np.argsort(values)
        return
    for k in range(len(values)):
        place = k
        while place > 0 and values[order[place - 1]] > values[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k


@compiled
def medians_of_neighbors(
    x: NDArray[np.floating],
    rowptr: NDArray[np.int32],
    col: NDArray[np.int32],
    weight: NDArray[np.float64],
    own_weight: NDArray[np.float64],
    share: float,
) -> NDArray[np.int64]:
    """Among the neighbors and the node itself, by channel, the one up to whose value there is this share of the weight.

    Arrays are x [R, N, D], arcs in CSR format, and weights [R, A] and [R, N]; the result is [R, N, D].
    """
    out = np.empty(x.shape, np.int64)
    replicas, nodes, channels = x.shape
    longest = 1 + np.max(rowptr[1:] - rowptr[:-1])
    values, order, weights = np.empty(longest, x.dtype), np.empty(longest, np.int64), np.empty(longest)
    for r in range(replicas):
        for u in range(nodes):
            begin, count = rowptr[u], rowptr[u + 1] - rowptr[u]
            for k in range(count):
                weights[k] = weight[r, begin + k]
            weights[count] = own_weight[r, u]
            least = share * weights[: count + 1].sum()
            for d in range(channels):
                for k in range(count):
                    values[k] = x[r, col[begin + k], d]
                values[count] = x[r, u, d]
                _sort(values[: count + 1], order[: count + 1])
                below, place = 0.0, -1
                while below < least:
                    place += 1
                    below += weights[order[place]]
                chosen = order[place]
                out[r, u, d] = col[begin + chosen] if chosen < count else u
    return out
