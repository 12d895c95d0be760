"""Errors caused by the user; each message is one sentence that says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from operator import index
from typing import Any

LARGEST_INTEGER = 2**63 - 1
"""Largest integer of tensors."""


class UserError(ValueError):
    """Invalid input by the user; the message is complete without a traceback."""


class UnknownNameError(UserError):
    """An unknown name, for example of a model or an option."""


class DivergedError(UserError):
    """Training diverged, usually because of the learning rate."""


class TooLargeError(UserError):
    """A model that is too large for the memory."""


class StoppedError(Exception):
    """Training was stopped on purpose: its result is not wanted any more."""


class DataError(UserError):
    """An invalid graph, file or split."""


class DamagedError(DataError):
    """A stored file whose content is damaged."""


class MissingDataError(DataError):
    """Files of a data set that were not found and could not be downloaded."""


class DataWarning(UserWarning):
    """The user's data is interpreted in a way that the user may not expect."""


def reason(error: Exception) -> str:
    """First line of an error message of another package, or the name of its type if it is empty."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(": ") if lines else type(error).__name__


@contextmanager
def as_data_error(wrong: str, advice: str = "") -> Iterator[None]:
    """Raise a `DataError` with this sentence for the many kinds of errors by which other packages refuse a file."""
    try:
        yield
    except (MemoryError, UserError):
        raise
    except Exception as error:
        raise DataError(f"{wrong} ({reason(error)}){advice}") from error


def unopened(what: str, error: OSError) -> DataError:
    """Error for a file that cannot be opened."""
    return DataError(f"cannot open {what}: {error.strerror or error}; check its permissions and the disk")


def unreadable(what: str, error: Exception, remedy: str) -> DataError:
    """Error for a stored file that cannot be read; the remedy applies to its content, not to a disk or permissions."""
    if isinstance(error, OSError):
        return unopened(what, error)
    return DamagedError(f"cannot read {what}: {reason(error)}; {remedy}")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory is the reason of an error; torch is not imported for it, and raises a `RuntimeError` on a CPU."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return any(words in str(error) for words in ("allocate memory", "not enough memory"))  # the latter on Windows


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """End of an error message: the closest known names, or all of them if none is close."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(repr(match) for match in near)}?"
    return f"known are {', '.join(known)}" if known else "none is known"


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Error for a `kind` called `name` that does not exist."""
    return UnknownNameError(f"there is no {kind} called {name!r}: {did_you_mean(name, known)}")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as "1 run" or "2 runs"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def check_whole(**arguments: object) -> None:
    """Raise a `UserError` that names the first argument that is not an integer."""
    for name, value in arguments.items():
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise UserError(f"{name} must be a whole number, but is {value!r}")


def whole_numbers(name: str, values: Any) -> list[int]:
    """Convert `values` to a list of integers; raise a `UserError` if they are anything else."""
    try:
        numbers = [index(value) for value in values]
    except TypeError:
        raise UserError(f"{name} are a list of whole numbers, as [0] or range(3), not {values!r}") from None
    if any(abs(number) > LARGEST_INTEGER for number in numbers):
        raise UserError(f"{name} must be integers of 64 bits, at most {LARGEST_INTEGER}")
    return numbers


def check_at_least(least: int, **arguments: int) -> None:
    """Raise a `UserError` that names the first argument that is not an integer or is below `least`."""
    check_whole(**arguments)
    for name, value in arguments.items():
        if value < least:
            raise UserError(f"{name} must be at least {least}, but is {value}")


def check_between(low: float, high: float, **arguments: float) -> None:
    """Raise a `UserError` that names the first argument that is not a number from `low` to `high`."""
    for name, value in arguments.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not low <= value <= high:
            raise UserError(f"{name} must lie between {low} and {high}, but is {value!r}")
