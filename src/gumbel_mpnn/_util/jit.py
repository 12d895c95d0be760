"""Functions compiled to machine code by numba, kept on disk between runs where there is a folder to write to.

A module of compiled functions is imported where it is first used: numba alone takes half a second. What numba keeps
goes by a function's name and its own file, though the code of the functions that it calls, and the constants that it
reads, are part of the machine code. So the name tells of every file that they can come from.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """`function` as machine code that lets other threads run meanwhile."""
    import numba

    plain = cast(FunctionType, function)
    try:
        plain.__qualname__ = f"{plain.__name__}_{_digest(plain.__module__)}"
        return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except (OSError, RuntimeError):  # there is no source, or numba found no folder that it may write to
        return cast(F, numba.njit(nogil=True, error_model="numpy")(function))


@cache
def _digest(module: str) -> str:
    """8 hex digits of the source of a module and of those of its package that it imports from, however far."""
    imports = re.compile(rf"^from ({module.partition('.')[0]}[\w.]*) import", re.MULTILINE)
    sources, waiting = dict[str, str](), [module]
    while waiting:
        name = waiting.pop()
        if name not in sources:
            sources[name] = inspect.getsource(sys.modules[name])
            waiting += imports.findall(sources[name])
    return hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()[:8]
