"""Components of the user's own, registered by files or modules that an environment variable names."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module, util
from pathlib import Path

from gumbel_mpnn._util.errors import UserError

VARIABLE = "GUMBEL_MPNN_PLUGINS"
"""Environment variable: Python files or module names, separated by commas."""


def load_plugins() -> None:
    """Import what the environment variable names, once, so that its components are registered."""
    for name in os.environ.get(VARIABLE, "").split(","):
        if name.strip():
            _load(name.strip())


@cache
def _load(name: str) -> None:
    try:
        if not name.endswith(".py"):
            import_module(name)
            return
        path = Path(name).expanduser().resolve()
        spec = util.spec_from_file_location(f"gumbel_mpnn_plugin_{path.stem}", path)
        if spec is None or spec.loader is None or not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        module = util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"cannot load {name!r}, which {VARIABLE} names: {type(error).__name__}: {error}") from error
