"""Functions compiled by numba and cached on disk between runs, if there is a writable folder.

Import modules with compiled functions where they are first used: importing numba takes half a second. Numba's cache
key is the name of a function and its own file, but the machine code also contains the functions it calls and the
constants it reads. The name therefore includes a digest of every file that these can come from.
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
    """Compile `function` so that it releases the GIL while it runs."""
    import numba

    plain = cast(FunctionType, function)
    try:
        plain.__qualname__ = f"{plain.__name__}_{_digest(plain.__module__)}"
        return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except (OSError, RuntimeError):  # no source file, or no folder that numba can write to
        return cast(F, numba.njit(nogil=True, error_model="numpy")(function))


@cache
def _digest(module: str) -> str:
    """Digest (8 hex digits) of a module's source and of all modules of its package that it imports, recursively."""
    imports = re.compile(rf"^from ({module.partition('.')[0]}[\w.]*) import", re.MULTILINE)
    sources, waiting = dict[str, str](), [module]
    while waiting:
        name = waiting.pop()
        if name not in sources:
            sources[name] = inspect.getsource(sys.modules[name])
            waiting += imports.findall(sources[name])
    return hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()[:8]
