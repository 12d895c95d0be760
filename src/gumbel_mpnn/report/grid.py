"""Rows set out in two directions, what is best in bold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gumbel_mpnn.paper import Grid
from gumbel_mpnn.paper.base import Row
from gumbel_mpnn.report.names import MODEL_NAMES
from gumbel_mpnn.report.table import Table


def grid_table(grid: Grid, rows: Sequence[Row], headings: Mapping[str, str], digits: int = 2) -> Table:
    """The grid as a table for a Markdown page; a dash where there is no value."""
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
