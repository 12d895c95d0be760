"""A table, and the five ways it is printed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Cell = str | int | float | None
Format = Literal["text", "json", "csv", "markdown", "latex"]
FORMATS: tuple[Format, ...] = ("text", "json", "csv", "markdown", "latex")


@dataclass(frozen=True)
class Table:
    """Named columns and rows of plain values; numbers stand right, everything else left.

    `headings` are what people read above a column; JSON and CSV keep the column's own name and all digits. With
    `keep_small`, a number that `digits` would round to 0 is written like 2.6e-08; the `exact` columns keep all digits.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    headings: Mapping[str, str] | None = None
    digits: int = 2
    keep_small: bool = False
    exact: Sequence[str] = ()

    def render(self, format: Format) -> str:
        """The table as text in one of `FORMATS`, without a newline at its end."""
        match format:
            case "json":
                return json.dumps([dict(zip(self.columns, row, strict=True)) for row in self.rows], indent=1)
            case "csv":
                return self._csv()
            case "markdown":
                return self._markdown()
            case "latex":
                return self._latex()
            case "text":
                return self._text()

    def _text(self) -> str:
        heads, cells = self._heads(), self._cells()
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        pads = [str.rjust if self._is_numeric(k) else str.ljust for k in range(len(widths))]
        lines = [
            "  ".join(pad(text, width) for pad, text, width in zip(pads, row, widths, strict=True))
            for row in [heads, *cells]
        ]
        return "\n".join(line.rstrip() for line in [lines[0], "  ".join("─" * width for width in widths), *lines[1:]])

    def _markdown(self) -> str:
        rule = ["--:" if self._is_numeric(k) else "---" for k in range(len(self.columns))]
        heads, *cells = [[_one_line(cell) for cell in row] for row in [self._heads(), *self._cells()]]
        return "\n".join("| " + " | ".join(row) + " |" for row in [heads, rule, *cells])

    def _latex(self) -> str:
        alignment = "".join("r" if self._is_numeric(k) else "l" for k in range(len(self.columns)))
        lines = [" & ".join(_escape(cell) for cell in row) + r" \\" for row in [self._heads(), *self._cells()]]
        begin, end = rf"\begin{{tabular}}{{{alignment}}}", r"\end{tabular}"
        return "\n".join([begin, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", end])

    def _csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return out.getvalue().rstrip("\n")

    def _heads(self) -> list[str]:
        return [(self.headings or {}).get(column, column) for column in self.columns]

    def _cells(self) -> list[list[str]]:
        exact = [column in self.exact for column in self.columns]
        return [[self._show(*cell) for cell in zip(row, exact, strict=True)] for row in self.rows]

    def _show(self, cell: Cell, exact: bool) -> str:
        if cell is None:
            return "–"
        if exact or not isinstance(cell, float):
            return str(cell)
        if self.keep_small and cell != 0 and abs(cell) < 0.5 * 10**-self.digits:
            return f"{cell:.1e}"
        return f"{cell:.{self.digits}f}"

    def _is_numeric(self, column: int) -> bool:
        cells = [row[column] for row in self.rows if row[column] is not None]
        return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def _one_line(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _escape(text: str) -> str:
    named = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    named |= {"±": r"$\pm$", "–": "--", "−": "$-$"}
    return "".join(named.get(c, "\\" + c if c in "&%#_${}" else c) for c in text)
