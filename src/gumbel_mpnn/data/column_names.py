"""Which column of a table or attribute of a graph is meant: names are the same whatever their case and blanks around.

Names come as a mapping from what a column is called in the program to what is written: they differ where two columns
are written alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn._util.errors import DataError


def known_name(where: str, what: str, names: Mapping[str, str], wanted: str) -> str | None:
    """The one that is called so; None where there is none, and a `DataError` where there are several."""
    return _only(where, what, same_names(names, wanted))


def chosen_name(where: str, what: str, names: Mapping[str, str], wanted: str) -> str | None:
    """The one that a person has named: first the one written just so, then whatever the case and the blanks around."""
    same = (
        {name: written for name, written in names.items() if written == wanted},
        {name: written for name, written in names.items() if name == wanted},
        same_names(names, wanted),
    )
    return _only(where, what, next(filter(None, same), {}))


def same_names(names: Mapping[str, str], wanted: str) -> dict[str, str]:
    """All that are called so."""
    return {name: written for name, written in names.items() if _plain(written) == _plain(wanted)}


def _only(where: str, what: str, found: Mapping[str, str]) -> str | None:
    if len(found) > 1:
        names = " and ".join(map(repr, found.values()))
        raise DataError(f"{where} has the {what} {names}, of which only one can be taken: rename or delete the others")
    return next(iter(found), None)


def _plain(name: str) -> str:
    return str(name).strip().casefold()  # NetworkX lets attributes be called anything, 0 too
