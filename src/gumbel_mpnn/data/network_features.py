"""Attributes of the nodes of a network, as columns that may become features."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.column_kinds import Columns, no_complex, no_dates
from gumbel_mpnn.data.feature_columns import MISSING, FeatureColumn, Floats, word
from gumbel_mpnn.data.names import among

Attributes = Mapping[str, Any]
Nodes = Mapping[Hashable, Attributes]

_DURATIONS = (timedelta, np.timedelta64)


class NodeAttributes(Columns):
    """Attributes of nodes, of which some may lack them."""

    what = "attribute"

    def __init__(self, nodes: Nodes, where: str) -> None:
        self.nodes, self.where = nodes, where

    def is_numeric(self, name: str) -> bool:
        """Whether it is a number or a vector wherever it is set; booleans must be set at every node."""
        present = [has[name] for has in self.nodes.values() if name in has]
        for value in present:
            self._check_real(name, value)
        if not all(map(_is_number, present)):
            return False
        return len(present) == len(self.nodes) or not all(isinstance(value, bool) for value in present)

    def mixed(self, name: str) -> tuple[str, object] | None:
        """First node without a number, if some have one; NaN next to words, and booleans, do not count."""
        present = {node: has[name] for node, has in self.nodes.items() if name in has}
        numbers = [value for value in present.values() if _is_number(value) and not isinstance(value, bool)]
        others = [node for node, value in present.items() if not _is_number(value)]
        if not others or all(map(_is_missing, numbers)):
            return None
        return f"node {others[0]!r}", present[others[0]]

    def words(self, name: str) -> list[str] | None:
        """Its values as words, empty where they are missing; None if they are neither words nor booleans."""
        values = [has.get(name) for has in self.nodes.values()]
        kinds = str | bool | date | time | np.datetime64
        if not all(isinstance(value, kinds) or _is_missing(value) for value in values):
            return None
        return [MISSING if _is_missing(value) else word(value) for value in values]

    def text(self, name: str) -> list[str]:
        """Its values as words, whatever they are."""
        return self.words(name) or [word(has.get(name, MISSING)) for has in self.nodes.values()]

    def numbers(self, name: str) -> tuple[FeatureColumn, Floats]:
        """Its numbers [N, k], where k is the length of its vectors."""
        columns: list[NDArray[Any]] = []
        missing = [node for node, attributes in self.nodes.items() if name not in attributes]
        if missing:
            raise DataError(
                f"node {missing[0]!r} of {self.where} has no feature {name!r}{among(len(missing))}: give every node"
                " one, or name the features to use"
            )
        for node, attributes in self.nodes.items():
            what = f"feature {name!r} of node {node!r} of {self.where}"
            if not _is_number(attributes[name]):
                raise DataError(f"{what} is {attributes[name]!r}, not a number")
            value = np.ravel(attributes[name])
            if columns and len(value) != len(columns[0]):
                raise DataError(f"{what} has another length than at other nodes")
            columns.append(value)
        x: Floats = np.array(columns, dtype=np.float32)
        return FeatureColumn(str(name), width=x.shape[1]), x

    def single_numbers(self, name: str) -> NDArray[Any]:
        """Its numbers in full precision; empty if they are vectors."""
        numbers = np.array([np.ravel(has[name]) for has in self.nodes.values()])
        return numbers[:, 0] if numbers.shape[1] == 1 else numbers[:0, 0]

    def _check_real(self, name: str, value: object) -> None:
        """Raise a `DataError` for a duration or a complex number, or a vector of these."""
        if isinstance(value, _DURATIONS):
            raise no_dates(self.what, self.where, str(name), str(value))
        if isinstance(value, complex) or (isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "c"):
            raise no_complex(self.what, self.where, str(name), value)


def _is_number(value: object) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:  # lists of different lengths
        return False


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value)
