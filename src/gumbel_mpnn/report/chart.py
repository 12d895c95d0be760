"""Line charts with error bars, drawn from rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.files import suffix_of, write_atomically
from gumbel_mpnn.report.style import MODEL_COLUMN, MODEL_NAMES, PALETTE, figure_style
from gumbel_mpnn.report.table import Row

MARKERS = "osD^vPX"


@dataclass(frozen=True)
class Chart:
    """Description of one panel of a figure."""

    x: str
    """Column of the horizontal axis; a row without a value here is drawn as a horizontal line."""
    y: str
    series: tuple[str, ...]
    """Columns that identify a curve."""
    x_label: str
    y_label: str
    title: str
    error: str = "stderr"
    """Column with half the length of the error bars; empty for no error bars."""
    paper: str = ""
    """Column with the paper's value at the same point; empty if there is none."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Rows to draw, as column → accepted values."""
    log_x: bool = False
    """Whether the horizontal axis is logarithmic. It is linear below the smallest positive value, so that 0 can be
    shown."""


def draw_charts(charts: Iterable[Chart], rows: Sequence[Row], paths: Iterable[Path]) -> bool:
    """Draw all charts that have rows side by side, and save the figure to each of `paths`.

    Returns whether there was anything to draw.
    """
    panels = [(chart, shown) for chart in charts if (shown := _rows_of(chart, rows))]
    if not panels:
        return False
    names = list(dict.fromkeys(_name(chart, row) for chart, shown in panels for row in shown))
    with saved_figure(paths, len(panels), (4.4 * len(panels), 3.4)) as axes:
        for place, (chart, shown) in zip(axes, panels, strict=True):
            _draw(place, chart, shown, names)
        axes[0].figure.tight_layout()
        legends = [zip(*place.get_legend_handles_labels(), strict=True) for place in axes]
        known = {label: handle for legend in legends for handle, label in legend}
        axes[-1].legend(known.values(), known, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return True


@contextmanager
def saved_figure(paths: Iterable[Path], columns: int, size: tuple[float, float]) -> Iterator[Any]:
    """Axes of a figure, which is saved to each of `paths` at the end of the block.

    It is saved without a date, so that equal figures give equal files.
    """
    with figure_style():
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, columns, figsize=size, squeeze=False)
        try:
            yield axes[0]
            for path in paths:
                content, form = BytesIO(), suffix_of(path).removeprefix(".")
                figure.savefig(content, format=form, metadata={"CreationDate": None} if form == "pdf" else None)
                write_atomically(path, content.getvalue())
        finally:
            plt.close(figure)


def _rows_of(chart: Chart, rows: Sequence[Row]) -> list[Row]:
    return [
        row
        for row in rows
        if row.get(chart.y) is not None and all(row.get(name) in wanted for name, wanted in chart.where.items())
    ]


def _name(chart: Chart, row: Row) -> str:
    words = {name: str(row[name]) for name in chart.series if row[name]}
    return ", ".join(MODEL_NAMES.get(word, word) if name == MODEL_COLUMN else word for name, word in words.items())


def _draw(axes: Any, chart: Chart, rows: Sequence[Row], names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        mine = [row for row in rows if _name(chart, row) == name]
        look = {"color": PALETTE[index % len(PALETTE)], "label": name}
        points = sorted((row for row in mine if row.get(chart.x) is not None), key=lambda row: float(row[chart.x] or 0))
        if points:
            again = index // len(PALETTE)  # curves that share a color have different markers
            _draw_curve(axes, chart, points, {**look, "marker": MARKERS[(index + again) % len(MARKERS)]})
        for row in mine:
            if row.get(chart.x) is None:
                axes.axhline(row[chart.y], linestyle="--", linewidth=1.2, **look)
    if chart.paper:
        _draw_paper(axes, chart, rows)
    if chart.log_x:
        positive = [float(value) for row in rows if (value := row.get(chart.x)) is not None and float(value) > 0]
        axes.set_xscale("symlog", linthresh=min(positive, default=1.0))
        ticks = sorted({float(value) for row in rows if (value := row.get(chart.x)) is not None})
        axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks], rotation=30)
        axes.minorticks_off()
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(f"{chart.y_label} (± std error)" if chart.error else chart.y_label)
    axes.set_title(chart.title)


def _draw_curve(axes: Any, chart: Chart, points: Sequence[Row], look: dict[str, Any]) -> None:
    bars = [float(row.get(chart.error) or 0) for row in points] if chart.error else None
    axes.errorbar(
        [row[chart.x] for row in points],
        [row[chart.y] for row in points],
        yerr=bars,
        linewidth=1.5,
        markersize=4,
        capsize=2,
        **look,
    )


def _draw_paper(axes: Any, chart: Chart, rows: Sequence[Row]) -> None:
    """Draw the paper's values as hollow black markers."""
    known = [row for row in rows if row.get(chart.paper) is not None and row.get(chart.x) is not None]
    if known:
        x, y = [row[chart.x] for row in known], [row[chart.paper] for row in known]
        axes.plot(x, y, "o", markerfacecolor="none", markeredgecolor="black", markersize=7, label="the paper")
