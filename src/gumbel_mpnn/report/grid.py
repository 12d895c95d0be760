"""A table with one line and one column for each value of some columns, such as data sets by models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gumbel_mpnn.report.style import MODEL_NAMES
from gumbel_mpnn.report.table import Cell, Markdown, Row, Table


@dataclass(frozen=True)
class Grid:
    """Description of a two-way table of rows."""

    down: tuple[str, ...]
    """Columns whose values identify a line of the grid."""
    across: str
    """Column whose values become the columns of the grid."""
    value: str
    error: str
    """Column shown after the ± sign."""
    bold: str
    """Column that decides whether a cell is bold."""
    bold_for: tuple[str, ...]
    caption: str
    published: tuple[str, str] | None = None
    """Columns with the published value and its ±, shown in a line of their own below the lines of the same first value.
    `down` then has two columns."""


PUBLISHED = "published"
"""Name of the line with published values."""
DASH = "–"


def grid_table(grid: Grid, rows: Sequence[Row], headings: Mapping[str, str]) -> Table:
    """Arrange rows in a grid for a Markdown page; a cell without a value is a dash, and empty lines are left out."""
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        line = cells.setdefault(tuple(str(row[name]) for name in grid.down), {})
        text = _text(row.get(grid.value), row.get(grid.error), row.get(grid.bold) in grid.bold_for)
        line[str(row[grid.across])] = text
    if grid.published is not None:
        value, error = grid.published
        for row in rows:
            line = cells.setdefault((str(row[grid.down[0]]), PUBLISHED), {})
            line[str(row[grid.across])] = _text(row.get(value), row.get(error))
    columns = list(dict.fromkeys(str(row[grid.across]) for row in rows))
    groups = list(dict.fromkeys(names[0] for names in cells))
    lines = [names for names in cells if set(cells[names].values()) != {DASH}]
    return Table(
        [*grid.down, *columns],
        [
            [*names, *(cells[names].get(column, DASH) for column in columns)]
            for names in sorted(lines, key=lambda names: groups.index(names[0]))
        ],
        {**MODEL_NAMES, **headings},
    )


def _text(value: Cell, error: Cell, bold: bool = False) -> str:
    if value is None:
        return DASH
    text = f"{float(value):.2f}"
    text = f"**{text}**" if bold else text
    return Markdown(text if error is None else f"{text} ± {float(error):.2f}")
