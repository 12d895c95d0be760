"""Search spaces: which settings `tune` searches, and which values they may have.

A space is written as tables of settings, in a file or beside the component that it belongs to. A list of values is
searched, and so is a range:

    [model]
    hidden_channels = [64, 256]
    norm = "batch"
    [train]
    lr = {low = 0.001, high = 0.1, log = true}
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from gumbel_mpnn.candidates.strategies import DATA
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.runs.records import flat
from gumbel_mpnn.runs.spec import REGISTRIES, Job, RunSpec, Tables
from gumbel_mpnn.settings.files import merge, read_settings_file
from gumbel_mpnn.settings.settings import COMPONENTS, TABLES
from gumbel_mpnn.training import Task
from gumbel_mpnn.training.build import outline_model
from gumbel_mpnn.util.errors import TooLargeError, UserError, did_you_mean, reason

DIGITS = 4
"""Significant digits of numbers from a range, so that they can be read and written."""
WHAT_IS_COMPARED = ("data.metric", "data.protocol")
"""Settings of the splits and the metric: values of other ones cannot be compared."""
OF = " of "
"""In the name of an option of a component: `rewiring.candidates.per_node of local` is searched for `local` only."""
RANGE = ("low", "high", "log", "step")


@dataclass(frozen=True)
class Space:
    """Settings that are searched, by `table.name`, and settings that are fixed."""

    searched: Mapping[str, BaseDistribution]
    fixed: Tables = field(default_factory=dict)
    with_start: bool = False
    """Whether the first trial has the settings from which the search starts."""

    @classmethod
    def of(cls, tables: Tables, start: Mapping[str, Any]) -> Space:
        """Read a space from tables; settings that are floats in `start` are searched as floats."""
        searched: dict[str, BaseDistribution] = {}
        fixed: dict[str, dict[str, Any]] = {}
        for key, value in flat(merge(tables)).items():
            if isinstance(value, list | tuple | Mapping):
                searched[key] = read_dimension(value, key, isinstance(start.get(key), float))
            else:
                table, _, name = key.partition(".")
                fixed.setdefault(table, {})[name] = value
        return cls(searched, fixed)

    @property
    def total(self) -> float:
        """Number of choices; infinite if there are ranges or options of components."""
        lists = [each.choices for each in self.searched.values() if isinstance(each, CategoricalDistribution)]
        if len(lists) < len(self.searched) or any(OF in name for name in self.searched):
            return math.inf
        return math.prod(map(len, lists))

    def listed(self) -> Iterator[dict[str, Any]]:
        """All choices of a space of lists."""
        for values in product(*map(values_of, self.searched.values())):
            yield dict(zip(self.searched, values, strict=True))

    def chosen(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Chosen values by `table.name`, without the options of components that were not chosen."""
        found = {}
        for name, value in params.items():
            key, _, component = name.partition(OF)
            if component and params[key.rpartition(".")[0]] != component:
                continue
            if isinstance(range_ := self.searched[name], FloatDistribution):
                value = min(max(float(f"{value:.{DIGITS}g}"), range_.low), range_.high)
            found[key] = value
        return found

    def tables(self, params: Mapping[str, Any]) -> Tables:
        """Tables of the fixed settings and the chosen ones."""
        tables = {table: dict(values) for table, values in self.fixed.items()}
        for key, value in self.chosen(params).items():
            table, _, name = key.partition(".")
            tables.setdefault(table, {})[name] = value
        return tables

    def to_dict(self) -> dict[str, Any]:
        """The space as plain JSON values, which identify it."""
        return {"searched": {name: repr(each) for name, each in self.searched.items()}, "fixed": self.fixed}


def read_dimension(value: Any, key: str, floats: bool = False) -> BaseDistribution:
    """Read the choices or the range of a setting; a range of `floats` may have whole bounds."""
    if not isinstance(value, Mapping):
        if not value:
            raise UserError(f"the list of choices of {key} is empty: add values to it")
        return CategoricalDistribution(tuple({repr(choice): choice for choice in value}.values()))
    for name in value:
        if name not in RANGE:
            raise UserError(f"the range of {key} has no entry {name!r}: {did_you_mean(name, RANGE)}")
    numbers = {name: value[name] for name in ("low", "high", "step") if name in value}
    for name, number in numbers.items():
        if type(number) not in (int, float) or not math.isfinite(number):
            raise UserError(f"{name} of the range of {key} must be a number, but is {number!r}")
    if not {"low", "high"} <= numbers.keys():
        raise UserError(f"the range of {key} needs low and high: add them")
    whole = not floats and all(type(number) is int for number in numbers.values())
    kind = IntDistribution if whole else FloatDistribution
    if whole:
        numbers.setdefault("step", 1)
    try:
        return kind(**numbers, log=bool(value.get("log", False)))
    except ValueError as error:
        raise UserError(f"the range of {key} is not valid: {reason(error)}") from None


def values_of(dimension: BaseDistribution) -> tuple[Any, ...]:
    """All choices of a list, or the lowest and the highest number of a range."""
    if isinstance(dimension, CategoricalDistribution):
        return tuple(dimension.choices)
    assert isinstance(dimension, IntDistribution | FloatDistribution)
    return dimension.low, dimension.high


def read_space(space: Tables | str | Path | None) -> Tables | None:
    """Read the tables of a space of the user, from a file or as they are; it must leave something to search."""
    if space is None:
        return None
    tables = merge(space if isinstance(space, Mapping) else read_settings_file(Path(space)))
    if not Space.of(tables, {}).searched:
        what = "the space" if isinstance(space, Mapping) else str(space)
        raise UserError(f"{what} contains nothing to search: give at least one setting a list of values or a range")
    return tables


def search_space(spec: RunSpec, given: Tables | None, job: Job) -> Space:
    """The space to search around `spec`, checked: what the user gives, or the default space."""
    start = flat(spec.settings.to_dict())
    space = default_space(spec, job) if given is None else Space.of(given, start)
    for key in WHAT_IS_COMPARED:
        if key in space.searched:
            raise UserError(f"a search compares settings on one graph, by one metric: give {key} one value")
    task = Task.of(job.data, job.settings.data, "cpu")
    for params in _each_value(space):  # what is not allowed is reported before anything is trained
        settings = spec.laid_over(space.tables(params)).settings
        with suppress(TooLargeError):  # a model that is too large is left out when its turn comes
            outline_model(settings, task)
    return space


def default_space(spec: RunSpec, job: Job) -> Space:
    """What the settings, the model and its components declare, except for settings that the user has given."""
    settings, model = spec.settings, spec.settings.model
    of_model = models.space(model)
    backbone = str(settings.options.get("backbone", ""))
    if backbone in backbones:
        of_model = backbones.space(backbone) | of_model
    tables: dict[str, dict[str, Any]] = {"data": declared("data"), "model": of_model, "train": declared("train")}
    if settings.rewiring is not None:
        tables["rewiring"] = declared("rewiring")
    # The user and the model set these, and the data may have candidates.
    taken = {key for key, origin in spec.origins.items() if origin in ("given", f"model {model}")}
    if job.settings.rewiring is not None and job.settings.rewiring.candidates == DATA:
        taken.add("rewiring.candidates")
    start = flat(settings.to_dict())
    searched = {key: each for key, each in Space.of(tables, start).searched.items() if key not in taken}
    for component in COMPONENTS if settings.rewiring is not None else ():
        setting = f"rewiring.{component}"
        names = values_of(searched[setting]) if setting in searched else (getattr(settings.rewiring, component),)
        for name in names:
            of_component = REGISTRIES[component].space(name) if name in REGISTRIES[component] else {}
            for option, value in of_component.items():
                if (key := f"{setting}.{option}") not in taken:
                    label = f"{key}{OF}{name}" if setting in searched else key
                    searched[label] = read_dimension(value, key)
    return Space(searched, with_start=True)


def declared(table: str) -> dict[str, Any]:
    """Spaces that the settings of a table declare, by name."""
    items = dataclasses.fields(TABLES[table])
    return {item.name: item.metadata["space"] for item in items if item.metadata.get("space") is not None}


def _each_value(space: Space) -> Iterator[dict[str, Any]]:
    """The first values of all settings, and each other value with these; an option with its component."""
    first = {name: values_of(each)[0] for name, each in space.searched.items()}
    yield first
    for name, each in space.searched.items():
        key, _, component = name.partition(OF)
        needed = {key.rpartition(".")[0]: component} if component else {}
        yield from (first | needed | {name: value} for value in values_of(each)[0 if component else 1 :])
