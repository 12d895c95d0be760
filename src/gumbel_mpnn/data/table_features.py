"""Columns of a CSV or Parquet file, which may become features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.column_kinds import Columns
from gumbel_mpnn.data.csv_file import NO_NUMBER, place_of
from gumbel_mpnn.data.feature_columns import BOOLEANS, MISSING, FeatureColumn, Floats, word
from gumbel_mpnn.data.names import among

if TYPE_CHECKING:
    import pandas as pd


class TableColumns(Columns):
    """Columns of a table, whose rows are nodes with these ids."""

    what = "column"

    def __init__(self, table: pd.DataFrame, ids: pd.Series[str], where: str) -> None:
        self.table, self.ids, self.where = table, ids, where

    def is_numeric(self, name: str) -> bool:
        """Whether it holds numbers or booleans."""
        import pandas as pd

        return bool(pd.api.types.is_numeric_dtype(self.table[name]))  # booleans included

    def mixed(self, name: str) -> tuple[str, object] | None:
        """First place without a number and its value, if there are numbers beside it; else None."""
        import pandas as pd

        cells = self.table[name]
        filled = cells[cells.notna()]
        wrong = pd.to_numeric(filled, errors="coerce").isna()
        if wrong.any() and not wrong.all():
            return place_of(filled.index[wrong]), filled[wrong].iloc[0]
        return None

    def words(self, name: str) -> list[str]:
        """Its cells as words, empty where they are missing."""
        cells = self.table[name]
        words = (MISSING if missing else word(cell) for cell, missing in zip(cells, cells.isna(), strict=True))
        return [MISSING if each in NO_NUMBER else each for each in words]

    def numbers(self, name: str) -> tuple[FeatureColumn, Floats]:
        """Its numbers [N, 1]; raises a `DataError` that names the first node without a finite one."""
        if not self.is_numeric(name):
            raise self._no_numbers(name)
        x: Floats = self.table[[name]].to_numpy(dtype=np.float32, copy=True)
        wrong = np.flatnonzero(~np.isfinite(x))
        if len(wrong):
            found = "no number" if np.isnan(x[wrong[0], 0]) else "an infinite number"
            raise DataError(
                f"{self._place(wrong[0])} has {found} as {self._feature(name, wrong[0])}{among(len(wrong))}: give every"
                " node finite features, or name the feature columns to use"
            )
        return FeatureColumn(name), x

    def single_numbers(self, name: str) -> NDArray[Any]:
        """Its numbers in full precision."""
        numbers: NDArray[Any] = self.table[name].to_numpy()
        return numbers

    def _no_numbers(self, name: str) -> DataError:
        """Return an error that names the first word that is no boolean: an empty cell if all others are booleans."""
        if found := self.mixed(name):
            place, value = found
            return DataError(
                f"feature column {name!r} of {self.where} has values that are not numbers, as {value!r} in {place}:"
                " correct them or leave it out"
            )
        words = self.words(name)
        wrong = [row for row, each in enumerate(words) if each not in BOOLEANS and each != MISSING]
        empty = [row for row, each in enumerate(words) if each == MISSING]
        if wrong:
            place = place_of(self.table.index, wrong[0])
            return DataError(
                f"feature column {name!r} of {self.where} has values that are not numbers, as {words[wrong[0]]!r} in"
                f" {place}, but the model was trained on numbers or booleans: write them in the same way"
            )
        return DataError(
            f"{self._place(empty[0])} has an empty cell as {self._feature(name, empty[0])}{among(len(empty))}: the"
            " model was trained on numbers or booleans without gaps, so fill it"
        )

    def _place(self, row: int) -> str:
        return f"{place_of(self.table.index, row)} of {self.where}"

    def _feature(self, name: str, row: int) -> str:
        return f"the feature {name!r} of the node {self.ids.iloc[row]!r}"
