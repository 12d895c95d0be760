"""Random search for settings, by their validation metric.

A search space is a settings file in which a value may be a list of choices. It overrides a preset:

    [model]
    hidden_channels = [256, 512]
    norm = "batch"
    [train]
    lr = [0.001, 0.005, 0.01]
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from gumbel_mpnn._util.errors import DivergedError, UserError
from gumbel_mpnn.config.files import merge
from gumbel_mpnn.runs.fitting import Place, fit_spec
from gumbel_mpnn.runs.query import TRIALS
from gumbel_mpnn.runs.reader import DataReader
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.spec import RunSpec

Tables = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Trial:
    """One setting of a search and its runs."""

    chosen: dict[str, Any]
    """Chosen values by `table.name`."""
    settings: Tables
    run: Run | None
    """None if training diverged."""

    @property
    def val(self) -> float:
        """Mean validation metric, by which trials are compared."""
        return -math.inf if self.run is None else self.run.val.mean


def choices(space: Tables) -> dict[str, list[Any]]:
    """Settings of a search space that are lists: `table.name` → its choices without duplicates."""
    found = {
        f"{table}.{name}": list({repr(choice): choice for choice in value}.values())
        for table, values in merge(space).items()
        for name, value in values.items()
        if isinstance(value, list)
    }
    for key, values in found.items():
        if not values:
            raise UserError(f"the list of choices of {key} is empty: add values to it")
    return found


def draws(space: Tables, seed: int) -> Iterator[tuple[dict[str, Any], Tables]]:
    """Yield the settings of a space in random order without repetition: the chosen values and all tables."""
    space, open_ = merge(space), choices(space)
    total = math.prod(map(len, open_.values()))
    for number in random.Random(seed).sample(range(total), total) if total <= 10**6 else _endless(total, seed):
        chosen: dict[str, Any] = {}
        for key, values in open_.items():
            number, place = divmod(number, len(values))
            chosen[key] = values[place]
        tables = {
            table: {name: chosen.get(f"{table}.{name}", value) for name, value in values.items()}
            for table, values in space.items()
        }
        yield chosen, tables


def search(spec: RunSpec, space: Tables, *, trials: int, place: Place, seed: int = 0) -> list[Trial]:
    """Train `trials` settings of the space; returns them sorted by mean validation metric, best first.

    Args:
        spec: Runs of each setting; settings that are not in the space are taken from it.
        space: Tables of settings in which a value may be a list of choices.
        trials: Number of settings to try.
        place: Where runs are saved and how they are trained.
        seed: Seed of the search.
    """
    if "data.metric" in choices(space):
        raise UserError("a search compares settings by one metric: give data.metric one value")
    drawn = [(chosen, tables, spec.laid_over(tables)) for chosen, tables in islice(draws(space, seed), trials)]
    place = replace(place, experiment=TRIALS, reader=place.reader or DataReader())
    done = []
    for chosen, tables, trial in drawn:
        run: Run | None = None
        with suppress(DivergedError):
            run = fit_spec(trial, place)
            if not run.val.n:
                raise UserError("a search compares settings on validation nodes: give the graph some")
        done.append(Trial(chosen, tables, run))
    return sorted(done, key=lambda trial: -trial.val)


def _endless(total: int, seed: int) -> Iterator[int]:
    rng, seen = random.Random(seed), set[int]()
    while True:
        number = rng.randrange(total)
        if number not in seen:
            seen.add(number)
            yield number
