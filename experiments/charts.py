"""Charts of test accuracy with error bars, drawn from rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.rows import MODEL_NAMES
from gumbel_mpnn.report import PALETTE, Row, saved_figure

MARKERS = "osD^vPX"


@dataclass(frozen=True)
class Chart:
    """One panel of a figure: the column `test` over another column, with the standard error as error bars."""

    x: str
    """Column of the horizontal axis; a row without a value here is drawn as a horizontal line."""
    x_label: str
    title: str
    series: tuple[str, ...] = ("model",)
    """Columns that identify a curve."""
    paper: str = ""
    """Column with the paper's value at the same point; empty if there is none."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Rows to draw, as column → accepted texts; an empty text stands for none."""
    log_x: bool = False
    """Whether the horizontal axis is logarithmic, and linear below the smallest positive value, to show 0."""

    def rows_of(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows that have a result and belong to this panel."""
        return [
            row
            for row in rows
            if row.get("test") is not None
            and all((row.get(name) or "") in wanted for name, wanted in self.where.items())
        ]

    def curve_of(self, row: Row) -> str:
        """Return the name of the curve that a row belongs to."""
        words = {name: str(row[name]) for name in self.series if row[name]}
        return ", ".join(MODEL_NAMES.get(word, word) if name == "model" else word for name, word in words.items())


def draw_charts(charts: Iterable[Chart], rows: Sequence[Row], pictures: Iterable[Path]) -> bool:
    """Draw all charts that have rows side by side, and save the figure to each of `pictures`.

    Returns whether there was anything to draw.
    """
    panels = [(chart, shown) for chart in charts if (shown := chart.rows_of(rows))]
    if not panels:
        return False
    names = list(dict.fromkeys(chart.curve_of(row) for chart, shown in panels for row in shown))
    with saved_figure(pictures, len(panels), (4.4 * len(panels), 3.4)) as axes:
        for place, (chart, shown) in zip(axes, panels, strict=True):
            _draw(place, chart, shown, names)
        axes[0].figure.tight_layout()
        legends = [zip(*place.get_legend_handles_labels(), strict=True) for place in axes]
        known = {label: handle for legend in legends for handle, label in legend}
        axes[-1].legend(known.values(), known, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return True


def _draw(axes: Any, chart: Chart, rows: Sequence[Row], names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        mine = [row for row in rows if chart.curve_of(row) == name]
        again = index // len(PALETTE)  # curves that share a color have different markers
        look = {"color": PALETTE[index % len(PALETTE)], "label": name}
        points = sorted((row for row in mine if row.get(chart.x) is not None), key=lambda row: float(row[chart.x] or 0))
        if points:
            axes.errorbar(
                [row[chart.x] for row in points],
                [row["test"] for row in points],
                yerr=[float(row.get("stderr") or 0) for row in points],
                marker=MARKERS[(index + again) % len(MARKERS)],
                linewidth=1.5,
                markersize=4,
                capsize=2,
                **look,
            )
        for row in mine:
            if row.get(chart.x) is None:
                axes.axhline(row["test"], linestyle="--", linewidth=1.2, **look)
    known = [row for row in rows if chart.paper and row.get(chart.paper) is not None and row.get(chart.x) is not None]
    if known:  # hollow black markers
        x, y = [row[chart.x] for row in known], [row[chart.paper] for row in known]
        axes.plot(x, y, "o", markerfacecolor="none", markeredgecolor="black", markersize=7, label="the paper")
    if chart.log_x:
        values = sorted({float(value) for row in rows if (value := row.get(chart.x)) is not None})
        axes.set_xscale("symlog", linthresh=min((value for value in values if value > 0), default=1.0))
        axes.set_xticks(values, [f"{value:,g}" for value in values], rotation=30)
        axes.minorticks_off()
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel("test accuracy, % (± std error)")
    axes.set_title(chart.title)
