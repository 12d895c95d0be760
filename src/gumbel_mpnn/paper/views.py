"""How the rows of an experiment are to be looked at: as curves, or as a grid with the best in bold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Chart:
    """Curves of rows: one panel of a figure. All names are those of columns.

    Attributes:
        x: The horizontal axis; a row without a value here is a horizontal line.
        y: The vertical axis.
        series: What tells one curve from another.
        x_label: What people read below.
        y_label: What people read at the side.
        title: What people read above.
        error: Half the length of the bar at each point; empty for no bars.
        paper: The paper's value at the same place; empty where it prints none.
        where: Which rows: column → the values that are wanted.
        log_x: A logarithmic axis; it is linear below the smallest value above 0, so that 0 is on it.
    """

    x: str
    y: str
    series: tuple[str, ...]
    x_label: str
    y_label: str
    title: str
    error: str = "stderr"
    paper: str = ""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    log_x: bool = False


@dataclass(frozen=True)
class Grid:
    """Rows set out in two directions; all names are those of columns.

    Attributes:
        down: Whose values are the lines of the grid.
        across: Whose values are its columns.
        value: What stands in a cell.
        error: What stands behind its ±.
        bold: A cell is bold where this column says one of `bold_for`.
        bold_for: The words that make it so.
        caption: What bold and ± mean, for people.
    """

    down: str
    across: str
    value: str
    error: str
    bold: str
    bold_for: tuple[str, ...]
    caption: str
