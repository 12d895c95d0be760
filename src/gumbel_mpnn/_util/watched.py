"""Whether a person watches the output of this process."""

from __future__ import annotations

import sys


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, such as Jupyter's."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()
