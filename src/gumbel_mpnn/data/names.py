"""What nodes and classes are called, of a single graph and of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from torch_geometric.data import Batch, Data

from gumbel_mpnn._util.errors import DataError


def class_names_of(data: Data) -> Sequence[Any] | None:
    """The name of each class, where it has any; all graphs of a batch must have the same."""
    names: Sequence[Any] | None = data.get("class_names")
    parts = _of_each_graph(data, names)
    if parts is None:
        return names
    first = parts[0]
    other = next((part for part in parts if part != first), None)
    if other is not None:
        raise DataError(
            f"the graphs of the batch have different class_names, {first} and {other}: number the classes "
            "alike in all of them"
        )
    return first


def node_ids_of(data: Data) -> Sequence[Any] | None:
    """The name of each node, if it has any; those of a batch only where no two of its graphs share one."""
    ids: Sequence[Any] | None = data.get("node_ids")
    parts = _of_each_graph(data, ids)
    if parts is None:
        return ids
    joined = list(chain.from_iterable(parts))
    return joined if len(set(map(str, joined))) == len(joined) else None


def check_different(names: Iterable[str], where: str) -> None:
    """Raise a `DataError` if two nodes have the same name, by which files tell them apart."""
    seen: set[str] = set()
    for node, name in enumerate(names):
        if name in seen:
            raise DataError(f"node {node} of {where} is called {name!r}, as another one is: give each its own node_ids")
        seen.add(name)


def _of_each_graph(data: Data, names: Sequence[Any] | None) -> list[list[Any]] | None:
    """The names in each graph of a batch, as PyG collects them; None if these are those of the whole."""
    if names is None or not isinstance(data, Batch) or not all(isinstance(part, list | tuple) for part in names):
        return None
    return list(map(list, names)) if len(names) == data.num_graphs else None
