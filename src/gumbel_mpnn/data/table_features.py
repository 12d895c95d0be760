"""Features from the columns of a CSV file: numbers, booleans and categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.column_kinds import (
    Kind,
    check_no_dates,
    free_column,
    kind_of,
    named_column,
    warn_of_mixed,
    warn_of_text,
)
from gumbel_mpnn.data.csv_file import NO_NUMBER, place_of
from gumbel_mpnn.data.feature_columns import (
    BOOLEANS,
    MISSING,
    FeatureColumn,
    Features,
    Floats,
    encode,
    unknown_words,
    warn_of_unknown,
    word,
)
from gumbel_mpnn.data.names import among

if TYPE_CHECKING:
    import pandas as pd

WHAT = "column"


def all_features(path: object, table: pd.DataFrame, ids: pd.Series[str]) -> Features:
    """Return the numeric, boolean and categorical columns of a table; warn about all others."""
    columns, mixed, text = list[FeatureColumn](), list[tuple[str, str, object]](), list[str]()
    for name in map(str, table.columns):
        if _is_numeric(table[name]):
            check_no_dates(WHAT, str(path), name, table[name].to_numpy())
            columns.append(FeatureColumn(name))
        elif found := _mixed(table[name]):
            mixed.append((name, *found))
        elif column := free_column(WHAT, str(path), name, _words(table[name])):
            columns.append(column)
        else:
            text.append(name)
    warn_of_mixed(WHAT, str(path), mixed)
    warn_of_text(WHAT, str(path), text)
    return _encoded(path, table, columns, [column.name for column in columns], ids)


def named_features(path: object, table: pd.DataFrame, names: Sequence[str], ids: pd.Series[str]) -> Features:
    """Return the columns that the user named; raise a `DataError` if one cannot be used."""
    columns = []
    for name in names:
        if _is_numeric(table[name]):
            check_no_dates(WHAT, str(path), name, table[name].to_numpy())
            columns.append(FeatureColumn(name))
        else:
            _check_not_mixed(path, name, table[name])
            columns.append(named_column(WHAT, str(path), name, _words(table[name])))
    return _encoded(path, table, columns, [column.name for column in columns], ids)


def trained_features(
    path: object, table: pd.DataFrame, columns: Sequence[FeatureColumn], names: Sequence[str], ids: pd.Series[str]
) -> Features:
    """Return the columns that a model was trained on, which this file calls `names`."""
    unknown = {}
    for column, name in zip(columns, names, strict=True):
        if column.categories is not None:
            unknown[name] = unknown_words(column, _words(table[name]))
        elif column.width != 1:
            raise DataError(
                f"the column {name!r} of {path} has one number per node, but the model was trained on vectors of"
                f" {column.width}: give the graph in the format that the model was trained on"
            )
        elif not _is_numeric(table[name]) and kind_of(_words(table[name])) is not Kind.boolean:
            _check_not_mixed(path, name, table[name])
            raise _no_boolean(path, table, name, ids)
    warn_of_unknown(WHAT, str(path), unknown)
    return _encoded(path, table, columns, names, ids)


def _no_boolean(path: object, table: pd.DataFrame, name: str, ids: pd.Series[str]) -> DataError:
    """Return an error that names the first word that is no boolean: an empty cell if all other cells are booleans."""
    words = _words(table[name])
    wrong = [row for row, each in enumerate(words) if each not in BOOLEANS and each != MISSING]
    empty = [row for row, each in enumerate(words) if each == MISSING]
    row = (wrong or empty)[0]
    place = place_of(table.index, row)
    if wrong:
        return DataError(
            f"feature column {name!r} of {path} has values that are not numbers, as {words[row]!r} in {place}, but"
            " the model was trained on numbers or booleans: write them in the same way"
        )
    return DataError(
        f"{place} of {path} has an empty cell as the feature {name!r} of the node {ids.iloc[row]!r}"
        f"{among(len(empty))}: the model was trained on numbers or booleans without gaps, so fill it"
    )


def _encoded(
    path: object, table: pd.DataFrame, columns: Sequence[FeatureColumn], names: Sequence[str], ids: pd.Series[str]
) -> Features:
    """Return the features of columns, which the file calls `names`."""
    numeric = [
        name
        for column, name in zip(columns, names, strict=True)
        if column.categories is None and _is_numeric(table[name])
    ]
    _check_numbers(path, table, numeric, ids)
    return Features.of(
        [
            (
                column,
                table[[name]].to_numpy(dtype=np.float32, copy=True)
                if name in numeric
                else encode(column, _words(table[name])),
            )
            for column, name in zip(columns, names, strict=True)
        ]
    )


def _check_numbers(path: object, table: pd.DataFrame, names: list[str], ids: pd.Series[str]) -> None:
    """Raise a `DataError` that names the first node whose number is missing or infinite."""
    x: Floats = table[names].to_numpy(dtype=np.float32, copy=True)
    wrong = np.argwhere(~np.isfinite(x))
    if len(wrong):
        row, column = wrong[0]
        found = "no number" if np.isnan(x[row, column]) else "an infinite number"
        count = int((~np.isfinite(x[:, column])).sum())
        raise DataError(
            f"{place_of(table.index, row)} of {path} has {found} as the feature {names[column]!r} of the node "
            f"{ids.iloc[row]!r}{among(count)}: give every node finite features, or name the feature columns to use"
        )


def _is_numeric(cells: pd.Series[Any]) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(cells))  # booleans included


def _words(cells: pd.Series[Any]) -> list[str]:
    """Return the cells as words, empty where they are missing."""
    words = (MISSING if missing else word(cell) for cell, missing in zip(cells, cells.isna(), strict=True))
    return [MISSING if each in NO_NUMBER else each for each in words]


def _mixed(cells: pd.Series[Any]) -> tuple[str, object] | None:
    """Return the first place without a number and its value, for a column that has numbers and other values."""
    import pandas as pd

    filled = cells[cells.notna()]
    wrong = pd.to_numeric(filled, errors="coerce").isna()
    if wrong.any() and not wrong.all():
        return place_of(filled.index[wrong]), filled[wrong].iloc[0]
    return None


def _check_not_mixed(path: object, name: str, cells: pd.Series[Any]) -> None:
    if found := _mixed(cells):
        place, value = found
        raise DataError(
            f"feature column {name!r} of {path} has values that are not numbers, as {value!r} in {place}: correct them"
            " or leave it out"
        )
