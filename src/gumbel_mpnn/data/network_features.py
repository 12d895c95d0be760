"""Features from the attributes of the nodes of a network: numbers, vectors, booleans and categories."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.column_kinds import (
    Kind,
    check_no_dates,
    free_column,
    kind_of,
    named_column,
    no_complex,
    no_dates,
    warn_of_mixed,
    warn_of_text,
)
from gumbel_mpnn.data.feature_columns import (
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

Attributes = Mapping[str, Any]
Nodes = Mapping[Hashable, Attributes]

WHAT = "attribute"
_DURATIONS = (timedelta, np.timedelta64)


def all_features(nodes: Nodes, names: Sequence[str], where: str) -> Features:
    """Return those of the attributes that are numbers, vectors, booleans or categories; warn about all others."""
    found, mixed, text = list[tuple[FeatureColumn, Floats]](), list[tuple[str, str, object]](), list[str]()
    for name in names:
        _check_real(nodes, name, where)
        if _is_numeric(nodes, name):
            found.append(_undated(nodes, name, where))
        elif _has_numbers(nodes, name):
            node = _first_other(nodes, name)
            mixed.append((name, f"node {node!r}", nodes[node][name]))
        elif (words := _words(nodes, name)) and (column := free_column(WHAT, where, str(name), words)):
            found.append((column, encode(column, words)))
        else:
            text.append(name)
    warn_of_mixed(WHAT, where, mixed)
    warn_of_text(WHAT, where, text)
    return Features.of(found)


def named_features(nodes: Nodes, names: Sequence[str], where: str) -> Features:
    """Return the attributes that the user named; raise a `DataError` if one cannot be used."""
    found = []
    for name in names:
        _check_real(nodes, name, where)
        words = None if _is_numeric(nodes, name) or _has_numbers(nodes, name) else _words(nodes, name)
        if words is None:
            found.append(_undated(nodes, name, where))
        else:
            column = named_column(WHAT, where, str(name), words)
            found.append((column, encode(column, words)))
    return Features.of(found)


def trained_features(nodes: Nodes, columns: Sequence[FeatureColumn], names: Sequence[str], where: str) -> Features:
    """Return the attributes that a model was trained on, which this graph calls `names`."""
    found, unknown = [], {}
    for column, name in zip(columns, names, strict=True):
        words = _words(nodes, name)
        if column.categories is not None:
            words = [word(has.get(name, MISSING)) for has in nodes.values()] if words is None else words
            unknown[name] = unknown_words(column, words)
            found.append((column, encode(column, words)))
        elif words is not None and not _is_numeric(nodes, name) and kind_of(words) is Kind.boolean:
            found.append((column, encode(column, words)))
        else:
            as_here, x = _numeric(nodes, name, where)
            if as_here.width != column.width:
                raise DataError(
                    f"the attribute {name!r} of {where} has {as_here.width} numbers per node, but the model was trained"
                    f" on {column.width}: give every node as many"
                )
            found.append((column, x))
    warn_of_unknown(WHAT, where, unknown)
    return Features.of(found)


def _check_real(nodes: Nodes, name: str, where: str) -> None:
    """Raise a `DataError` if the attribute is a duration or a complex number somewhere, or a vector of these."""
    for has in nodes.values():
        value = has.get(name)
        if isinstance(value, _DURATIONS):
            raise no_dates(WHAT, where, str(name), str(value))
        if isinstance(value, complex) or (isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "c"):
            raise no_complex(WHAT, where, str(name), value)


def _is_numeric(nodes: Nodes, name: str) -> bool:
    """Whether the attribute is a number or a vector wherever it is set; booleans must be set at every node."""
    present = [has[name] for has in nodes.values() if name in has]
    if not all(map(_is_number, present)):
        return False
    return len(present) == len(nodes) or not all(isinstance(value, bool) for value in present)


def _has_numbers(nodes: Nodes, name: str) -> bool:
    """Whether the attribute is a number at some nodes; NaN next to words, and booleans, do not count."""
    return any(
        _is_number(value) and not isinstance(value, bool) and not _is_missing(value)
        for value in (has[name] for has in nodes.values() if name in has)
    )


def _first_other(nodes: Nodes, name: str) -> Hashable:
    """Return the first node whose attribute is neither a number nor a vector of numbers."""
    return next(node for node, has in nodes.items() if name in has and not _is_number(has[name]))


def _is_number(value: object) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:  # lists of different lengths
        return False


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _words(nodes: Nodes, name: str) -> list[str] | None:
    """Return an attribute as words, empty where it is missing; None if it holds anything but words and booleans."""
    values = [has.get(name) for has in nodes.values()]
    if not all(isinstance(value, str | bool | date | time | np.datetime64) or _is_missing(value) for value in values):
        return None
    return [MISSING if _is_missing(value) else word(value) for value in values]


def _undated(nodes: Nodes, name: str, where: str) -> tuple[FeatureColumn, Floats]:
    """Return a numeric attribute as columns; raise a `DataError` if its numbers are dates."""
    found = _numeric(nodes, name, where)
    if found[0].width == 1:
        check_no_dates(WHAT, where, str(name), np.array([np.ravel(has[name])[0] for has in nodes.values()]))
    return found


def _numeric(nodes: Nodes, name: str, where: str) -> tuple[FeatureColumn, Floats]:
    """Return a numeric attribute as columns [N, k], where k is the length of its vectors."""
    columns: list[NDArray[Any]] = []
    missing = [node for node, attributes in nodes.items() if name not in attributes]
    if missing:
        raise DataError(
            f"node {missing[0]!r} of {where} has no feature {name!r}{among(len(missing))}: give every node one, or name"
            " the features to use"
        )
    for node, attributes in nodes.items():
        if not _is_number(attributes[name]):
            raise DataError(f"feature {name!r} of node {node!r} of {where} is {attributes[name]!r}, not a number")
        value = np.ravel(attributes[name])
        if columns and len(value) != len(columns[0]):
            raise DataError(f"feature {name!r} of node {node!r} of {where} has another length than at other nodes")
        columns.append(value)
    x: Floats = np.array(columns, dtype=np.float32)
    return FeatureColumn(str(name), width=x.shape[1]), x
