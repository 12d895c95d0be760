"""Functions compiled to machine code by numba, kept on disk between runs where there is a folder to write to.

A module of compiled functions is imported where it is first used: numba alone takes half a second. numba looks at a
function's own file to see whether what it kept is still good; after a change to a function that compiled functions of
another file call, delete the `__pycache__` folders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """`function` as machine code that lets other threads run meanwhile."""
    import numba

    try:
        return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # numba found no folder that it may write to
        return cast(F, numba.njit(nogil=True, error_model="numpy")(function))
