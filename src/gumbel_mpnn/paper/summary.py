"""Summary: every published number compared with ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gumbel_mpnn.paper.base import Columns
from gumbel_mpnn.paper.page import Page
from gumbel_mpnn.paper.paper_numbers import PaperNumber, decimals
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.table import Fixed

NO_DATA, NOT_RUN = "no data", "not run"
VERDICTS = ("same", "equal", "close", "above", "below", "differs", "too few runs", NOT_RUN, NO_DATA)


@dataclass(frozen=True)
class Collected:
    """The rows of a table, and the data sets without results."""

    rows: Sequence[Row]
    missing: frozenset[str]


class SummaryTable(Page):
    """A table with one row for each number in the tables of the paper."""

    name = "summary"
    title = "Every number of the paper, and ours"
    headings: Mapping[str, str] = {
        "dataset": "data set or task",
        "paper_pm": "paper ±",
        "pm": "ours ±",
        "difference": "ours − paper",
    }

    def rows(self, pages: Iterable[Page], collected: Mapping[str, Collected]) -> list[Row]:
        """Return a row for each published number of `pages`; pages that are not in `collected` were not run."""
        nothing = Collected((), frozenset())
        return [
            _row(page.name, number, collected.get(page.name, nothing)) for page in pages for number in page.numbers()
        ]

    def lead(self, rows: Sequence[Row]) -> str:
        """Return a sentence with the number of published numbers and of each verdict, as Markdown."""
        total = Counter(row["verdict"] for row in rows)
        allowed, missing = len(rows) - total[NO_DATA], total[NO_DATA]
        known = ", ".join(f"{total[word]} {word}" for word in VERDICTS if total[word] and word != NO_DATA)
        return (
            f"{len(rows)} numbers of the paper's tables are listed. The available data allows {allowed} of them"
            f" ({missing} need data sets that are missing): {known}."
        )

    def counts(self, rows: Sequence[Row]) -> list[Row]:
        """Return the number of each verdict, for each page and in total."""
        pages: dict[str, Counter[object]] = {}
        for row in rows:
            pages.setdefault(str(row["page"]), Counter())[row["verdict"]] += 1
        seen = [word for word in VERDICTS if any(count[word] for count in pages.values())]
        total = sum(pages.values(), Counter[object]())
        return [
            {"page": name, "numbers": count.total(), **{word: count[word] for word in seen}}
            for name, count in [*pages.items(), ("all", total)]
        ]


def _row(page: str, number: PaperNumber, collected: Collected) -> Row:
    row: Columns = {
        "page": page,
        "dataset": number.dataset,
        "model": number.model,
        "quantity": number.quantity,
        "paper": number.value,
        "paper_pm": number.error,
        **dict.fromkeys(("ours", "pm", "n", "difference")),
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
        "verdict": number.verdict(ours, error),
    }


def _shown(value: float, digits: int) -> int | float:
    """Return a value with a fixed number of decimals; counts stay integers."""
    return Fixed(value, digits) if digits or value != int(value) else int(value)
