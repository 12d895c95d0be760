"""Published numbers, and how ours are compared with them."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumbel_mpnn.report import Row

ERRORS = 2.0
"""Two means are called the same if they differ by at most this many joint standard errors."""
POINTS = 1.5
"""An accuracy is within reach of the published one if they differ by at most this many points."""
SHARE = 0.1
"""Any other number is within reach if it differs from the published one by at most this share of it."""
ROUNDING = 1e-9
"""Allowance for rounding errors in a difference."""


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


def published(table: str) -> dict[str, dict[str, Any]]:
    """Read the published numbers of one table, as data set → row or column → number.

    Accuracies are pairs [value, ±] in percent. Numbers are shown with as many decimals as the paper prints.
    """
    file = Path(__file__).parent / "paper" / "published" / f"{table}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"), parse_float=Fixed.parse)


@dataclass(frozen=True)
class PaperNumber:
    """A published number, and where ours is among the rows of a table."""

    dataset: str
    quantity: str
    value: int | float
    row: Mapping[str, str | int]
    """Columns and values that identify our row."""
    column: str
    """Column with our number."""
    model: str = ""
    error: float | None = None
    """The published ±, if there is one."""
    error_column: str = ""
    """Column with our standard error, if our number is a mean over runs."""
    tolerance: float = 0.0
    """Largest difference that is called close."""
    preset: str = ""
    """Family of the presets with which our number was made; empty for numbers of the given graph."""
    accuracy: bool = False
    """Whether it is an accuracy or ROC-AUC in percent."""

    def find(self, rows: Iterable[Row]) -> Row | None:
        """Return our row, or None if it is missing or has no number."""
        for row in rows:
            if all(row.get(name) == value for name, value in self.row.items()):
                return None if row.get(self.column) is None else row
        return None

    def error_in(self, row: Row) -> float | None:
        """Return our standard error, or None for a single run or a number that is not a mean."""
        if not self.error_column or int(row.get("n") or 0) < 2:
            return None
        return float(row[self.error_column] or 0)

    def verdict(self, ours: float, error: float | None) -> str:
        """Return how our number compares with the published one.

        For a mean over runs: `same` within two joint standard errors (or the printed digits, if errors are smaller),
        `above` or `below` otherwise, and `too few runs` if our error is unknown. For any other number: `equal` to the
        printed digits, `close` within the tolerance, or `differs`.
        """
        apart = self._apart(ours)
        if not self.error_column:
            return "equal" if apart <= self._printed else "close" if apart <= self.tolerance else "differs"
        if error is None:
            return "too few runs"
        if apart <= max(self._printed, ERRORS * math.hypot(error, self.error or 0.0)):
            return "same"
        return "above" if ours > self.value else "below"

    def within(self, ours: float) -> bool:
        """Return whether our number is near the published one, however small the errors of both are.

        An accuracy may differ by 1.5 points, any other number by 10 % of the published one, and every number by the
        precision of the printed digits.
        """
        return self._apart(ours) <= max(self._printed, POINTS if self.accuracy else SHARE * abs(self.value))

    def _apart(self, ours: float) -> float:
        return (1 - ROUNDING) * abs(ours - self.value)

    @property
    def _printed(self) -> float:
        """Half a unit of the last printed digit."""
        return 0.5 * 10.0 ** -decimals(self.value)


def decimals(value: int | float) -> int:
    """Return the number of decimals with which a number was published."""
    return value.digits if isinstance(value, Fixed) else 0
