"""Runs: described by a `RunSpec`, trained by `fit`, kept in a folder, and listed by calling this package.

`gm.runs("runs")` is a table of the finished runs.
"""

import sys
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """This package, which is also a function."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """`records.list_runs` with the same arguments."""
        from gumbel_mpnn.runs.records import list_runs

        return list_runs(*arguments, **options)


sys.modules[__name__].__class__ = _Package
