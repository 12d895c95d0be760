"""Tables in five output formats, and those of runs.

Nothing here imports torch, Matplotlib or pandas before it is needed, because several commands only print a table.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gumbel_mpnn.util.files import to_json

if TYPE_CHECKING:
    import pandas as pd

    from gumbel_mpnn.runs.choice import Choice
    from gumbel_mpnn.runs.run import Run

Cell = str | int | float | None
Row = Mapping[str, Cell]


class Markdown(str):
    """A cell that is Markdown already, such as a bold number, and not escaped there."""


@dataclass(frozen=True)
class Table:
    """Named columns and rows of plain values.

    Columns of numbers are aligned to the right, all other columns to the left. JSON and CSV contain the names of the
    columns, the values as they are, and all digits. Columns of shares are in per cent, except in JSON, where every row
    says so: its "unit" is "share".
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    headings: Mapping[str, str] = field(default_factory=dict)
    """Headings shown in place of the names of the columns."""
    digits: int = 2
    """Number of decimals; a number with an attribute `digits` is shown with as many."""
    keep_small: bool = False
    """Whether a number that would be rounded to 0 is written in scientific notation (2.6e-08)."""
    exact: Sequence[str] = ()
    """Columns that are shown with all digits."""
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Texts shown in place of values, by column."""
    shares: Sequence[str] = ()
    """Columns of shares between 0 and 1."""

    @classmethod
    def of(cls, frame: pd.DataFrame, **options: Any) -> Table:
        """Return the table of a DataFrame, with None in place of NaN."""
        rows = frame.astype(object).where(frame.notna(), None)
        return cls(list(map(str, frame.columns)), rows.to_numpy().tolist(), **options)

    def render(self, format: str) -> str:
        """Return the table as text, JSON, CSV, Markdown or LaTeX, without a trailing newline."""
        if format == "json":
            unit = {"unit": "share"} if self.shares else {}
            return to_json([dict(zip(self.columns, row, strict=True)) | unit for row in self.rows], indent=1)
        rows = [
            [
                100 * cell if isinstance(cell, float) and name in self.shares else cell
                for name, cell in zip(self.columns, row, strict=True)
            ]
            for row in self.rows
        ]
        if format == "csv":
            return "\n".join(map(_csv_line, [self.columns, *rows]))
        heads = [_one_line(self.headings.get(name, name)) for name in self.columns]
        lines = [[self._show(*cell) for cell in zip(self.columns, row, strict=True)] for row in rows]
        right = [_is_numeric([row[k] for row in rows]) for k in range(len(heads))]
        if format == "latex":
            from pandas import DataFrame

            sides = "".join("r" if side else "l" for side in right)
            return str(DataFrame(lines, columns=heads).to_latex(index=False, escape=True, column_format=sides)).rstrip()
        if format == "markdown":
            cells = [
                [each if isinstance(each, Markdown) else _escape(each) for each in line] for line in [heads, *lines]
            ]
            cells.insert(1, ["--:" if side else "---" for side in right])
            return "\n".join("| " + " | ".join(line) + " |" for line in cells)
        widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
        shown = [
            "  ".join(text.rjust(width) if side else text.ljust(width) for text, width, side in cells).rstrip()
            for cells in (zip(line, widths, right, strict=True) for line in [heads, *lines])
        ]
        return "\n".join([shown[0], "  ".join("─" * width for width in widths), *shown[1:]])

    def _show(self, column: str, cell: Cell) -> str:
        if cell is None:
            return "–"
        if isinstance(cell, str):
            return cell if isinstance(cell, Markdown) else _one_line(self.words.get(column, {}).get(cell, cell))
        if column in self.exact or not isinstance(cell, float):
            return str(cell)
        digits = getattr(cell, "digits", self.digits)
        small = self.keep_small and cell != 0 and abs(cell) < 0.5 * 10**-digits
        return f"{cell:.1e}" if small else f"{cell:.{digits}f}"


def _csv_line(row: Sequence[Cell]) -> str:
    """Format one row. The terminator is CR LF, so that a cell that contains either character is quoted."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(row)
    return out.getvalue().removesuffix("\r\n")


def _is_numeric(cells: Sequence[Cell]) -> bool:
    known = [cell for cell in cells if cell is not None]
    return bool(known) and not any(isinstance(cell, str) for cell in known)


def _one_line(text: str) -> str:
    """Text on one line, with spaces in place of control characters."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", " ".join(text.splitlines()))


def _escape(text: str) -> str:
    """Escape what means something in a cell of Markdown; an underscore inside a word does not."""
    return re.sub(r"[\\`*\[\]|~$]|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", text)


def run_table(runs: Iterable[Run]) -> Table:
    """Return a table with one row for each setting; test and validation results are shown in percent."""
    rows: list[list[Cell]] = []
    for run in runs:
        model = run.settings.model if run.choice is None else f"{run.choice.title}: {run.choice.chosen}"
        test, val = run.test.to_dict().values(), run.val.to_dict()["mean"]
        rows.append([run.settings.dataset, model, run.metric, run.n, *test, val, run.seconds])
    columns = ["dataset", "model", "metric", "n", "test", "std", "stderr", "val", "seconds"]
    headings = {"dataset": "data set", "n": "runs", "test": "test %", "stderr": "std error", "val": "val %"}
    return Table(columns, rows, headings, shares=("test", "std", "stderr", "val"))


def choice_table(choice: Choice) -> Table:
    """Return a table with one row for each rung that `auto` tried; validation results are shown in percent."""
    marks = {str(choice.best_plain): "best plain", choice.chosen: "chosen"}
    rows: list[list[Cell]] = []
    for rung in choice.rungs:
        mark = marks.get(rung.name, "" if rung.rank else "stopped early" if rung.runs else "diverged")
        rows.append([rung.name, rung.about, rung.runs, rung.val, rung.behind, rung.error, rung.rank, mark])
    columns = ["rung", "about", "runs", "val", "behind", "error", "rank", "mark"]
    headings = {"val": "val %", "behind": "behind the best", "error": "± error", "mark": ""}
    return Table(columns, rows, headings, shares=("val", "behind", "error"))
