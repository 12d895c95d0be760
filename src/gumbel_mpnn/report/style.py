"""One look for all figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
"""Told apart by people with any kind of color vision."""


@contextmanager
def figure_style() -> Iterator[None]:
    """Matplotlib without a screen and with our settings, for the length of a `with` block."""
    import matplotlib as mpl
    from cycler import cycler

    mpl.use("Agg")
    settings: Any = {
        "figure.dpi": 150,
        "savefig.bbox": "tight",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(color=PALETTE),
        "legend.frameon": False,
        "pdf.fonttype": 42,
    }
    with mpl.rc_context(settings):
        yield
