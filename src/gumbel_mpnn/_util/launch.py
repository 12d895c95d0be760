"""How this process was started, and whether a person watches its output."""

from __future__ import annotations

import os
import sys


def is_launched() -> bool:
    """Whether this is one of several processes that `torchrun` has started."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


def is_first() -> bool:
    """Whether this process is the only one, or the one that speaks for all."""
    return not is_launched() or os.environ.get("RANK") == "0"


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, such as Jupyter's."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()
