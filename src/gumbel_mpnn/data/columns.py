"""Columns of a table of nodes: numbers, booleans and categories become features, and labels become classes."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Hashable, Mapping, Sequence
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
_BOOLEANS = {"true": 1, "yes": 1, "false": 0, "no": 0}
_MISSING_LABELS = {"na", "n/a", "#n/a", "<na>", "nan", "null", "none"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MOST_LISTED = 10
_NUMERIC = "biufc"
"""Kinds of dtypes that are numbers or booleans."""

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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FeatureColumn:
        """Convert from the result of `dataclasses.asdict`, or from the JSON that it was stored as."""
        return cls(values["name"], values["categories"] and tuple(values["categories"]))


Wanted = Sequence[str] | Sequence[FeatureColumn] | Literal[False] | None
"""What the readers take as features: names, columns as another graph has them, False for none, None for all."""


class Table(NamedTuple):
    """A table whose rows are nodes, or edges, or its header alone.

    The index says where a row is, and its name what it counts: lines of a CSV file, rows of a Parquet file, nodes of a
    network.
    """

    frame: pd.DataFrame
    where: str
    """What messages call the table, such as the path of its file."""
    what: str = "column"
    """What messages call a column."""

    def place(self, row: int) -> str:
        """Return where a row is, such as `line 5 of nodes.csv`."""
        (place,) = self.frame.index[[row]].tolist()
        return f"{self.frame.index.name} {place!r} of {self.where}"

    def find(self, wanted: str) -> str | None:
        """Return the column called `wanted`, ignoring case and blanks around it, or None; an exact match is preferred.

        Raise a `DataError` if several match.
        """
        same = [name for name in self.frame.columns if name.strip().casefold() == wanted.strip().casefold()]
        if wanted in same or not same:
            return wanted if same else None
        if len(same) > 1:
            raise DataError(
                f"{self.where} has the {self.what}s {listed(same)}, of which only one can be used: rename or delete the"
                " others"
            )
        return str(same[0])

    def pick(self, wanted: str) -> str:
        """Return the column that the user asked for, or raise a `DataError`."""
        found = self.find(wanted)
        if found is None:
            raise DataError(f"{self.where} has no {self.what} {wanted!r}: {did_you_mean(wanted, self.frame.columns)}")
        return found


def as_text(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return cells as words, empty where they are missing; whole numbers have no decimals, though gaps make floats."""
    cells = cells.convert_dtypes() if cells.dtype.kind == "f" else cells
    return cells.astype(object).where(cells.notna(), "").astype(str).str.strip()


def trained_columns(wanted: Wanted) -> list[FeatureColumn]:
    """Return the columns of another graph if `wanted` are such; names give none."""
    return [column for column in wanted or () if isinstance(column, FeatureColumn)]


def features_of(table: Table, wanted: Wanted, taken: Sequence[str]) -> tuple[Floats | None, list[FeatureColumn]]:
    """Return the features that the user wants, [N, F] or None, and the columns that they come from.

    The columns `taken`, such as the label, cannot become features.
    """
    text = list[str]()
    if wanted is None:
        found = [_untrained(table, name, text) for name in table.frame.columns if name not in taken]
    elif trained := trained_columns(wanted):
        found = [_trained(table, column) for column in trained]
    else:
        names = dict.fromkeys(table.pick(str(name)) for name in wanted or ())
        for name in names.keys() & set(taken):
            raise DataError(
                f"{table.what} {name!r} of {table.where} is the id, label or split, so it cannot be a feature"
            )
        found = [_untrained(table, name) for name in names]
    if text:
        warn(f"{table.what} {listed(text)} of {table.where} is not used, since {_WHAT_IS_A_FEATURE}")
    parts = [part for part in found if part is not None]
    return np.concatenate([x for _, x in parts], axis=1) if parts else None, [column for column, _ in parts]


_WHAT_IS_A_FEATURE = (
    f"text and dates are no features: a feature has numbers, booleans, or at most {MOST_CATEGORIES} different words,"
    f" each at {NODES_PER_CATEGORY} nodes on average ({MOST_NAMED_CATEGORIES} and {NODES_PER_NAMED_CATEGORY} if you"
    " name it in features= or --features)"
)


def _untrained(table: Table, name: str, text: list[str] | None = None) -> tuple[FeatureColumn, Floats] | None:
    """Return the features of a column.

    A column that cannot be used raises a `DataError` if the user named it. Otherwise, with a list `text`, text and
    dates are added to this list, and a warning tells what stands beside numbers.
    """
    cells = table.frame[name]
    if cells.dtype.kind in _NUMERIC:
        return FeatureColumn(name), _numbers(table, name)
    wrong = _not_a_number(cells)
    if wrong is not None:
        trouble = (
            f"the {table.what} {name!r} cannot be a feature, since {table.place(wrong)} has {cells.iloc[wrong]!r},"
            " which is not a number: write a number there, or words everywhere if the values are categories"
        )
        if text is None:
            raise DataError(trouble)
        warn(trouble)
        return None
    words = _words(cells)
    column = described(name, words, named=text is None)
    if column is not None:
        return column, encode(column, words)
    if text is None:
        raise DataError(f"{table.what} {name!r} of {table.where} cannot be used, since {_WHAT_IS_A_FEATURE}")
    text.append(name)
    return None


def _trained(table: Table, column: FeatureColumn) -> tuple[FeatureColumn, Floats]:
    """Return a column that a model was trained on; warn about values that it does not know."""
    name = table.find(column.name)
    if name is None:
        raise DataError(f"{table.where} has no {table.what} {column.name!r}, which the model was trained on")
    if column.categories is None and table.frame[name].dtype.kind in _NUMERIC:
        return column, _numbers(table, name)
    words = _words(table.frame[name])
    if column.categories is None and not _BOOLEANS.keys() >= set(words):
        row = next((k for k, word in enumerate(words) if word not in _BOOLEANS and not _is_number(word)), 0)
        raise DataError(
            f"{table.place(row)} has {repr(words[row]) if words[row] else 'no value'} as feature {name!r}, but the"
            " model was trained on numbers or booleans: write them in the same way"
        )
    unknown = [word for word in words if column.categories is not None and word not in column.categories]
    if unknown:
        warn(
            f"the {table.what} {name!r} of {table.where} has values that the model was not trained on, such as"
            f" {repr(unknown[0]) if unknown[0] else 'a missing one'}, at {counted(len(unknown), 'node')}: their"
            " features are 0"
        )
    return column, encode(column, words)


def _not_a_number(cells: pd.Series[Any]) -> int | None:
    """Return the first row of a column of words that is not a number, if there are numbers beside it; else None."""
    import pandas as pd

    filled = cells.notna().to_numpy()
    wrong = filled & pd.to_numeric(cells.astype(str), errors="coerce").isna().to_numpy()
    return int(wrong.argmax()) if wrong.any() and wrong.sum() < filled.sum() else None


def _numbers(table: Table, name: str) -> Floats:
    """Return the numbers of a column, [N, 1]; raise a `DataError` if one is missing or infinite."""
    x: Floats = table.frame[[name]].to_numpy(dtype=np.float32, na_value=np.nan)
    wrong = np.flatnonzero(~np.isfinite(x))
    if len(wrong):
        raise DataError(
            f"{table.place(wrong[0])} has no finite number as feature {name!r}{among(len(wrong))}: give every node"
            " finite features, or name the features to use"
        )
    return x


def _words(cells: pd.Series[Any]) -> list[str]:
    """Return a column as words, empty where they are missing; booleans are in lower case."""
    words: list[str] = as_text(cells).tolist()
    return [MISSING if word in NO_VALUE else word.lower() if word.lower() in _BOOLEANS else word for word in words]


def described(name: str, words: Sequence[str], named: bool = False) -> FeatureColumn | None:
    """Describe a column of booleans or categories, empty where they are missing; None for text and dates.

    More categories are allowed if the user named the column.
    """
    filled = [word for word in words if word != MISSING]
    values, missing = set(filled), (MISSING,) if len(filled) < len(words) else ()
    is_boolean = bool(values) and values <= _BOOLEANS.keys()
    if is_boolean and not missing:
        return FeatureColumn(name)
    most = MOST_NAMED_CATEGORIES if named else MOST_CATEGORIES
    nodes = NODES_PER_NAMED_CATEGORY if named else NODES_PER_CATEGORY
    is_category = 0 < len(values) <= min(most, len(filled) / nodes) and not all(map(_DATE.fullmatch, values))
    return FeatureColumn(name, (*sorted(values), *missing)) if is_boolean or is_category else None


def encode(column: FeatureColumn, words: Sequence[str]) -> Floats:
    """Return the features of a column of words: 0 or 1 for booleans, else one-hot, with zeros for other words."""
    if column.categories is None:
        return np.array([[_BOOLEANS[word]] for word in words], dtype=np.float32).reshape(-1, 1)
    one_hot: Floats = (np.array(words, dtype=object)[:, None] == np.array(column.categories, dtype=object)).astype(
        np.float32
    )
    return one_hot


def classes_of(labels: Sequence[str], ids: Sequence[Hashable], where: str) -> tuple[IntArray, list[str]]:
    """Return the class number of each label and the name of each class; empty labels become -1."""
    names = set(labels) - {MISSING}
    if not names:
        raise DataError(f"{where}: no node has a label: give at least the training nodes one")
    for name in sorted(names):
        if name.casefold() in _MISSING_LABELS:
            warn(f"the label {name!r} in {where} is used as a class: if it means unlabelled, leave the label empty")
    class_names = sorted(names)
    if all(map(_is_number, names)):
        class_names.sort(key=float)
        first, last = class_names[0], class_names[-1]
        if float(first) < 0 and all(float(name).is_integer() for name in names):
            # -1 can mean "unlabelled" or be the name of a class, and a wrong guess would silently spoil training.
            raise DataError(
                f"{where}: node {ids[labels.index(first)]!r} has the label {first}: leave the label of an unlabelled"
                " node empty and number classes from 0"
            )
        decimals = not all(name.removeprefix("-").isdecimal() for name in names)
        if decimals and len(names) > max(MOST_CLASSES_OF_DECIMALS, sum(label != MISSING for label in labels) / 2):
            raise DataError(
                f"{where}: the labels are {len(names)} different numbers from {first} to {last}, a quantity: "
                "bin them into classes first, for example low, middle and high"
            )
        if decimals:
            warn(
                f"the labels of {where} are decimals like {first}: each value is used as a class, {len(names)} in total"
            )
    number = {name: k for k, name in enumerate(class_names)} | {MISSING: -1}
    return np.array([number[label] for label in labels], dtype=np.int64), class_names


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
