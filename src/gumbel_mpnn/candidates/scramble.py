"""Hashing of whole numbers, compiled, for draws that depend on what is drawn and not on the order of drawing."""

from __future__ import annotations

import numpy as np

from gumbel_mpnn._util.jit import compiled


@compiled
def scrambled(value: np.uint64) -> np.uint64:
    """A permutation of the 64-bit numbers that looks random (the last step of SplitMix64).

    Kernels of other files have it built in, in what numba keeps of them too: it must never change.
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
