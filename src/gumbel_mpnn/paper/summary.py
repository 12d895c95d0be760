"""Summary: every published number compared with ours."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gumbel_mpnn.paper.backbones import CHOOSING, TESTING
from gumbel_mpnn.paper.backbones import MODELS as PLAIN
from gumbel_mpnn.paper.base import PAPER_PRESETS, Columns
from gumbel_mpnn.paper.page import Page, as_share
from gumbel_mpnn.paper.paper_numbers import POINTS, SHARE, PaperNumber, decimals
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.table import Fixed

NO_DATA, NOT_RUN = "no data", "not run"
GIVEN = "given graph"
"""Shown in place of the preset for numbers of graphs as they are given, for which nothing is trained."""
ORDER = ("paper", "literal", "tuned", GIVEN)
"""Order in which the presets are summed up."""
YES, NO = "yes", "no"
ACCURACY = "test %"
"""Beginning of the quantity of accuracies and ROC-AUCs."""
RULE = (
    f"Ours is called within reach if it differs by at most {POINTS} points (accuracy and ROC-AUC) or by at most"
    f" {100 * SHARE:.0f} % of the paper's number (all others), or by no more than the precision of the printed digits."
)
TARGET, TARGET_PRESET = 80, "paper"
"""Percentage of numbers within reach that we want, and for which preset."""
VERDICTS = ("same", "equal", "close", "above", "below", "differs", "too few runs", NOT_RUN, NO_DATA)


@dataclass(frozen=True)
class Collected:
    """The rows of a table, and the data sets without results."""

    rows: Sequence[Row]
    missing: frozenset[str]
    page: str = ""
    """File beside a page from which the rows were read; empty if they were computed from runs."""


def read_rows(page: Path) -> list[Row]:
    """Read the rows that were stored beside a page."""
    with page.open(encoding="utf-8", newline="") as file:
        return [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> str | int | float | None:
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text or None


class SummaryTable(Page):
    """A table with one row for each number in the tables of the paper."""

    name = "summary"
    title = "Every number of the paper, and ours"
    headings: Mapping[str, str] = {
        "dataset": "data set or task",
        "paper_pm": "paper ±",
        "pm": "ours ±",
        "difference": "ours − paper",
        "within": f"within {POINTS} points or {100 * SHARE:.0f} %",
    }

    def shares(self, row: Row) -> Row:
        """Return a row whose numbers are shares if they are accuracies; all other numbers have a unit of their own."""
        quantity = str(row["quantity"])
        if not quantity.startswith(ACCURACY):
            return {**row, "unit": None}
        converted = {name: as_share(row[name]) for name in ("paper", "paper_pm", "ours", "pm", "difference")}
        return {**row, "quantity": quantity.replace(ACCURACY, "test", 1), **converted, "unit": "share"}

    def rows(self, pages: Iterable[Page], collected: Mapping[str, Collected]) -> list[Row]:
        """Return a row for each published number and preset; pages that are not in `collected` were not run."""
        nothing = Collected((), frozenset())
        return [
            _row(page.name, number, collected.get(page.name, nothing)) for page in pages for number in page.numbers()
        ]

    def lead(self, rows: Sequence[Row]) -> str:
        """Return how many numbers there are, and how many of ours are within reach for each preset, as Markdown."""
        numbers, missing = set(), set()
        for row in rows:
            key = tuple(row[name] for name in ("page", "dataset", "model", "quantity"))
            numbers.add(key)
            missing |= {key} if row["verdict"] == NO_DATA else set()
        presets = [preset for preset in ORDER if _count(rows, "preset", preset)]
        return "\n".join(
            [
                f"{len(numbers)} numbers of the paper's tables are listed. The available data allows"
                f" {len(numbers) - len(missing)} of them ({len(missing)} need data sets that are missing)."
                f" {RULE} The target is {TARGET} % for `{TARGET_PRESET}`.",
                "",
                *(
                    item
                    for preset in presets
                    for item in _items([row for row in rows if row["preset"] == preset], preset)
                ),
            ]
        )

    def sources(self, collected: Mapping[str, Collected]) -> str:
        """Return which tables were read from the files beside their pages, as Markdown; empty if there are none."""
        files = ", ".join(f"[{each.page}]({each.page})" for each in collected.values() if each.page)
        return f"Read from the files beside their pages, not from runs: {files}." if files else ""

    def counts(self, rows: Sequence[Row]) -> list[Row]:
        """Return the numbers within reach and of each verdict, for each page and preset and for each preset."""
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            groups.setdefault((str(row["page"]), str(row["preset"])), []).append(row)
        for row in rows:
            groups.setdefault(("all", str(row["preset"])), []).append(row)
        seen = [word for word in VERDICTS if any(row["verdict"] == word for row in rows)]
        return [
            {
                "page": page,
                "preset": preset,
                "numbers": len(mine),
                "within": _count(mine, "within", YES),
                **{word: _count(mine, "verdict", word) for word in seen},
            }
            for (page, preset), mine in groups.items()
        ]


def _items(rows: Sequence[Row], preset: str) -> list[str]:
    """Return list items: how many numbers of a preset are within reach and, for the paper's presets, of whose."""
    if preset not in PAPER_PRESETS:
        return [f"- {preset if preset == GIVEN else f'`{preset}`'}: {_within(rows)}"]
    accuracies = [row for row in rows if str(row["quantity"]).startswith(ACCURACY)]
    chose = [row for row in accuracies if row["model"] in PLAIN]
    others = [row for row in accuracies if row["model"] not in PLAIN]
    return [
        f"- `{preset}`: {_within(rows)}",
        *(
            f"  - accuracies of {name}: {_within(mine)}"
            for name, mine in ((CHOOSING, chose), (TESTING, others))
            if mine
        ),
    ]


def _within(rows: Sequence[Row]) -> str:
    """Return how many numbers are within reach."""
    allowed, within = len(rows) - _count(rows, "verdict", NO_DATA), _count(rows, "within", YES)
    share = f" ({100 * within / allowed:.0f} %)" if allowed else ""
    missing = _count(rows, "verdict", NOT_RUN)
    not_run = f"; {missing} were not run" if missing else ""
    return f"{allowed} numbers that the data allows, {within} of them within{share}{not_run}"


def _count(rows: Iterable[Row], column: str, value: str) -> int:
    return sum(row[column] == value for row in rows)


def _row(page: str, number: PaperNumber, collected: Collected) -> Row:
    row: Columns = {
        "page": page,
        "preset": number.preset or GIVEN,
        "dataset": number.dataset,
        "model": number.model,
        "quantity": number.quantity,
        "paper": number.value,
        "paper_pm": number.error,
        **dict.fromkeys(("ours", "pm", "n", "difference", "within")),
        "verdict": NO_DATA if number.dataset in collected.missing else NOT_RUN,
    }
    found = number.find(collected.rows)
    if found is None:
        return row
    ours, error = float(found[number.column] or 0), number.error_in(found)
    digits = decimals(number.value)
    # Without an error, one more digit shows how close the number is.
    shown = digits + (not number.error_column and digits > 0)
    return row | {
        "ours": _shown(ours, shown),
        "pm": None if error is None else Fixed(error, digits),
        "n": found.get("n"),
        "difference": _shown(ours - number.value, shown),
        "within": YES if number.within(ours) else NO,
        "verdict": number.verdict(ours, error),
    }


def _shown(value: float, digits: int) -> int | float:
    """Return a value with a fixed number of decimals; counts stay integers."""
    return Fixed(value, digits) if digits or value != int(value) else int(value)
