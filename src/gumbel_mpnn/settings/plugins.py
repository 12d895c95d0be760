"""Plugins: components of the user, registered by files or modules listed in an environment variable."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module, util
from pathlib import Path

from gumbel_mpnn.util.errors import UserError

VARIABLE = "GUMBEL_MPNN_PLUGINS"
"""Environment variable with a comma-separated list of Python files or module names."""


def load_plugins() -> None:
    """Import the plugins once, which registers their components."""
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
    except (Exception, SystemExit) as error:
        raise UserError(f"cannot load the plugin {name!r} of {VARIABLE}: {type(error).__name__}: {error}") from error
