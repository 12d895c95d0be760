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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import BaseTrial, FixedTrial

from gumbel_mpnn.candidates.strategies import DATA
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.runs.spec import REGISTRIES, Job, RunSpec, Tables
from gumbel_mpnn.runs.store import flat
from gumbel_mpnn.settings.files import merge, read_settings_file
from gumbel_mpnn.settings.settings import COMPONENTS, TABLES
from gumbel_mpnn.training import Task
from gumbel_mpnn.training.build import outline_model
from gumbel_mpnn.util.errors import UserError, did_you_mean, reason

Space = Mapping[str, Any]
"""Values by `table.name`: a list of choices, a range as Optuna's `suggest_float` takes it, or a fixed value."""
DIGITS = 4
"""Significant digits of numbers from a range, so that they can be read and written."""
WHAT_IS_COMPARED = ("data.metric", "data.protocol")
"""Settings of the splits and the metric: values of other ones cannot be compared."""
RANGE = ("low", "high", "log", "step")


def read_space(space: Tables | str | Path | None) -> Tables | None:
    """Read the tables of a space of the user, from a file or as they are; it must leave something to search."""
    if space is None:
        return None
    tables = merge(space if isinstance(space, Mapping) else read_settings_file(Path(space)))
    if not searched(read_tables(tables, {})):
        what = "the space" if isinstance(space, Mapping) else str(space)
        raise UserError(f"{what} contains nothing to search: give at least one setting a list of values or a range")
    return tables


def search_space(spec: RunSpec, given: Tables | None, job: Job) -> Space:
    """The space to search around `spec`, checked: what the user gives, or the default space."""
    space = default_space(spec, job) if given is None else read_tables(given, flat(spec.settings.to_dict()))
    for name in WHAT_IS_COMPARED:
        if name in searched(space):
            raise UserError(f"a search compares settings on one graph, by one metric: give {name} one value")
    several = searched(space).items()
    tried = {name: [each["low"], each["high"]] if isinstance(each, dict) else each for name, each in several}
    task, first = Task.of(job.data, job.settings.data, "cpu"), {name: each[0] for name, each in tried.items()}
    for name, each in tried.items():  # what is not allowed is reported before anything is trained
        for value in each:
            settings = spec.laid_over(tables_of(space, draw(FixedTrial({**first, name: value}), space))).settings
            outline_model(settings, task)
    return space


def default_space(spec: RunSpec, job: Job) -> Space:
    """What the settings, the model and its components declare, except for settings that the user has given."""
    settings, model = spec.settings, spec.settings.model
    backbone = str(settings.options.get("backbone", ""))
    of_model = {**(backbones.space(backbone) if backbone in backbones else {}), **models.space(model)}
    tables = {"data": _declared("data"), "model": of_model, "train": _declared("train")}
    # The user and the model set these, and the data may have candidates.
    taken = {key for key, origin in spec.origins.items() if origin in ("given", f"model {model}")}
    if settings.rewiring is not None:
        tables["rewiring"] = of_rewiring = _declared("rewiring")
        if job.settings.rewiring is not None and job.settings.rewiring.candidates == DATA:
            taken.add("rewiring.candidates")
        for component in COMPONENTS:
            is_open = component in of_rewiring and f"rewiring.{component}" not in taken
            for name in of_rewiring[component] if is_open else [getattr(settings.rewiring, component)]:
                options = REGISTRIES[component].space(name) if name in REGISTRIES[component] else {}
                of_rewiring |= {f"{component}.{option}": value for option, value in options.items()}
    return {key: each for key, each in read_tables(tables, flat(settings.to_dict())).items() if key not in taken}


def _declared(table: str) -> dict[str, Any]:
    """Spaces that the settings of a table declare, by name."""
    items = dataclasses.fields(TABLES[table])
    return {item.name: item.metadata["space"] for item in items if item.metadata.get("space") is not None}


def read_tables(tables: Tables, start: Mapping[str, Any]) -> Space:
    """Read the tables of a space; settings that are floats in `start` are searched as floats."""
    values = flat(merge(tables))
    # Components come before their options, which are drawn only with them.
    return {
        key: read_values(values[key], key, start.get(key)) for key in sorted(values, key=lambda key: key.count("."))
    }


def read_values(value: Any, key: str, start: Any = None) -> Any:
    """Check the choices or the range of a setting, or its only value; the range of a float may have whole bounds."""
    if isinstance(value, list | tuple):
        if not value:
            raise UserError(f"the list of choices of {key} is empty: add values to it")
        return list(value)
    if not isinstance(value, Mapping):
        return value
    for name in value:
        if name not in RANGE:
            raise UserError(f"the range of {key} has no entry {name!r}: {did_you_mean(name, RANGE)}")
    if not {"low", "high"} <= value.keys():
        raise UserError(f"the range of {key} needs low and high: add them")
    numbers = {name: number for name, number in value.items() if name != "log"}
    for name, number in numbers.items():
        if type(number) not in (int, float) or not math.isfinite(number):
            raise UserError(f"{name} of the range of {key} must be a number, but is {number!r}")
    floats = any(type(number) is float for number in (start, *numbers.values()))
    numbers = {name: float(number) if floats else number for name, number in numbers.items()}
    log, kind = bool(value.get("log", False)), FloatDistribution if floats else IntDistribution
    try:
        return {**numbers, "high": kind(**numbers, log=log).high, "log": log}  # the highest that the steps reach
    except ValueError as error:
        raise UserError(f"the range of {key} is not valid: {reason(error)}") from None


def searched(space: Space) -> dict[str, Any]:
    """The settings of a space that have several values."""
    return {name: values for name, values in space.items() if isinstance(values, list | dict)}


def number_of_choices(space: Space) -> float:
    """Number of settings in a space; infinite if there are ranges or options of components."""
    values = searched(space)
    if any(isinstance(each, dict) or name.rpartition(".")[0] in values for name, each in values.items()):
        return math.inf
    return math.prod(map(len, values.values()))


def draw(trial: BaseTrial, space: Space) -> dict[str, Any]:
    """Let a trial of Optuna suggest a value for every setting that is searched, or tell those that it has.

    Options of a component are drawn only if the component that was drawn has them.
    """
    drawn: dict[str, Any] = {}
    for key, values in searched(space).items():
        component, _, option = key.rpartition(".")
        registry = REGISTRIES.get(component.removeprefix("rewiring.")) if component in drawn else None
        if registry is not None:
            name = drawn[component]
            if name not in registry or option not in registry.defaults(name):
                continue
        if isinstance(values, list):
            drawn[key] = trial.suggest_categorical(key, values)
        elif isinstance(values["low"], int):
            drawn[key] = trial.suggest_int(key, **values)
        else:
            value = float(f"{trial.suggest_float(key, **values):.{DIGITS}g}")
            drawn[key] = min(max(value, values["low"]), values["high"])
    return drawn


def tables_of(space: Space, drawn: Mapping[str, Any]) -> Tables:
    """Tables of the fixed settings of a space and those that were drawn."""
    tables: dict[str, dict[str, Any]] = {}
    fixed = {key: value for key, value in space.items() if key not in searched(space)}
    for key, value in (fixed | dict(drawn)).items():
        table, _, name = key.partition(".")
        tables.setdefault(table, {})[name] = value
    return tables
