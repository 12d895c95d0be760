"""Matching names of columns and attributes, ignoring case and surrounding blanks.

Names are given as a mapping from the internal name to the name in the file. The two differ if a file has two columns of
the same name.
"""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn._util.errors import DataError


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
