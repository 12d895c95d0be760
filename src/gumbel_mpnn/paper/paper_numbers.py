"""The paper's numbers one by one: where ours is, and what the two say of each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gumbel_mpnn._util.fixed import Fixed
from gumbel_mpnn.paper.base import published
from gumbel_mpnn.report import Row

ERRORS = 2.0
"""So many joint standard errors apart, two means are not called the same."""
ROUNDING = 1e-9
"""What floating point may add to a difference."""


@dataclass(frozen=True)
class PaperNumber:
    """A number that the paper prints, and the place of ours among the rows of a page.

    Attributes:
        dataset: Of which data set or task.
        quantity: What it is, for people.
        value: As printed.
        row: What the columns of our row say.
        column: The column with our number.
        model: Of which model, if any.
        error: The paper's ±, if it prints one.
        error_column: The column with our standard error, if ours is a mean over runs.
        tolerance: How far from the printed digits the page still calls the same.
    """

    dataset: str
    quantity: str
    value: int | float
    row: Mapping[str, str | int]
    column: str
    model: str = ""
    error: float | None = None
    error_column: str = ""
    tolerance: float = 0.0

    def find(self, rows: Iterable[Row]) -> Row | None:
        """Our row, if it is there and has a number."""
        for row in rows:
            if all(row.get(name) == value for name, value in self.row.items()):
                return None if row.get(self.column) is None else row
        return None

    def error_in(self, row: Row) -> float | None:
        """Our standard error; None where there is none to have: a number that is no mean, or a single run."""
        if not self.error_column or int(row.get("n") or 0) < 2:
            return None
        return float(row[self.error_column] or 0)

    def verdict(self, ours: float, error: float | None) -> str:
        """What the difference says.

        Of a mean over runs: `same` within two joint standard errors (or the printed digits, where errors are smaller),
        `above` or `below` beyond, `too few runs` where our error is not known. Of any other number: `equal` to the
        printed digits, `close` within the tolerance, or `differs`.
        """
        apart = (1 - ROUNDING) * abs(ours - self.value)
        printed = 0.5 * 10.0 ** -decimals(self.value)
        if not self.error_column:
            return "equal" if apart <= printed else "close" if apart <= self.tolerance else "differs"
        if error is None:
            return "too few runs"
        if apart <= max(printed, ERRORS * math.hypot(error, self.error or 0.0)):
            return "same"
        return "above" if ours > self.value else "below"


def decimals(value: int | float) -> int:
    """How many the paper printed."""
    return value.digits if isinstance(value, Fixed) else 0


def of_learned_graphs(table: str, headings: Mapping[str, str], graph: str = "learned") -> list[PaperNumber]:
    """The numbers of a published table on the graphs that Gumbel-MPNN learned, and where ours are.

    `headings` name its columns; `graph` is what our rows of learned graphs are called.
    """
    return [
        PaperNumber(
            dataset,
            f"{headings[name]}, rewired",
            value,
            {"dataset": dataset, "graph": graph},
            name,
            "gumbel-mpnn",
        )
        for dataset, values in published(table).items()
        for name, value in values.items()
    ]
