"""A table with one row and one column for each value of two columns, such as data sets by models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gumbel_mpnn.report.style import MODEL_NAMES
from gumbel_mpnn.report.table import Row, Table


@dataclass(frozen=True)
class Grid:
    """Description of a two-way table of rows.

    Attributes:
        down: Column whose values become the rows of the grid.
        across: Column whose values become the columns of the grid.
        value: Column shown in the cells.
        error: Column shown after the ± sign.
        bold: Column that decides whether a cell is bold.
        bold_for: Values of the column `bold` for which a cell is bold.
        caption: Text that explains the numbers, the ± sign and bold cells.
    """

    down: str
    across: str
    value: str
    error: str
    bold: str
    bold_for: tuple[str, ...]
    caption: str


def grid_table(grid: Grid, rows: Sequence[Row], headings: Mapping[str, str], digits: int = 2) -> Table:
    """Arrange rows in a grid for a Markdown page; a cell without a value is a dash."""
    cells = {(str(row[grid.down]), str(row[grid.across])): row for row in rows}
    lines, columns = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True)) if cells else ([], [])
    return Table(
        [grid.down, *columns],
        [[line, *(_cell(grid, cells.get((line, column), {}), digits) for column in columns)] for line in lines],
        {**MODEL_NAMES, **headings},
    )


def _cell(grid: Grid, row: Row, digits: int) -> str:
    value = row.get(grid.value)
    if value is None:
        return "–"
    text = f"{float(value):.{digits}f}"
    text = f"**{text}**" if row.get(grid.bold) in grid.bold_for else text
    error = row.get(grid.error)
    return text if error is None else f"{text} ± {float(error):.{digits}f}"
