"""Columns that became features, described so that another file can be read in the same way."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Batch, Data

from gumbel_mpnn._util.errors import DataError, DataWarning

MOST_LISTED = 10
MISSING = ""
"""Category of missing values."""
TRUE, FALSE = frozenset({"true", "yes"}), frozenset({"false", "no"})
BOOLEANS = TRUE | FALSE
"""Words for booleans, in lower case."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class FeatureColumn:
    """A column of a file, or an attribute of nodes, that became features.

    Attributes:
        name: name of the column.
        categories: values of a categorical column, each of which has a feature; `""` is a missing value. None for
            numbers and booleans.
        width: number of features: that of the categories, or the length of the vectors of an attribute.
    """

    name: str
    categories: tuple[str, ...] | None = None
    width: int = 1

    def __post_init__(self) -> None:
        """Let the width follow from the categories."""
        if self.categories is not None:
            object.__setattr__(self, "categories", tuple(self.categories))
            object.__setattr__(self, "width", len(self.categories))

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values."""
        categories = None if self.categories is None else list(self.categories)
        return {"name": self.name, "categories": categories, "width": self.width}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FeatureColumn:
        """Convert from the result of `to_dict`."""
        categories = values.get("categories")
        return cls(str(values["name"]), None if categories is None else tuple(categories), int(values.get("width", 1)))


class Features(NamedTuple):
    """Features [N, F] and the columns that they come from; no features if there are no columns."""

    x: Floats | None
    columns: list[FeatureColumn]

    @classmethod
    def of(cls, parts: Sequence[tuple[FeatureColumn, Floats]]) -> Features:
        """Join the features [N, width] of columns."""
        return cls(np.concatenate([x for _, x in parts], axis=1) if parts else None, [column for column, _ in parts])


Wanted = Sequence[str] | Sequence[FeatureColumn]
"""What the readers take as features: names, or columns as another graph has them."""


def feature_columns_of(data: Data) -> list[FeatureColumn] | None:
    """Return the columns of a graph, or of a batch whose graphs all have the same; None if there are none."""
    columns = data.get("feature_columns")
    if isinstance(data, Batch) and columns and all(isinstance(part, list) for part in columns):
        columns = columns[0] if all(part == columns[0] for part in columns) else None
    known = isinstance(columns, Sequence) and all(isinstance(column, FeatureColumn) for column in columns)
    return list(columns) if known else None


def as_trained(wanted: Wanted | bool | None) -> list[FeatureColumn] | None:
    """Return the columns of another graph if `wanted` are such, None if they are names or nothing."""
    if not wanted or isinstance(wanted, bool):
        return None
    columns = [column for column in wanted if isinstance(column, FeatureColumn)]
    if columns and len(columns) < len(wanted):
        raise DataError("features are names or FeatureColumns, but not both: give one kind")
    return columns or None


def names_of(wanted: Wanted) -> list[str]:
    """Return the names of the columns asked for."""
    return [column.name if isinstance(column, FeatureColumn) else column for column in wanted]


def check_once(what: str, where: str, names: Sequence[str]) -> None:
    """Raise a `DataError` if the user named a column twice."""
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise DataError(f"the features name the {what} {twice!r} of {where} twice: name it once")


def word(value: object) -> str:
    """Return a value as the name of a category; booleans are in lower case, so that `Yes` and `yes` are one."""
    text = str(value).strip()
    return text.lower() if text.lower() in BOOLEANS else text


def encode(column: FeatureColumn, words: Sequence[str]) -> Floats:
    """Return the features of a column of words, [N, width]: 0 or 1 for booleans, one-hot for categories.

    A word that is not among the categories has zeros only.
    """
    if column.categories is None:
        return np.array([[each in TRUE] for each in words], dtype=np.float32).reshape(-1, 1)
    place = {category: k for k, category in enumerate(column.categories)}
    features = np.zeros((len(words), len(place)), dtype=np.float32)
    known = [(row, place[each]) for row, each in enumerate(words) if each in place]
    if known:
        rows, columns = zip(*known, strict=True)
        features[list(rows), list(columns)] = 1
    return features


def unknown_words(column: FeatureColumn, words: Sequence[str]) -> dict[int, str]:
    """Return the words that are not among the categories of a column, by the number of the node."""
    categories = column.categories or ()
    return {node: each for node, each in enumerate(words) if each not in categories}


def warn_of_unknown(what: str, where: str, found: Mapping[str, Mapping[int, str]]) -> None:
    """Warn about values that are not among the categories of a trained model.

    `found` has the `unknown_words` of each categorical column.
    """
    found = {name: words for name, words in found.items() if words}
    if not found:
        return
    values = [each for words in found.values() for each in dict.fromkeys(words.values())]
    nodes = len({node for words in found.values() for node in words})
    example = "a missing one" if values[0] == MISSING else repr(values[0])
    one, single = len(found) == 1, len(values) == 1
    warnings.warn(
        f"the {what}{'' if one else 's'} {listed(list(found))} of {where} {'has' if one else 'have'} {len(values)}"
        f" value{'s' * (not single)} that the model was not trained on, {'' if single else 'such as '}{example}, at"
        f" {nodes} node{'s' * (nodes > 1)}: {'its' if single else 'their'} features are 0",
        DataWarning,
        stacklevel=4,
    )


def listed(names: Sequence[object]) -> str:
    """Join quoted names with commas and `and`; beyond `MOST_LISTED`, the others are counted."""
    quoted = [repr(str(name)) for name in names[:MOST_LISTED]]
    if len(names) > MOST_LISTED:
        quoted.append(f"{len(names) - MOST_LISTED} more")
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
