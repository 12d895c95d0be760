"""Trials of a search: settings with their validation results, and how one of them is trained."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import chain, islice
from typing import Any

from gumbel_mpnn.runs.fitting import Place, fit_spec
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.settings import Settings
from gumbel_mpnn.settings.spaces import Space
from gumbel_mpnn.util.errors import DivergedError, StoppedError, TooLargeError

FINISHED, PRUNED, DIVERGED, TOO_LARGE, FAILED = "finished", "pruned", "diverged", "too large", "failed"
"""How a trial ended. Failed are those that ended their process again and again."""


@dataclass(frozen=True)
class Trial:
    """One setting of a search and its validation results; there are no test results."""

    number: int
    """Number of the trial, from 0."""
    state: str
    """`finished`, `pruned`, `diverged`, `too large` or `failed`."""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """Chosen values by `table.name`; empty for the settings from which the search started."""
    settings: Settings | None = None
    """All settings; None for a trial that failed."""
    fingerprint: str = ""
    """Name of the folder of its runs."""
    val: float | None = None
    """Mean validation value; None if the trial is not finished."""
    std: float | None = None
    stderr: float | None = None
    """Standard error of `val`; None for a single run."""
    n: int | None = None
    metric: str = ""
    seconds: float = 0.0

    @property
    def is_finished(self) -> bool:
        """Whether all runs were trained to the end."""
        return self.state == FINISHED

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, from which `from_dict` makes the trial again."""
        settings = None if self.settings is None else self.settings.to_dict()
        return {**vars(self), "chosen": dict(self.chosen), "settings": settings}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Trial:
        """Read what `to_dict` wrote, possibly in another version."""
        known = {item.name: values[item.name] for item in fields(cls) if item.name in values}
        settings = known["settings"]
        return cls(**{**known, "settings": None if settings is None else Settings.from_dict(settings)})


@dataclass(frozen=True)
class Standing:
    """How far a search is."""

    done: int
    total: int
    best: Trial | None
    latest: Trial | None = None
    """Trial that this process has just ended."""


@dataclass(frozen=True)
class Search:
    """What a process needs to know to work on a search; it can be pickled and sent to other processes."""

    spec: RunSpec
    """Runs of every trial, with the settings from which the search starts."""
    space: Space
    trials: int
    """Number of trials of all processes together."""
    runs: str
    seed: int = 0
    device: str = "auto"
    memory: int | None = None
    until: float | None = None
    """Time in seconds since 1970 after which no trial is started."""
    storage: str = ""
    """Address of the study: a journal file, or a database as SQLAlchemy names it."""
    study: str = ""
    """Name of the study; empty for a random search."""
    runs_of_each: int = 1

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.until is not None and time.time() >= self.until

    @property
    def wanted(self) -> int:
        """Number of trials, which is smaller than asked for if the space has fewer settings."""
        return int(min(self.trials, self.space.total + self.space.with_start))

    @property
    def epochs(self) -> int:
        """Number of epochs of a trial; the largest if it is searched."""
        searched = self.space.open.get("train.epochs")
        if searched is not None:
            return int(max(searched.bounds))
        return int(self.space.fixed.get("train", {}).get("epochs", self.spec.settings.train.epochs))

    def planned(self) -> Iterator[dict[str, Any]]:
        """Settings of a random search; the first are those from which the search starts, if the space says so."""
        start: list[dict[str, Any]] = [{}] if self.space.with_start else []
        return islice(chain(start, self.space.draws(self.seed)), self.wanted)


def train_trial(search: Search, number: int, chosen: Mapping[str, Any], place: Place) -> Trial:
    """Train all runs of a setting; it may be pruned by the judge of `place`."""
    spec, started = search.spec.laid_over(search.space.tables(chosen)), time.monotonic()
    workload = spec.read(place.reader)
    about: dict[str, Any] = {
        "number": number,
        "chosen": dict(chosen),
        "settings": workload.settings,
        "fingerprint": workload.settings.fingerprint(workload.data_hash),
    }
    try:
        run = fit_spec(spec, place)
    except StoppedError:
        about["state"] = PRUNED
    except DivergedError:
        about["state"] = DIVERGED
    except TooLargeError:
        about["state"] = TOO_LARGE
    else:
        about |= {"state": FINISHED, "val": run.val.mean, "n": run.val.n, "metric": run.metric}
        about |= {"std": run.val.std, "stderr": run.val.stderr} if run.val.n > 1 else {}
    return Trial(**about, seconds=time.monotonic() - started)


def ranked(trials: list[Trial]) -> list[Trial]:
    """Trials with the best validation value first; those that are not finished come last."""
    return sorted(trials, key=lambda trial: (1.0 if trial.val is None else -trial.val, trial.number))
