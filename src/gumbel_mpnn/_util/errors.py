"""Errors a person can cause, each one sentence that says what was wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from operator import index
from typing import Any


class UserError(ValueError):
    """A mistake in what the user gave; the message is complete on its own, no traceback is needed."""


class UnknownNameError(UserError):
    """A name that nothing answers to."""


class DivergedError(UserError):
    """Training whose numbers went out of all bounds, mostly by its learning rate; `runs` names those that did."""

    def __init__(self, message: str, runs: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.runs = tuple(runs)


class DataError(UserError):
    """A graph, file or split that cannot be used as it is."""


class MissingDataError(DataError):
    """Files of a data set that lie nowhere we looked and could not be downloaded."""


class DataWarning(UserWarning):
    """Something of a person's data that was taken otherwise than they may think; one sentence."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A closing half-sentence with the nearest known names, or all of them when none is near."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(repr(match) for match in near)}?"
    return f"known are {', '.join(known)}" if known else "none is known"


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for a `kind` called `name` that does not exist."""
    return UnknownNameError(f"there is no {kind} called {name!r}: {did_you_mean(name, known)}")


def check_whole(**arguments: object) -> None:
    """Raise a `UserError` that names the first argument that is no whole number."""
    for name, value in arguments.items():
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise UserError(f"{name} must be a whole number, but is {value!r}")


def whole_numbers(name: str, values: Any) -> list[int]:
    """The `values` as a list, or a `UserError` unless they are several whole numbers."""
    try:
        return [index(value) for value in values]
    except TypeError:
        raise UserError(f"{name} are a list of whole numbers, as [0] or range(3), not {values!r}") from None


def check_at_least(least: int, **arguments: int) -> None:
    """Raise a `UserError` that names the first argument that is no whole number or below `least`."""
    check_whole(**arguments)
    for name, value in arguments.items():
        if value < least:
            raise UserError(f"{name} must be at least {least}, but is {value}")


def check_between(low: float, high: float, **arguments: float) -> None:
    """Raise a `UserError` that names the first argument that is no number from `low` to `high`."""
    for name, value in arguments.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not low <= value <= high:
            raise UserError(f"{name} must lie between {low} and {high}, but is {value!r}")
