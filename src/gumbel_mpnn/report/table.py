"""Tables in five output formats, and the table of runs."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gumbel_mpnn._util.json_text import to_json

if TYPE_CHECKING:
    from gumbel_mpnn.runs import Choice, Run

Cell = str | int | float | None
Row = Mapping[str, Cell]
Format = Literal["text", "json", "csv", "markdown", "latex"]
FORMATS: tuple[Format, ...] = ("text", "json", "csv", "markdown", "latex")
METRIC_NAMES = {
    "accuracy": "accuracy %",
    "balanced_accuracy": "balanced accuracy %",
    "macro_f1": "macro F1 %",
    "roc_auc": "ROC-AUC %",
    "average_precision": "average precision %",
}


class Fixed(float):
    """A float that a table shows with its own number of decimals."""

    digits: int

    def __new__(cls, value: float, digits: int) -> Fixed:
        """`value`, to be shown with `digits` decimals."""
        number = super().__new__(cls, value)
        number.digits = digits
        return number

    @classmethod
    def parse(cls, text: str) -> Fixed:
        """The number written in `text`, with as many decimals as are written there."""
        return cls(float(text), len(text.partition(".")[2]))


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
    headings: Mapping[str, str] | None = None
    """Headings shown in place of the names of the columns."""
    digits: int = 2
    """Number of decimals; a `Fixed` is shown with its own number of decimals."""
    keep_small: bool = False
    """Whether a number that would be rounded to 0 is written in scientific notation (2.6e-08)."""
    exact: Sequence[str] = ()
    """Columns that are shown with all digits."""
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Texts shown in place of values, by column."""
    shares: Sequence[str] = ()
    """Columns of shares between 0 and 1."""

    def render(self, format: Format) -> str:
        """Return the table as text in one of `FORMATS`, without a trailing newline."""
        match format:
            case "json":
                unit = {"unit": "share"} if self.shares else {}
                return to_json([dict(zip(self.columns, row, strict=True)) | unit for row in self.rows], indent=1)
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
        heads = list(map(_marked_down, self._heads()))
        cells = [
            [text if isinstance(cell, Markdown) else _marked_down(text) for text, cell in zip(texts, row, strict=True)]
            for texts, row in zip(self._cells(), self.rows, strict=True)
        ]
        return "\n".join("| " + " | ".join(row) + " |" for row in [heads, rule, *cells])

    def _latex(self) -> str:
        alignment = "".join("r" if self._is_numeric(k) else "l" for k in range(len(self.columns)))
        lines = [" & ".join(map(_escape, row)) + r" \\" for row in [self._heads(), *self._cells()]]
        begin, end = rf"\begin{{tabular}}{{{alignment}}}", r"\end{tabular}"
        return "\n".join([begin, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", end])

    def _csv(self) -> str:
        return "\n".join(_csv_line(row) for row in [self.columns, *self._in_percent()])

    def _heads(self) -> list[str]:
        return [_one_line((self.headings or {}).get(column, column)) for column in self.columns]

    def _cells(self) -> list[list[str]]:
        kinds = [(column in self.exact, self.words.get(column, {})) for column in self.columns]
        return [[self._show(cell, *kind) for cell, kind in zip(row, kinds, strict=True)] for row in self._in_percent()]

    def _in_percent(self) -> Sequence[Sequence[Cell]]:
        if not self.shares:
            return self.rows
        is_share = [column in self.shares for column in self.columns]
        return [
            [
                100 * cell if share and isinstance(cell, float) else cell
                for cell, share in zip(row, is_share, strict=True)
            ]
            for row in self.rows
        ]

    def _show(self, cell: Cell, exact: bool, words: Mapping[str, str]) -> str:
        if cell is None:
            return "–"
        if isinstance(cell, str):
            return _one_line(words.get(cell, cell))
        if exact or not isinstance(cell, float):
            return str(cell)
        digits = cell.digits if isinstance(cell, Fixed) else self.digits
        if self.keep_small and cell != 0 and abs(cell) < 0.5 * 10**-digits:
            return f"{cell:.1e}"
        return f"{cell:.{digits}f}"

    def _is_numeric(self, column: int) -> bool:
        cells = [row[column] for row in self.rows if row[column] is not None]
        return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def run_table(runs: Iterable[Run]) -> Table:
    """Return a table with one row for each setting; test and validation results are shown in percent."""
    return Table(
        columns=["dataset", "model", "metric", "n", "test", "std", "stderr", "val", "seconds"],
        rows=[
            [
                run.settings.dataset,
                run.settings.model if run.choice is None else f"{run.choice.ladder}: {run.choice.chosen}",
                run.metric,
                run.n,
                *run.test.to_dict().values(),
                run.val.to_dict()["mean"],
                run.seconds,
            ]
            for run in runs
        ],
        headings={"dataset": "data set", "stderr": "std error", "n": "runs"},
        words={"metric": METRIC_NAMES},
        shares=("test", "std", "stderr", "val"),
    )


def choice_table(choice: Choice) -> Table:
    """Return a table with one row for each rung that `auto` tried; validation results are shown in percent."""
    marks = {str(choice.best_plain): "best plain", choice.chosen: "chosen"}
    return Table(
        columns=["rung", "about", "runs", "val", "behind", "error", "rank", "mark"],
        rows=[
            [
                rung.name,
                rung.about,
                rung.runs,
                rung.val,
                rung.behind,
                rung.error,
                rung.rank,
                marks.get(rung.name, "" if rung.rank else "stopped early" if rung.runs else "diverged"),
            ]
            for rung in choice.rungs
        ],
        headings={"val": "val %", "behind": "behind the best", "error": "± error", "mark": ""},
        shares=("val", "behind", "error"),
    )


def _csv_line(row: Sequence[Cell]) -> str:
    """Format one row. The terminator is CR LF, so that a cell that contains either character is quoted."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(row)
    return out.getvalue().removesuffix("\r\n")


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


_MARKDOWN = re.compile(r"[\\`*\[\]|~$]|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")
"""Characters that mean something in a cell of Markdown; an underscore inside a word does not."""


def _marked_down(text: str) -> str:
    """Escape text for a cell of Markdown; control characters become spaces."""
    text = "".join(" " if unicodedata.category(c) == "Cc" else c for c in text)
    return _MARKDOWN.sub(r"\\\g<0>", text)


_TEX = {character: "\\" + character for character in "&%#_${}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # at the start of a line LaTeX reads "[" and "*" as arguments of the preceding line break or rule
    "*": "{*}",
    "±": r"$\pm$",
    "–": r"\textendash{}",
    "−": "$-$",
    "…": r"\ldots{}",
    "τ": r"$\tau$",
}


def _escape(text: str) -> str:
    """Escape text for LaTeX.

    A hyphen before a digit becomes a minus sign, hyphens in a row stay hyphens, and control characters become spaces.
    """
    text = re.sub(r"^-(?=\d)", "−", text)
    text = "".join(_TEX.get(c, " " if unicodedata.category(c) == "Cc" else c) for c in text)
    return re.sub("-(?=-)", "-{}", text)
