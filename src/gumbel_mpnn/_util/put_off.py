"""Imports that wait until a module is first used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType


class _PutOff(MetaPathFinder):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in self.names else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def put_off(*names: str) -> None:
    """From now on in this process, run the modules `names` when an attribute is asked for, not when they are imported.

    For modules that another package imports but we seldom use. `from module import name` runs the module at once.
    """
    sys.meta_path.insert(0, _PutOff(names))
