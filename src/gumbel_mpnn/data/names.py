"""Names of nodes and classes, for a single graph and for a batch; matching names of columns and attributes.

Columns are matched ignoring case and surrounding blanks. Their names are given as a mapping from the internal name to
the name in the file. The two differ if a file has two columns of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from torch_geometric.data import Batch, Data

from gumbel_mpnn._util.errors import DataError

_UNREADABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Control characters and what is not a character: XML has no way to write them."""


def class_names_of(data: Data) -> Sequence[Any] | None:
    """Return the class names, or None; all graphs of a batch must have the same ones."""
    names: Sequence[Any] | None = data.get("class_names")
    parts = _of_each_graph(data, names)
    if parts is None:
        return names
    first = parts[0]
    other = next((part for part in parts if part != first), None)
    if other is not None:
        raise DataError(
            f"the graphs of the batch have different class_names, {first} and {other}: number the classes "
            "in the same way in all of them"
        )
    return first


def node_ids_of(data: Data) -> Sequence[Any] | None:
    """Return the node ids, or None; also None for a batch in which two graphs share an id."""
    ids: Sequence[Any] | None = data.get("node_ids")
    parts = _of_each_graph(data, ids)
    if parts is None:
        return ids
    joined = list(chain.from_iterable(parts))
    return joined if len(set(map(str, joined))) == len(joined) else None


def node_name(data: Data, node: int) -> str:
    """Return what messages call a node: its number, with its id if it has one."""
    ids = node_ids_of(data)
    return f"node {node}" if ids is None else f"node {node} ({ids[node]!r})"


def given_metric(data: Data) -> Any:
    """Return the metric of a graph, `accuracy` if it has none; all graphs of a batch must have the same one."""
    metric = data.get("metric") or "accuracy"
    if not isinstance(data, Batch) or not isinstance(metric, list) or len(metric) != data.num_graphs:
        return metric
    if len(set(metric)) > 1:
        raise DataError(f"the graphs of the batch have different metrics, {metric}: give all of them the same")
    return metric[0]


def among(count: int) -> str:
    """Continue an error message about the first of `count` nodes with their number; nothing if it is the only one."""
    return f", the first of {count} such nodes" if count > 1 else ""


def class_name(data: Data, number: int) -> str:
    """Return the number of a class, with its name if it has one."""
    names = class_names_of(data)
    return f"{number} ({names[number]!r})" if names else str(number)


def check_readable(names: Iterable[object], what: str, where: str) -> None:
    """Raise a `DataError` if a name has a control character, or another one that GraphML cannot hold."""
    for name in names:
        if found := _UNREADABLE.search(str(name)):
            raise DataError(
                f"{what} {str(name)!r} of {where} contains the character {found[0]!r}, which files cannot hold:"
                " remove it"
            )


def check_different(names: Iterable[str], where: str) -> None:
    """Raise a `DataError` if two nodes have the same name, since files identify nodes by name."""
    seen: set[str] = set()
    for node, name in enumerate(names):
        if name in seen:
            raise DataError(f"node {node} of {where} has the same name as another node, {name!r}: make node_ids unique")
        seen.add(name)


def _of_each_graph(data: Data, names: Sequence[Any] | None) -> list[list[Any]] | None:
    """Return the names of each graph of a batch, as PyG collates them, or None if they are not collated."""
    if names is None or not isinstance(data, Batch) or not all(isinstance(part, list | tuple) for part in names):
        return None
    return list(map(list, names)) if len(names) == data.num_graphs else None


def known_name(where: str, what: str, names: Mapping[str, str], wanted: str) -> str | None:
    """Return the name that matches `wanted`, or None; raise a `DataError` if several match."""
    return _only(where, what, same_names(names, wanted))


def chosen_name(where: str, what: str, names: Mapping[str, str], wanted: str) -> str | None:
    """Return the name that the user asked for, or None; an exact match takes precedence."""
    same = (
        {name: written for name, written in names.items() if written == wanted},
        {name: written for name, written in names.items() if name == wanted},
        same_names(names, wanted),
    )
    return _only(where, what, next(filter(None, same), {}))


def same_names(names: Mapping[str, str], wanted: str) -> dict[str, str]:
    """Return all names that match `wanted`."""
    return {name: written for name, written in names.items() if _plain(written) == _plain(wanted)}


def _only(where: str, what: str, found: Mapping[str, str]) -> str | None:
    if len(found) > 1:
        names = " and ".join(map(repr, found.values()))
        raise DataError(f"{where} has the {what} {names}, of which only one can be used: rename or delete the others")
    return next(iter(found), None)


def _plain(name: str) -> str:
    return str(name).strip().casefold()  # in NetworkX the name of an attribute can be any object, for example 0
