"""The search space of a model: by default what its settings and components declare, or what the user gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gumbel_mpnn.candidates import candidates
from gumbel_mpnn.candidates.strategies import DATA
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.rewiring.regularizers import regularizers
from gumbel_mpnn.rewiring.scorers import scorers
from gumbel_mpnn.runs.record import flat
from gumbel_mpnn.runs.spec import RunSpec, Workload
from gumbel_mpnn.settings.settings import COMPONENTS, TABLES
from gumbel_mpnn.settings.spaces import Dimension, Range, Space, Tables, read_dimension
from gumbel_mpnn.training import Task
from gumbel_mpnn.training.build import outline_model
from gumbel_mpnn.util.errors import TooLargeError, UserError

REGISTRIES: Mapping[str, Any] = {"candidates": candidates, "scorer": scorers, "regularizer": regularizers}
WHAT_IS_COMPARED = ("data.metric", "data.protocol")
"""Settings of the graph, its splits and the metric: values of other ones cannot be compared."""


def search_space(spec: RunSpec, given: Tables | None = None, workload: Workload | None = None) -> Space:
    """The space to search around `spec`, checked: what the user gives, or the default space."""
    workload = spec.read() if workload is None else workload
    space = default_space(spec, workload) if given is None else Space.of(given)
    space = _of_types(space, flat(spec.settings.to_dict()))
    for key in WHAT_IS_COMPARED:
        if key in space.open:
            raise UserError(f"a search compares settings on one graph, by one metric: give {key} one value")
    _check_values(space, spec, workload)
    return space


def default_space(spec: RunSpec, workload: Workload) -> Space:
    """What the settings, the model and its components declare, except for settings that the user has given."""
    settings, model = spec.settings, spec.settings.model
    of_model = models.space(model)
    backbone = str(settings.options.get("backbone", ""))
    if backbone in backbones:
        of_model = backbones.space(backbone) | of_model
    tables: dict[str, dict[str, Any]] = {"data": declared("data"), "model": of_model, "train": declared("train")}
    if settings.rewiring is not None:
        tables["rewiring"] = declared("rewiring")
    taken = _taken(spec, workload)
    searched = Space.of(tables).open
    open_ = {key: dimension for key, dimension in searched.items() if key not in taken}
    parts: dict[tuple[str, Any], Mapping[str, Dimension]] = {}
    for component in COMPONENTS if settings.rewiring is not None else ():
        setting = f"rewiring.{component}"
        if setting in open_:
            for name in open_[setting].bounds:
                if part := _part(component, name, taken):
                    parts[setting, name] = part
        else:
            open_ |= _part(component, str(getattr(settings.rewiring, component)), taken)
    return Space(open_, parts=parts, with_start=True)


def declared(table: str) -> dict[str, Any]:
    """Spaces that the settings of a table declare, by name."""
    items = dataclasses.fields(TABLES[table])
    return {item.name: item.metadata["space"] for item in items if item.metadata.get("space") is not None}


def _part(component: str, name: str, taken: set[str]) -> dict[str, Dimension]:
    """What a component declares, by `table.name`."""
    registry = REGISTRIES[component]
    found: dict[str, Dimension] = {}
    for option, value in (registry.space(name) if name in registry else {}).items():
        setting = f"rewiring.{component}.{option}"
        dimension = read_dimension(value, setting)
        if setting not in taken and dimension is not None:
            found[setting] = dimension
    return found


def _taken(spec: RunSpec, workload: Workload) -> set[str]:
    """Settings that are not searched: those that the user or the model sets, and candidates that the data has."""
    own = {key for key, origin in spec.origins.items() if origin in ("given", f"model {spec.settings.model}")}
    rewiring = workload.settings.rewiring
    return own | ({"rewiring.candidates"} if rewiring is not None and rewiring.candidates == DATA else set())


def _of_types(space: Space, start: Mapping[str, Any]) -> Space:
    """The space with ranges of floats for settings that are floats, even if their bounds are written as integers."""

    def of_type(key: str, dimension: Dimension) -> Dimension:
        if isinstance(dimension, Range) and isinstance(start.get(key), float):
            return dimension.of_floats()
        return dimension

    parts = {of: {key: of_type(key, each) for key, each in part.items()} for of, part in space.parts.items()}
    return replace(space, open={key: of_type(key, each) for key, each in space.open.items()}, parts=parts)


def _check_values(space: Space, spec: RunSpec, workload: Workload) -> None:
    """Raise a `UserError` for a value that is not allowed, before anything is trained.

    Each value is tried with the first values of all other settings.
    """
    task = Task.of(workload.data, workload.settings.data, "cpu")
    for chosen in _each_value(space):
        settings = spec.laid_over(space.tables(chosen)).settings
        with suppress(TooLargeError):  # a model that is too large is left out when its turn comes
            outline_model(settings, task)


def _each_value(space: Space) -> Iterator[dict[str, Any]]:
    """The first values of all settings, and each other value with these."""
    first = space.choose(lambda _, dimension: dimension.bounds[0])
    yield first

    def with_value(key: str, value: Any) -> dict[str, Any]:
        return {each: of for each, of in first.items() if not each.startswith(f"{key}.")} | {key: value}

    for key, dimension in space.open.items():
        yield from (with_value(key, value) for value in dimension.bounds[1:])
    for (key, name), part in space.parts.items():
        for option, dimension in part.items():
            yield from (with_value(key, name) | {option: value} for value in dimension.bounds)
