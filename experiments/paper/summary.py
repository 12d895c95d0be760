"""Summary: every published number compared with ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from experiments.experiment import PAPER_PRESETS, PLAIN, Page
from experiments.pages import read_rows
from experiments.paper.accuracy import CHOOSING, TESTING
from experiments.published import POINTS, SHARE, Fixed, PaperNumber, decimals
from experiments.rows import NO_DATA, Columns, paragraphs
from gumbel_mpnn.report import Row, Table

NOT_RUN = "not run"
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


class Summary(Page):
    """A table with one row for each number in the tables of the paper, from the rows beside their pages."""

    name = "summary"
    title = "Every number of the paper, and ours"
    headings: Mapping[str, str] = {
        "dataset": "data set or task",
        "paper_pm": "paper ±",
        "pm": "ours ±",
        "difference": "ours − paper",
        "within": f"within {POINTS} points or {100 * SHARE:.0f} %",
    }

    def rows(self, pages: Iterable[Page], folder: Path) -> list[Row]:
        """Return a row for each published number and preset; tables without a CSV in the folder were not run."""
        rows: list[Row] = []
        for page in pages:
            file = folder / f"{page.name}.csv"
            numbers = page.numbers()
            found = read_rows(file) if numbers and file.is_file() else []
            rows += [_row(page.name, number, found) for number in numbers]
        return rows

    def shown(self, rows: Sequence[Row]) -> str:
        """Return how many numbers are within reach for each preset, and their verdicts for each page and preset."""
        keys = {tuple(row[name] for name in ("page", "dataset", "model", "quantity")): row["verdict"] for row in rows}
        missing = sum(verdict == NO_DATA for verdict in keys.values())
        items = [
            item
            for preset in ORDER
            if (mine := [row for row in rows if row["preset"] == preset])
            for item in _items(mine, preset)
        ]
        counts = _counts(rows)
        return paragraphs(
            f"{len(keys)} numbers of the paper's tables are listed. The available data allows {len(keys) - missing} of"
            f" them ({missing} need data sets that are missing). {RULE}"
            f" The target is {TARGET} % for `{TARGET_PRESET}`.",
            "\n".join(items),
            Table(list(counts[0]), [list(row.values()) for row in counts]).render("markdown") if counts else "",
        )


def _counts(rows: Sequence[Row]) -> list[Row]:
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
    groups = {
        CHOOSING: [row for row in accuracies if row["model"] in PLAIN],
        TESTING: [row for row in accuracies if row["model"] not in PLAIN],
    }
    return [
        f"- `{preset}`: {_within(rows)}",
        *(f"  - accuracies of {name}: {_within(mine)}" for name, mine in groups.items() if mine),
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


def _row(page: str, number: PaperNumber, ours: Sequence[Row]) -> Row:
    row: Columns = {
        "page": page,
        "preset": number.preset or GIVEN,
        "dataset": number.dataset,
        "model": number.model,
        "quantity": number.quantity,
        "paper": number.value,
        "paper_pm": number.error,
        **dict.fromkeys(("ours", "pm", "n", "difference", "within")),
        "verdict": NO_DATA if _has_no_data(ours, number) else NOT_RUN,
    }
    found = number.find(ours)
    if found is None:
        return row
    value, error = float(found[number.column] or 0), number.error_in(found)
    digits = decimals(number.value)
    # Without an error, one more digit shows how close the number is.
    shown = digits + (not number.error_column and digits > 0)
    return row | {
        "ours": _shown(value, shown),
        "pm": None if error is None else Fixed(error, digits),
        "n": found.get("n"),
        "difference": _shown(value - number.value, shown),
        "within": YES if number.within(value) else NO,
        "verdict": number.verdict(value, error),
    }


def _has_no_data(rows: Sequence[Row], number: PaperNumber) -> bool:
    """Whether a table says that the files of the data set are missing."""
    mine = (row for row in rows if row.get("dataset") == number.dataset)
    return any(str(cell).endswith(NO_DATA) for row in mine for cell in row.values())


def _shown(value: float, digits: int) -> int | float:
    """Return a value with a fixed number of decimals; counts stay integers."""
    return Fixed(value, digits) if digits or value != int(value) else int(value)
