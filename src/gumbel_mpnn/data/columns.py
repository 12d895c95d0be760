"""Columns of a table of nodes: numbers, booleans and categories become features, and labels become classes."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn.data.splits import IntArray, among
from gumbel_mpnn.util.errors import DataError, DataWarning, counted, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

MOST_CATEGORIES, NODES_PER_CATEGORY = 20, 5
"""A column of words is categorical if it has at most as many values, each at as many nodes on average."""
MOST_NAMED_CATEGORIES, NODES_PER_NAMED_CATEGORY = 100, 2
"""The same for a column that the user names as a feature."""
MOST_CLASSES_OF_DECIMALS = 20
"""Decimal labels are taken as a quantity if they have more values than this and than half of the labelled nodes."""
NO_VALUE = ("", "nan", "NaN", "NA", "null")
"""Cells without a value, in columns that may become features."""
MISSING = ""
"""Category of missing values."""
_TRUE, _BOOLEANS = frozenset({"true", "yes"}), frozenset({"true", "yes", "false", "no"})
_MISSING_LABELS = frozenset({"NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"})
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MOST_LISTED = 10

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class FeatureColumn:
    """A column of a file, or an attribute of nodes, that became features.

    Attributes:
        name: name of the column.
        categories: values of a categorical column, each of which has a feature; `""` is a missing value. None for
            numbers and booleans, which have a single feature.
    """

    name: str
    categories: tuple[str, ...] | None = None

    @property
    def width(self) -> int:
        """Number of features."""
        return 1 if self.categories is None else len(self.categories)

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values."""
        return {"name": self.name, "categories": None if self.categories is None else list(self.categories)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FeatureColumn:
        """Convert from the result of `to_dict`."""
        categories = values["categories"]
        return cls(str(values["name"]), None if categories is None else tuple(categories))


Wanted = Sequence[str] | Sequence[FeatureColumn] | Literal[False] | None
"""What the readers take as features: names, columns as another graph has them, False for none, None for all."""


class Table(NamedTuple):
    """A table whose rows are nodes, or edges.

    Columns of numbers have a numeric type; others hold words. The index says where a row is, and its name what it
    counts: lines of a CSV file, rows of a Parquet file, nodes of a network.
    """

    frame: pd.DataFrame
    where: str
    """What messages call the table, such as the path of its file."""
    what: str = "column"
    """What messages call a column."""

    def row(self, row: int) -> str:
        """Return what messages call a row, such as `line 5`."""
        (place,) = self.frame.index[[row]].tolist()
        return f"{self.frame.index.name} {place!r}"

    def place(self, row: int) -> str:
        """Return where a row is, such as `line 5 of nodes.csv`."""
        return f"{self.row(row)} of {self.where}"

    def column(self, name: str) -> str:
        """Return the column that the user asked for, or raise a `DataError`."""
        return pick_name(self.frame.columns, name, self.where, self.what)


def find_name(names: Iterable[str], wanted: str, where: str, what: str = "column") -> str | None:
    """Return the name that matches `wanted`, ignoring case and blanks around it, or None; an exact match is preferred.

    Raise a `DataError` if several match.
    """
    names = list(names)
    same = [name for name in names if name.strip().casefold() == wanted.strip().casefold()]
    if wanted in names or not same:
        return wanted if wanted in names else None
    if len(same) > 1:
        raise DataError(
            f"{where} has the {what}s {listed(same)}, of which only one can be used: rename or delete the others"
        )
    return same[0]


def pick_name(names: Iterable[str], wanted: str, where: str, what: str = "column") -> str:
    """Return the name that matches `wanted`, or raise a `DataError`."""
    names = list(names)
    found = find_name(names, wanted, where, what)
    if found is None:
        raise DataError(f"{where} has no {what} {wanted!r}: {did_you_mean(wanted, names)}")
    return found


def trained_columns(wanted: Wanted) -> list[FeatureColumn]:
    """Return the columns of another graph if `wanted` are such; names give none."""
    columns = [column for column in wanted or () if isinstance(column, FeatureColumn)]
    if columns and len(columns) < len(wanted or ()):
        raise DataError("features are names or FeatureColumns, but not both: give one kind")
    return columns


def text_features(wanted: Wanted, names: Sequence[str], where: str) -> list[str]:
    """Return the columns that a model knows as categories, and that are to be read as text.

    In another file they may have only values that look like numbers or booleans.
    """
    categorical = [column.name for column in trained_columns(wanted) if column.categories is not None]
    return [name for name in (find_name(names, each, where) for each in categorical) if name is not None]


def features_of(table: Table, wanted: Wanted, taken: Sequence[str]) -> tuple[Floats | None, list[FeatureColumn]]:
    """Return the features that the user wants, [N, F] or None, and the columns that they come from.

    The columns `taken`, such as the label, cannot become features.
    """
    trained = trained_columns(wanted)
    if wanted is None:
        parts = _of_all(table, [name for name in table.frame.columns if name not in taken])
    elif trained:
        parts = [_of_trained(table, column) for column in trained]
    else:
        names = [table.column(str(name)) for name in wanted or ()]
        for place, name in enumerate(names):
            if name in taken:
                raise DataError(
                    f"{table.what} {name!r} of {table.where} is the id, label or split, so it cannot be a feature"
                )
            if name in names[:place]:
                raise DataError(f"the features name the {table.what} {name!r} of {table.where} twice: name it once")
        parts = [_of_named(table, name) for name in names]
    x = np.concatenate([x for _, x in parts], axis=1) if parts else None
    return x, [column for column, _ in parts]


def _of_all(table: Table, names: Sequence[str]) -> list[tuple[FeatureColumn, Floats]]:
    """Return those columns that hold numbers, booleans or categories; warn about all others."""
    found, text = list[tuple[FeatureColumn, Floats]](), list[str]()
    for name in names:
        wrong = _not_a_number(table, name)
        if wrong is not None:
            warn(
                f"the {table.what} {name!r} of {table.where} is not used as a feature, since {table.row(wrong)} has"
                f" {table.frame[name].iloc[wrong]!r}, which is not a number: write a number there, or words everywhere"
                " if the values are categories"
            )
        elif _is_numeric(table, name):
            found.append((FeatureColumn(name), _numbers(table, name)))
        elif (column := described(name, words := _words(table, name))) is None:
            text.append(name)
        else:
            found.append((column, encode(column, words)))
    if text:
        warn(
            f"{table.what} {listed(text)} of {table.where} is not used, since text and dates are no features: a feature"
            f" has numbers, booleans, or at most {MOST_CATEGORIES} different words, each at {NODES_PER_CATEGORY} nodes"
            f" on average ({MOST_NAMED_CATEGORIES} and {NODES_PER_NAMED_CATEGORY} if you name it in features= or"
            " --features)"
        )
    return found


def _of_named(table: Table, name: str) -> tuple[FeatureColumn, Floats]:
    """Return a column that the user named; raise a `DataError` if it cannot be used."""
    wrong = _not_a_number(table, name)
    if wrong is not None:
        raise DataError(
            f"feature {table.what} {name!r} of {table.where} has values that are not numbers, as"
            f" {table.frame[name].iloc[wrong]!r} in {table.row(wrong)}: correct them or leave it out"
        )
    if _is_numeric(table, name):
        return FeatureColumn(name), _numbers(table, name)
    words = _words(table, name)
    column = described(name, words, named=True)
    if column is None:
        filled = [word for word in words if word != MISSING]
        raise DataError(
            f"feature {table.what} {name!r} of {table.where} has values that are not numbers, and {len(set(filled))}"
            f" different ones at {len(filled)} nodes: categories are at most {MOST_NAMED_CATEGORIES} words, each at"
            f" {NODES_PER_NAMED_CATEGORY} nodes on average, and no dates, so group the values or leave it out"
        )
    return column, encode(column, words)


def _of_trained(table: Table, column: FeatureColumn) -> tuple[FeatureColumn, Floats]:
    """Return a column that a model was trained on; warn about values that it does not know."""
    name = find_name(table.frame.columns, column.name, table.where, table.what)
    if name is None:
        raise DataError(f"{table.where} has no {table.what} {column.name!r}, which the model was trained on")
    if column.categories is None and _is_numeric(table, name):
        return column, _numbers(table, name)
    words = _words(table, name)
    if column.categories is None:
        wrong = [row for row, word in enumerate(words) if word not in _BOOLEANS and not _is_number(word)]
        if wrong or described(name, words) != FeatureColumn(name):
            row = wrong[0] if wrong else 0
            raise DataError(
                f"{table.place(row)} has {repr(words[row]) if words[row] else 'no value'} as feature {name!r}, but the"
                " model was trained on numbers or booleans: write them in the same way"
            )
    elif unknown := [word for word in words if word not in column.categories]:
        warn(
            f"the {table.what} {name!r} of {table.where} has values that the model was not trained on, such as"
            f" {repr(unknown[0]) if unknown[0] else 'a missing one'}, at {counted(len(unknown), 'node')}: their"
            " features are 0"
        )
    return column, encode(column, words)


def _is_numeric(table: Table, name: str) -> bool:
    """Whether a column holds numbers or booleans alone."""
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(table.frame[name]))  # booleans included


def _not_a_number(table: Table, name: str) -> int | None:
    """Return the first row of a column of words that is not a number, if there are numbers beside it; else None."""
    import pandas as pd

    cells = table.frame[name]
    if _is_numeric(table, name):
        return None
    filled = cells.notna().to_numpy()
    wrong = filled & pd.to_numeric(cells.astype(str), errors="coerce").isna().to_numpy()
    return int(wrong.argmax()) if wrong.any() and wrong.sum() < filled.sum() else None


def _numbers(table: Table, name: str) -> Floats:
    """Return the numbers of a column, [N, 1]; raise a `DataError` if one is missing or infinite."""
    x: Floats = table.frame[[name]].to_numpy(dtype=np.float32, na_value=np.nan)
    wrong = np.flatnonzero(~np.isfinite(x))
    if len(wrong):
        found = "no number" if np.isnan(x[wrong[0], 0]) else "an infinite number"
        raise DataError(
            f"{table.place(wrong[0])} has {found} as feature {name!r}{among(len(wrong))}: give every node finite"
            " features, or name the features to use"
        )
    return x


def _words(table: Table, name: str) -> list[str]:
    """Return a column as words, empty where they are missing; booleans are in lower case."""
    cells = table.frame[name]
    words = [str(cell).strip() for cell in cells]
    missing = cells.isna()
    return [
        MISSING if gap or word in NO_VALUE else word.lower() if word.lower() in _BOOLEANS else word
        for word, gap in zip(words, missing, strict=True)
    ]


def described(name: str, words: Sequence[str], named: bool = False) -> FeatureColumn | None:
    """Describe a column of booleans or categories, empty where they are missing; None for text and dates.

    More categories are allowed if the user named the column.
    """
    filled = [word for word in words if word != MISSING]
    values, missing = set(filled), (MISSING,) if len(filled) < len(words) else ()
    is_boolean = bool(values) and values <= _BOOLEANS
    if is_boolean and not missing:
        return FeatureColumn(name)
    most = MOST_NAMED_CATEGORIES if named else MOST_CATEGORIES
    nodes = NODES_PER_NAMED_CATEGORY if named else NODES_PER_CATEGORY
    is_category = 0 < len(values) <= min(most, len(filled) / nodes) and not all(map(_DATE.fullmatch, values))
    return FeatureColumn(name, (*sorted(values), *missing)) if is_boolean or is_category else None


def encode(column: FeatureColumn, words: Sequence[str]) -> Floats:
    """Return the features of a column of words, [N, width]: 0 or 1 for booleans, one-hot for categories.

    A word that is not among the categories has zeros only.
    """
    if column.categories is None:
        return np.array([[word in _TRUE] for word in words], dtype=np.float32).reshape(-1, 1)
    number = {category: k for k, category in enumerate(column.categories)}
    place = np.array([number.get(word, -1) for word in words], dtype=np.int64)
    one_hot: Floats = (place[:, None] == np.arange(len(number))).astype(np.float32)
    return one_hot


def classes_of(labels: Sequence[str], ids: Sequence[Hashable], where: str) -> tuple[IntArray, list[str]]:
    """Return the class number of each label and the name of each class; empty labels become -1."""
    names = set(labels) - {MISSING}
    if not names:
        raise DataError(f"{where}: no node has a label: give at least the training nodes one")
    for name in sorted(names & _MISSING_LABELS):
        warn(f"the label {name!r} in {where} is used as a class: if it means unlabelled, leave the label empty")
    if all(map(_is_number, names)):
        _check_numbers(names, labels, ids, where)
        class_names = sorted(names, key=lambda name: (float(name), name))
    else:
        class_names = sorted(names)
    number = {name: k for k, name in enumerate(class_names)} | {MISSING: -1}
    return np.array([number[label] for label in labels], dtype=np.int64), class_names


def _check_numbers(names: set[str], labels: Sequence[str], ids: Sequence[Hashable], where: str) -> None:
    """Raise a `DataError` if numbers are no classes, and warn if they are decimals that could be classes."""
    whole = all(float(name).is_integer() for name in names)
    negative = next((k for k, label in enumerate(labels) if label.startswith("-")), None)
    if whole and negative is not None:
        # -1 can mean "unlabelled" or be the name of a class, and a wrong guess would silently spoil training.
        raise DataError(
            f"{where}: node {ids[negative]!r} has the label {labels[negative]}: leave the label of an unlabelled "
            "node empty and number classes from 0"
        )
    if all(name.removeprefix("-").isdecimal() for name in names):
        return
    first, last = min(names, key=float), max(names, key=float)
    labelled = sum(label != MISSING for label in labels)
    if len(names) > max(MOST_CLASSES_OF_DECIMALS, labelled / 2):
        raise DataError(
            f"{where}: the labels are {len(names)} different numbers from {first} to {last}, a quantity: "
            "bin them into classes first, for example low, middle and high"
        )
    warn(f"the labels of {where} are decimals like {first}: each value is used as a class, {len(names)} in total")


def _is_number(word: str) -> bool:
    return _NUMBER.fullmatch(word) is not None and math.isfinite(float(word))


def warn(message: str) -> None:
    """Warn about data that may be read in another way than the user expects."""
    warnings.warn(message, DataWarning, stacklevel=3)


def listed(names: Sequence[object]) -> str:
    """Join quoted names with commas and `and`; beyond ten, the others are counted."""
    quoted = [repr(str(name)) for name in names[:_MOST_LISTED]]
    if len(names) > _MOST_LISTED:
        quoted.append(f"{len(names) - _MOST_LISTED} more")
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
