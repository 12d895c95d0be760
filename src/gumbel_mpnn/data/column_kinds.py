"""What columns hold, numbers, booleans, categories, dates or text, and the features that they become."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from calendar import monthrange
from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn._util.numbers import counted
from gumbel_mpnn.data.feature_columns import (
    BOOLEANS,
    MISSING,
    FeatureColumn,
    Features,
    Floats,
    encode,
    listed,
    unknown_words,
    warn_of_unknown,
)

MOST_CATEGORIES, NODES_PER_CATEGORY = 20, 5
"""A column of words is categorical if it has at most as many values, each at as many nodes on average."""
MOST_NAMED_CATEGORIES, NODES_PER_NAMED_CATEGORY = 100, 2
"""The same for a column that the user names as a feature."""
SHARE_OF_DATES = 0.75
"""A column holds dates if at least this share of its values can be read as such."""

_MONTH, _DAY = r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_NAME = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_TIME = r"\d{1,2}:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?(?:\s?[ap]m)?(?:\s?(?:z|utc|gmt|[+-]\d{2}:?\d{2}))?"
_YEAR = r"(?:19|20)\d{2}"
_DATES = (
    rf"\d{{4}}([-/.]){_MONTH}\1{_DAY}",
    rf"{_DAY}([-.]){_MONTH}\2\d{{4}}",
    rf"{_DAY}\.{_MONTH}\.\d{{2}}",
    rf"{_YEAR}[-/]{_MONTH}",
    rf"{_MONTH}/{_YEAR}",
    rf"(?:{_DAY}/{_MONTH}|{_MONTH}/{_DAY})/(?:\d{{4}}|\d{{2}})",
    rf"{_DAY}\.?[\s-]{_NAME}[\s-]\d{{4}}",
    rf"{_NAME}\s{_DAY},?\s\d{{4}}",
)
_DURATION = rf"-?\d+ days?,?\s+[+-]?{_TIME}"
_DATE_OR_TIME = re.compile(rf"(?:{'|'.join(_DATES)})(?:(?:t|,?\s+){_TIME})?|{_TIME}|{_DURATION}", re.IGNORECASE)
_REAL = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_COMPLEX = re.compile(rf"\(?(?:{_REAL}(?=[+-]))?{_REAL}j\)?", re.IGNORECASE)

_FIRST_YEAR, _LAST_YEAR = 1900, 2100


class Kind(Enum):
    """What a column of words holds."""

    boolean = "boolean"
    category = "category"
    complex = "complex"
    date = "date"
    text = "text"


class Columns(ABC):
    """Columns of a file, or attributes of nodes, that may become features."""

    what: ClassVar[str]
    """What messages call one of them."""
    where: str

    @abstractmethod
    def is_numeric(self, name: str) -> bool:
        """Whether it holds numbers, vectors or booleans."""

    @abstractmethod
    def mixed(self, name: str) -> tuple[str, object] | None:
        """Place and value of the first entry that is not a number, if there are numbers beside it; else None."""

    @abstractmethod
    def words(self, name: str) -> list[str] | None:
        """Its values as words, empty where they are missing; None if they are neither words nor booleans."""

    @abstractmethod
    def numbers(self, name: str) -> tuple[FeatureColumn, Floats]:
        """Its numbers as features; raises a `DataError` if a node has none."""

    @abstractmethod
    def single_numbers(self, name: str) -> NDArray[Any]:
        """Its numbers in full precision; empty if they are vectors."""

    def text(self, name: str) -> list[str]:
        """Its values as words, whatever they are."""
        return self.words(name) or []


def all_features(columns: Columns, names: Sequence[str]) -> Features:
    """Return those columns that hold numbers, vectors, booleans or categories; warn about all others."""
    found, mixed, text = list[tuple[FeatureColumn, Floats]](), list[tuple[str, str, object]](), list[str]()
    for name in names:
        if columns.is_numeric(name):
            found.append(_undated(columns, name))
        elif wrong := columns.mixed(name):
            mixed.append((name, *wrong))
        elif (words := columns.words(name)) and (column := free_column(columns.what, columns.where, str(name), words)):
            found.append((column, encode(column, words)))
        else:
            text.append(name)
    warn_of_mixed(columns.what, columns.where, mixed)
    warn_of_text(columns.what, columns.where, text)
    return Features.of(found)


def named_features(columns: Columns, names: Sequence[str]) -> Features:
    """Return the columns that the user named; raise a `DataError` if one cannot be used."""
    found = []
    for name in names:
        words = None if columns.is_numeric(name) or columns.mixed(name) else columns.words(name)
        if words is None:
            found.append(_undated(columns, name))
        else:
            column = named_column(columns.what, columns.where, str(name), words)
            found.append((column, encode(column, words)))
    return Features.of(found)


def trained_features(columns: Columns, trained: Sequence[FeatureColumn], names: Sequence[str]) -> Features:
    """Return the columns that a model was trained on, which are called `names` here."""
    found, unknown = [], {}
    for column, name in zip(trained, names, strict=True):
        if column.categories is not None:
            words = columns.text(name)
            unknown[name] = unknown_words(column, words)
            found.append((column, encode(column, words)))
        else:
            given = None if columns.is_numeric(name) else columns.words(name)
            x = encode(column, given) if given and kind_of(given) is Kind.boolean else columns.numbers(name)[1]
            if x.shape[1] != column.width:
                raise DataError(
                    f"the {columns.what} {name!r} of {columns.where} has {counted(x.shape[1], 'number')} per node, but"
                    f" the model was trained on {column.width}: give every node as many, in the format of its data"
                )
            found.append((column, x))
    warn_of_unknown(columns.what, columns.where, unknown)
    return Features.of(found)


def _undated(columns: Columns, name: str) -> tuple[FeatureColumn, Floats]:
    """Return numbers as features; raise a `DataError` if they are dates."""
    found = columns.numbers(name)
    check_no_dates(columns.what, columns.where, str(name), columns.single_numbers(name))
    return found


def kind_of(words: Sequence[str], named: bool = False) -> Kind:
    """Return what the words of a column are, empty if missing; more categories are allowed if the user named it."""
    filled = [each for each in words if each != MISSING]
    values = set(filled)
    if values and values <= BOOLEANS:
        return Kind.boolean if len(filled) == len(words) else Kind.category
    if sum(_DATE_OR_TIME.fullmatch(each) is not None for each in filled) >= max(SHARE_OF_DATES * len(filled), 1):
        return Kind.date
    if filled and all(map(_COMPLEX.fullmatch, values)):
        return Kind.complex
    most = MOST_NAMED_CATEGORIES if named else MOST_CATEGORIES
    nodes = NODES_PER_NAMED_CATEGORY if named else NODES_PER_CATEGORY
    return Kind.category if 0 < len(values) <= min(most, len(filled) / nodes) else Kind.text


def column_of(name: str, words: Sequence[str], kind: Kind) -> FeatureColumn:
    """Describe a column of booleans or categories."""
    if kind is Kind.boolean:
        return FeatureColumn(name)
    values = sorted(set(words) - {MISSING})
    return FeatureColumn(name, (*values, MISSING) if MISSING in words else tuple(values))


def named_column(what: str, where: str, name: str, words: Sequence[str]) -> FeatureColumn:
    """Describe a column that the user named as a feature; raise a `DataError` if it cannot be one."""
    kind = kind_of(words, named=True)
    _check_kind(kind, what, where, name, words)
    if kind is Kind.text:
        filled = [each for each in words if each != MISSING]
        raise DataError(
            f"feature {what} {name!r} of {where} has values that are not numbers, and {len(set(filled))} different ones"
            f" at {len(filled)} nodes: categories are at most {MOST_NAMED_CATEGORIES}, each at"
            f" {NODES_PER_NAMED_CATEGORY} nodes on average, so group the values or leave it out"
        )
    return column_of(name, words, kind)


def free_column(what: str, where: str, name: str, words: Sequence[str]) -> FeatureColumn | None:
    """Describe a column that the user did not name; None for text.

    Raise a `DataError` if it holds dates, times or complex numbers.
    """
    kind = kind_of(words)
    _check_kind(kind, what, where, name, words)
    return None if kind is Kind.text else column_of(name, words, kind)


def check_no_dates(what: str, where: str, name: str, values: NDArray[Any]) -> None:
    """Raise a `DataError` if all numbers of a column are dates such as 20200301; missing ones do not count."""
    numbers = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if numbers.size and numbers.dtype.kind in "iuf" and all(map(_is_date, np.unique(numbers).tolist())):
        raise no_dates(what, where, name, str(int(numbers.flat[0])))


def _is_date(number: float) -> bool:
    if not _FIRST_YEAR * 10000 <= number < (_LAST_YEAR + 1) * 10000 or number != int(number):
        return False
    year, month, day = int(number) // 10000, int(number) // 100 % 100, int(number) % 100
    return 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]


def warn_of_mixed(what: str, where: str, found: Sequence[tuple[str, str, object]]) -> None:
    """Warn about columns or attributes that are not used as features because some of their values are not numbers.

    `found` has the name of each, and the place and the value of the first entry that is not a number.
    """
    if found:
        name, place, value = found[0]
        more = f" (and {len(found) - 1} more like it)" if len(found) > 1 else ""
        warnings.warn(
            f"the {what} {name!r} of {where}{more} is not used as a feature, since {place} has {value!r}, "
            "which is not a number: write a number there, or words everywhere if the values are categories",
            DataWarning,
            stacklevel=4,
        )


def warn_of_text(what: str, where: str, names: Sequence[str]) -> None:
    """Warn about columns of text, which are not used as features."""
    if names:
        one = len(names) == 1
        warnings.warn(
            f"the {what}{'' if one else 's'} {listed(names)} of {where} {'holds' if one else 'hold'} text and"
            f" {'is' if one else 'are'} not used: a feature has numbers, booleans, or at most {MOST_CATEGORIES}"
            f" different values, each at {NODES_PER_CATEGORY} nodes on average ({MOST_NAMED_CATEGORIES} and"
            f" {NODES_PER_NAMED_CATEGORY} if you name it in features= or --features)",
            DataWarning,
            stacklevel=4,
        )


def _check_kind(kind: Kind, what: str, where: str, name: str, words: Sequence[str]) -> None:
    """Raise a `DataError` for dates, times and complex numbers."""
    if kind is Kind.date:
        raise no_dates(what, where, name, next(each for each in words if _DATE_OR_TIME.fullmatch(each)))
    if kind is Kind.complex:
        raise no_complex(what, where, name, next(each for each in words if each != MISSING))


def no_complex(what: str, where: str, name: str, example: object) -> DataError:
    """Error for an attribute or column of complex numbers."""
    return DataError(
        f"the {what} {name!r} of {where} holds complex numbers such as {example}, which are not features: give their"
        " real and imaginary parts as two, or leave it out by naming the features to use (features=, --features)"
    )


def no_dates(what: str, where: str, name: str, example: str) -> DataError:
    """Error for an attribute or column of dates, times or durations."""
    return DataError(
        f"the {what} {name!r} of {where} holds dates or times such as {example!r}, which are not features: turn it into"
        " a number, such as days since a date, or leave it out by naming the features to use (features=, --features)"
    )
