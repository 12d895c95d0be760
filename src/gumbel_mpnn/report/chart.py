"""Line charts with error bars, drawn from the rows of an experiment as its `charts` declare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.files import suffix_of
from gumbel_mpnn.paper import Chart
from gumbel_mpnn.paper.base import Row
from gumbel_mpnn.report.names import MODEL_COLUMN, MODEL_NAMES
from gumbel_mpnn.report.style import PALETTE, figure_style

MARKERS = "osD^vPX"


def draw_charts(charts: Iterable[Chart], rows: Sequence[Row], paths: Iterable[Path]) -> bool:
    """Draw the charts that have rows side by side and save the figure to each of `paths`; whether there were any."""
    panels = [(chart, shown) for chart in charts if (shown := _rows_of(chart, rows))]
    if not panels:
        return False
    names = list(dict.fromkeys(_name(chart, row) for chart, shown in panels for row in shown))
    with figure_style():
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, len(panels), figsize=(4.4 * len(panels), 3.4), squeeze=False)
        for place, (chart, shown) in zip(axes[0], panels, strict=True):
            _draw(place, chart, shown, names)
        figure.tight_layout()
        known = {label: handle for place in axes[0] for handle, label in zip(*_legend(place), strict=True)}
        axes[0][-1].legend(known.values(), known, loc="center left", bbox_to_anchor=(1.02, 0.5))
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Without a date, the same rows give the same file.
            figure.savefig(path, metadata={"CreationDate": None} if suffix_of(path) == ".pdf" else None)
        plt.close(figure)
    return True


def _rows_of(chart: Chart, rows: Sequence[Row]) -> list[Row]:
    """The rows that a chart shows: those it asks for that have a value."""
    return [
        row
        for row in rows
        if row.get(chart.y) is not None and all(row.get(name) in wanted for name, wanted in chart.where.items())
    ]


def _name(chart: Chart, row: Row) -> str:
    """What a curve is called."""
    words = {name: str(row[name]) for name in chart.series if row[name]}
    return ", ".join(MODEL_NAMES.get(word, word) if name == MODEL_COLUMN else word for name, word in words.items())


def _draw(axes: Any, chart: Chart, rows: Sequence[Row], names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        mine = [row for row in rows if _name(chart, row) == name]
        look = {"color": PALETTE[index % len(PALETTE)], "label": name}
        points = sorted((row for row in mine if row.get(chart.x) is not None), key=lambda row: float(row[chart.x] or 0))
        if points:
            _draw_curve(axes, chart, points, {**look, "marker": MARKERS[index % len(MARKERS)]})
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


def _legend(axes: Any) -> tuple[list[Any], list[str]]:
    """What has been drawn and how it is called."""
    handles, labels = axes.get_legend_handles_labels()
    return handles, labels


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
    """The paper's values, hollow and black."""
    known = [row for row in rows if row.get(chart.paper) is not None and row.get(chart.x) is not None]
    if known:
        x, y = [row[chart.x] for row in known], [row[chart.paper] for row in known]
        axes.plot(x, y, "o", markerfacecolor="none", markeredgecolor="black", markersize=7, label="the paper")
