"""Search spaces: which settings are searched, and which values they may have.

A space is written as tables of settings, in a file or beside the component that it belongs to. A list of values is
searched, and so is a range:

    [model]
    hidden_channels = [64, 256]
    norm = "batch"
    [train]
    lr = {low = 0.001, high = 0.1, log = true}
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gumbel_mpnn.settings.files import merge
from gumbel_mpnn.util.errors import UserError, did_you_mean

Tables = Mapping[str, Mapping[str, Any]]
LISTED = 10**6
"""Number of settings up to which a space is listed to draw from it."""
DIGITS = 4
"""Significant digits of numbers from a range, so that they can be read and written."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included; whole numbers if both are."""

    low: float
    high: float
    log: bool = False
    """Whether the logarithm is searched evenly."""
    step: float | None = None

    @property
    def whole(self) -> bool:
        """Whether all numbers are whole."""
        return all(type(value) is int for value in (self.low, self.high, self.step) if value is not None)

    @property
    def bounds(self) -> tuple[Any, ...]:
        """The lowest and the highest number."""
        return self.low, self.high

    def draw(self, rng: random.Random) -> float:
        """Draw a number."""
        if self.step is not None:
            return self.low + self.step * rng.randint(0, int((self.high - self.low) / self.step + 1e-9))
        if self.log:
            return math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        return rng.randint(int(self.low), int(self.high)) if self.whole else rng.uniform(self.low, self.high)

    def readable(self, value: float) -> float:
        """Round a number to a few digits, within the range."""
        short = round(value) if self.whole else float(f"{value:.{DIGITS}g}")
        return min(max(short, self.low), self.high)

    def of_floats(self) -> Range:
        """The same range for a setting that need not be whole."""
        return Range(float(self.low), float(self.high), self.log, None if self.step is None else float(self.step))

    def __str__(self) -> str:
        more = ", logarithmic" * self.log + (f", step {self.step:g}" if self.step is not None else "")
        return f"{self.low:g} to {self.high:g}{more}"


@dataclass(frozen=True)
class Choices:
    """Values of a list."""

    values: tuple[Any, ...]

    @property
    def bounds(self) -> tuple[Any, ...]:
        """All values."""
        return self.values

    def draw(self, rng: random.Random) -> Any:
        """Draw a value."""
        return rng.choice(self.values)

    def readable(self, value: Any) -> Any:
        """The value as it is."""
        return value

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))


Dimension = Choices | Range


@dataclass(frozen=True)
class Space:
    """Settings that are searched, and settings that are fixed."""

    open: Mapping[str, Dimension]
    """Searched settings, by `table.name`."""
    fixed: Tables = field(default_factory=dict)
    parts: Mapping[tuple[str, Any], Mapping[str, Dimension]] = field(default_factory=dict)
    """Settings that are searched only where another one has some value: (`rewiring.candidates`, "local") → settings."""
    with_start: bool = False
    """Whether the first trial has the settings from which the search starts."""

    @classmethod
    def of(cls, tables: Tables) -> Space:
        """Read a space from tables."""
        open_: dict[str, Dimension] = {}
        fixed: dict[str, dict[str, Any]] = {}
        for table, values in merge(tables).items():
            for name, value in values.items():
                dimension = read_dimension(value, f"{table}.{name}")
                if dimension is None:
                    fixed.setdefault(table, {})[name] = value
                else:
                    open_[f"{table}.{name}"] = dimension
        return cls(open_, fixed)

    @property
    def total(self) -> float:
        """Number of settings in the space; infinite if there are ranges or parts."""
        if self.parts or not all(isinstance(each, Choices) for each in self.open.values()):
            return math.inf
        return math.prod(len(each.bounds) for each in self.open.values())

    @property
    def dimensions(self) -> dict[str, Dimension]:
        """Everything that is searched, by the name that it has in a study."""
        of_parts = {_name(key, of): each for (_, of), part in self.parts.items() for key, each in part.items()}
        return {**self.open, **of_parts}

    def choose(self, suggest: Callable[[str, Dimension], Any]) -> dict[str, Any]:
        """Choose all values by a function of the name and the dimension; returns them by `table.name`."""
        chosen = {key: each.readable(suggest(key, each)) for key, each in self.open.items()}
        for (setting, value), part in self.parts.items():
            if chosen[setting] == value:
                chosen |= {key: each.readable(suggest(_name(key, value), each)) for key, each in part.items()}
        return chosen

    def tables(self, chosen: Mapping[str, Any]) -> Tables:
        """Tables of the fixed settings and the chosen ones."""
        tables = {table: dict(values) for table, values in self.fixed.items()}
        for key, value in chosen.items():
            table, _, name = key.partition(".")
            tables.setdefault(table, {})[name] = value
        return tables

    def draws(self, seed: int) -> Iterator[dict[str, Any]]:
        """Yield the settings of the space in random order; from lists alone, each of them once."""
        if self.total < math.inf:
            yield from self._listed(int(self.total), seed)
            return
        rng, seen = random.Random(seed), set[str]()
        repeats = 0
        while repeats < 1000:  # a range of whole numbers may be exhausted
            chosen = self.choose(lambda _, dimension: dimension.draw(rng))
            repeats = repeats + 1 if repr(chosen) in seen else 0
            if not repeats:
                seen.add(repr(chosen))
                yield chosen

    def _listed(self, total: int, seed: int) -> Iterator[dict[str, Any]]:
        for number in random.Random(seed).sample(range(total), total) if total <= LISTED else _endless(total, seed):
            chosen: dict[str, Any] = {}
            for key, each in self.open.items():
                number, place = divmod(number, len(each.bounds))
                chosen[key] = each.bounds[place]
            yield chosen

    def to_dict(self) -> dict[str, Any]:
        """The space as plain JSON values, which identify it."""
        searched = {
            name: list(each.values) if isinstance(each, Choices) else vars(each)
            for name, each in self.dimensions.items()
        }
        return {"searched": searched, "fixed": self.fixed, "with_start": self.with_start}


def read_dimension(value: Any, key: str) -> Dimension | None:
    """Read the choices or the range of a setting; None for a single value."""
    if isinstance(value, list | tuple):
        if not value:
            raise UserError(f"the list of choices of {key} is empty: add values to it")
        return Choices(tuple({repr(choice): choice for choice in value}.values()))
    return _read_range(value, key) if isinstance(value, Mapping) else None


def _read_range(value: Mapping[str, Any], key: str) -> Range:
    known = ("low", "high", "log", "step")
    for name in value:
        if name not in known:
            raise UserError(f"the range of {key} has no entry {name!r}: {did_you_mean(name, known)}")
    for name in ("low", "high"):
        if name not in value:
            raise UserError(f"the range of {key} needs low and high: add {name}")
    for name in ("low", "high", "step"):
        if name in value and (type(value[name]) not in (int, float) or not math.isfinite(value[name])):
            raise UserError(f"{name} of the range of {key} must be a number, but is {value[name]!r}")
    log, low, high, step = value.get("log", False), value["low"], value["high"], value.get("step")
    if type(log) is not bool:
        raise UserError(f"log of the range of {key} must be true or false, but is {log!r}")
    if low > high:
        raise UserError(f"the range of {key} is backwards: low is {low} and high is {high}")
    if log and low <= 0:
        raise UserError(f"a logarithmic range needs a low above 0, but that of {key} is {low}")
    if step is not None and step <= 0:
        raise UserError(f"step of the range of {key} must be above 0, but is {step}")
    if step is not None and log:
        raise UserError(f"the range of {key} has log and step: leave out one of them")
    return Range(low, high, log, step)


def _name(key: str, of: Any) -> str:
    """Name of a setting that is searched for one component only."""
    return f"{key} of {of}"


def _endless(total: int, seed: int) -> Iterator[int]:
    rng, seen = random.Random(seed), set[int]()
    while True:
        number = rng.randrange(total)
        if number not in seen:
            seen.add(number)
            yield number
