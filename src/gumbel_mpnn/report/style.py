"""Names, colors and Matplotlib settings shared by all tables and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

MODEL_NAMES: Mapping[str, str] = {
    "mlp": "MLP",
    "gcn": "GCN",
    "sage": "GraphSAGE",
    "gat": "GAT",
    "drop-edge": "DropEdge",
    "sdrf": "SDRF",
    "jaccard": "GCN-Jaccard",
    "gnn-guard": "GNNGuard",
    "soft-median": "Soft-Median",
    "knn": "kNN-GCN",
    "gumbel-mpnn": "Gumbel-MPNN",
    "frozen": "Frozen",
    "random": "Random",
    "auto": "Auto",
    "auto-frozen": "Auto-frozen",
    "auto-random": "Auto-random",
    "auto-wary": "Auto-wary",
    "auto-wary-frozen": "Auto-wary-frozen",
}
"""Display names of models; a model that is not listed is shown under its own name."""
MODEL_COLUMN = "model"

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
"""Colors that can be distinguished with any kind of color vision."""


@contextmanager
def figure_style() -> Iterator[None]:
    """Use Matplotlib without a display and with the settings of this package inside a `with` block."""
    import matplotlib as mpl

    mpl.use("Agg")
    with shared_style():
        yield


@contextmanager
def shared_style() -> Iterator[None]:
    """Use the settings of this package inside a `with` block and leave the user's backend alone."""
    import matplotlib as mpl
    from cycler import cycler

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


def as_label(text: object, most: int = 20) -> str:
    """Text of the user for a figure: short, on one line, and with dollar signs that do not begin a formula."""
    words = " ".join(str(text).split())
    return (words if len(words) <= most else words[: most - 1] + "…").replace("$", r"\$")
