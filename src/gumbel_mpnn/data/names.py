"""What nodes are called."""

from __future__ import annotations

from collections.abc import Iterable

from gumbel_mpnn.errors import DataError


def check_different(names: Iterable[str], where: str) -> None:
    """Raise a `DataError` if two nodes have the same name, by which files tell them apart."""
    seen: set[str] = set()
    for node, name in enumerate(names):
        if name in seen:
            raise DataError(f"node {node} of {where} is called {name!r}, as another one is: give all different node_ids")
        seen.add(name)
