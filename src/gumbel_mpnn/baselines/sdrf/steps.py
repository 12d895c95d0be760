"""Compiled loop over the steps of SDRF."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.jit import compiled
from gumbel_mpnn.baselines.sdrf.draw import Around, draw
from gumbel_mpnn.baselines.sdrf.state import DONE, State, extremes, has_room
from gumbel_mpnn.baselines.sdrf.update import add, remove

GOING, FULL, FINISHED = 0, 1, 2
"""Results of `advance`: all steps were done; the arrays are full; no further step is possible."""


@compiled
def advance(
    state: State,
    around: Around,
    tau: float,
    bound: float,
    uniforms: NDArray[np.float64],
    log: NDArray[np.int64],
    last: int,
) -> int:
    """Do steps until `last` steps are done in total; returns `GOING`, `FULL` or `FINISHED`.

    The number of steps done is part of the state, so that the two agree even after an interrupt. The nodes of the edge
    added and of the edge removed are written to `log` [steps, 4], −1 for none.
    """
    for step in range(state.sizes[DONE], last):
        if not has_room(state):
            return FULL
        least, most = extremes(state)
        if least < 0:
            return FINISHED
        removing = state.curvature[most] > bound
        i, j = draw(state, around, least, tau, uniforms[step])
        if i >= 0:
            log[step, 0], log[step, 1] = min(i, j), max(i, j)
            add(state, i, j)
        if removing:
            log[step, 2], log[step, 3] = state.ends[0, most], state.ends[1, most]
            remove(state, most)
        if i < 0 and not removing:
            return FINISHED
        state.sizes[DONE] = step + 1
    return GOING
