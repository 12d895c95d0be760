"""Names, colors and Matplotlib settings shared by all tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from gumbel_mpnn.util.files import suffix_of, write_atomically

MODEL_NAMES: Mapping[str, str] = {
    "mlp": "MLP",
    "gcn": "GCN",
    "sage": "GraphSAGE",
    "gat": "GAT",
    "drop-edge": "DropEdge",
    "sdrf": "SDRF",
    "gumbel-mpnn": "Gumbel-MPNN",
    "frozen": "Frozen",
    "random": "Random",
    "auto": "Auto",
}
"""Display names of models; a model that is not listed is shown under its own name."""

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
"""Colors that can be distinguished with any kind of color vision."""


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


@contextmanager
def saved_figure(paths: Iterable[Path], columns: int, size: tuple[float, float]) -> Iterator[Any]:
    """Axes of a figure, which is saved to each of `paths` at the end of the block, without a display.

    It is saved without a date, so that equal figures give equal files.
    """
    from matplotlib.figure import Figure

    with shared_style():
        figure = Figure(figsize=size)
        yield figure.subplots(1, columns, squeeze=False)[0]
        for path in paths:
            content, form = BytesIO(), suffix_of(path).removeprefix(".")
            figure.savefig(content, format=form, metadata={"CreationDate": None} if form == "pdf" else None)
            write_atomically(path, content.getvalue())
