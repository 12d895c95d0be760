"""`tune`: search for the settings of a model with the best validation value."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.nn import models
from gumbel_mpnn.runs.progress import ProgressMonitor, in_notebook, on_terminal
from gumbel_mpnn.runs.records import TRIALS
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.session import Session
from gumbel_mpnn.runs.spec import DataReader, RunSpec, Tables, Transform, of_model, splits_without_validation
from gumbel_mpnn.runs.workers import LOCAL
from gumbel_mpnn.runs.workers import workers as workers_of
from gumbel_mpnn.settings.files import merge, to_toml
from gumbel_mpnn.settings.presets import AUTO, save_preset
from gumbel_mpnn.settings.registry import normal_name
from gumbel_mpnn.training.device import available_bytes, pick_device
from gumbel_mpnn.training.metrics import check_metric, metric_of
from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.files import write_atomically

try:
    from gumbel_mpnn.runs.space import read_space, search_space
    from gumbel_mpnn.runs.study import (
        FINISHED,
        JOURNAL,
        PRUNED,
        Follower,
        Search,
        Trial,
        open_study,
        results,
        work_on,
        work_together,
    )
except ImportError:
    raise UserError("tune needs Optuna, which is not installed: pip install 'gumbel-mpnn[tune]'") from None

DEFAULT_TRIALS = 20
WRITTEN = "Written by gumbel-mpnn tune"
"""Beginning of a settings file that `tune` writes, after the mark of a comment."""


@dataclass(frozen=True)
class Tuning:
    """Result of a search: its trials, the best validation value first."""

    search: Search
    trials: tuple[Trial, ...]
    baseline: Tuning | None = None
    """The same search for the plain backbone of a model that rewires."""
    _temporary: object = None

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.search.spec.settings.model

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.search.spec.settings.dataset

    @property
    def best(self) -> Trial:
        """The trial with the best mean validation value."""
        if not self.trials or self.trials[0].state != FINISHED:
            raise UserError(
                f"no trial of {self.model} on {self.dataset} is finished: give the search more time or another space"
            )
        return self.trials[0]

    @cached_property
    def run(self) -> Run:
        """The runs of the best trial."""
        spec = self.search.spec.laid_over(merge(self.search.space.fixed, _nested(self.best.chosen)))
        run = Session(self.search.runs, TRIALS).find(spec)
        if run is None:
            raise UserError(f"runs of the best trial are missing in {self.search.runs}: they were deleted")
        return run

    def count(self, state: str) -> int:
        """Number of trials that ended in some way, such as `pruned`."""
        return sum(trial.state == state for trial in self.trials)

    def entry(self) -> dict[str, Any]:
        """Settings of the best trial with where they come from, as in a settings file."""
        best = self.best
        tables = {table: dict(values) for table, values in best.settings.to_dict().items() if table != "dataset"}
        del tables["model"]["name"]
        about = {
            "dataset": self.dataset,
            "model": self.model,
            "trials": len(self.trials),
            "pruned": self.count(PRUNED),
            "runs_of_each": best.val.n,
            "seconds": round(sum(trial.seconds for trial in self.trials), 1),
            "metric": self.run.metric,
            "val": best.val.mean,
            "stderr": best.val.stderr if best.val.n > 1 else None,
            "trial": best.number,
            "fingerprint": self.run.folder.path.name,
        }
        source = f"gumbel-mpnn tune: trial {best.number}, the best of {len(self.trials)} on validation"
        return {"source": source, "tried": len(self.trials), "tuning": about, **tables}

    def to_toml(self) -> str:
        """Text of a settings file with the settings of the best trial."""
        head = f"# {WRITTEN}. Use it with: gumbel-mpnn train ... --model {self.model} --preset FILE\n"
        return head + to_toml(self.entry())

    def save(self, path: str | Path) -> Path:
        """Write the settings of the best trial to a file for `--preset`; returns its path."""
        write_atomically(Path(path), self.to_toml().encode())
        return Path(path)

    def save_as(self, name: str) -> Path:
        """Keep the settings of the best trial as a preset of the user: `--preset NAME` finds it on this data set."""
        return save_preset(name, self.dataset, self.model, self.entry())


def _nested(chosen: Mapping[str, Any]) -> Tables:
    tables: dict[str, dict[str, Any]] = {}
    for key, value in chosen.items():
        table, _, name = key.partition(".")
        tables.setdefault(table, {})[name] = value
    return tables


def tune(
    dataset: str | Data,
    model: str = "gcn",
    *,
    trials: int = DEFAULT_TRIALS,
    timeout: float | None = None,
    space: Tables | str | Path | None = None,
    baseline: bool = True,
    splits: Iterable[int] | None = None,
    seeds: int | Iterable[int] = 1,
    preset: str | Path | None = "tuned",
    settings: Tables | None = None,
    overrides: Iterable[str] = (),
    transform: Transform | None = None,
    root: str | Path | None = None,
    runs: str | Path | None = None,
    storage: str | None = None,
    workers: int = 1,
    on: str = LOCAL,
    device: str = "auto",
    memory: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Tuning:
    """Search for the settings of a model with the best mean validation value.

    Trials train all splits and seeds at once. Trials that are worse than the median after an eighth, a quarter or half
    of the epochs are stopped. Test results are not used.

    Args:
        dataset: Name of a data set, or a `Data`, as in `fit`.
        model: Name of a model.
        trials: Number of settings to try. A search that was interrupted, or had fewer trials, is continued.
        timeout: Seconds after which no trial is started; trials that were started are finished.
        space: Settings to search: tables, or a TOML file, in which a value is a list of choices or a range such as
            `{"low": 0.001, "high": 0.1, "log": True}`. By default what the model and its components declare, around the
            settings of the preset, which are the first trial.
        baseline: Whether to search for the plain backbone of a model that rewires as well, with the same budget.
        splits: Splits to train on; all by default.
        seeds: Number of seeds per split, or the seeds themselves.
        preset: Source of all other settings: a family of presets, a TOML file, or None for the defaults.
        settings: Tables that override the preset; by default, these settings are not searched.
        overrides: Settings such as `["train.epochs=200"]`, which override both.
        transform: Applied to the data after reading and splitting.
        root: Folder with the files of the data sets.
        runs: Folder of the runs and of the study; None for a temporary folder that is deleted with the result.
        storage: Address of the study: a journal file, or a database as SQLAlchemy names it. By default a journal file
            in `runs`.
        workers: Number of processes that try settings at once.
        on: `local`, or a Ray cluster among whose machines the runs of a trial are divided, as in `fit`.
        device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
        memory: Bytes that training may use; all free memory by default.
        seed: Seed of the search.
        progress: Whether to show progress on standard error; by default on a terminal and in a notebook.

    Returns:
        The trials, the best first: see `Tuning.best`, `Tuning.run`, `Tuning.save` and `Tuning.baseline`.
    """
    spec = RunSpec.of(
        dataset,
        check_model(model),
        splits=splits,
        seeds=seeds,
        preset=preset,
        settings=settings,
        overrides=overrides,
        transform=transform,
        root=root,
    )
    temporary = TemporaryDirectory() if runs is None else None
    budget = Budget(trials, timeout, str(temporary.name if temporary else runs), storage, device, memory, seed)
    shown = on_terminal() or in_notebook() if progress is None else progress
    specs = [spec, *(baseline_specs([spec]) if baseline else [])]
    found = search_all(specs, read_space(space), budget, workers, on, not shown)
    first = found[0] if len(found) == 1 else replace(found[0], baseline=found[1])
    return replace(first, _temporary=temporary)


def check_model(model: str) -> str:
    """Return the name of a model; `auto`, which trains several, raises a `UserError`."""
    if isinstance(model, str) and normal_name(model) == AUTO:
        raise UserError("'auto' chooses among settings by itself: name a model to tune, such as 'gumbel-mpnn'")
    return model


@dataclass(frozen=True)
class Budget:
    """What every model is given in a search, and where it is done."""

    trials: int
    timeout: float | None
    runs: str
    storage: str | None = None
    device: str = "auto"
    memory: int | None = None
    seed: int = 0
    reader: DataReader = field(default_factory=DataReader)

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UserError(f"trials must be 1 or more, but is {self.trials}")
        if self.timeout is not None and self.timeout <= 0:
            raise UserError(f"the time limit must be above 0 seconds, but is {self.timeout}")

    def search(self, spec: RunSpec, given: Tables | None) -> Search:
        """The search for one model, in a given space or in its own. The time limit begins now."""
        job = spec.read(self.reader)
        if splits_without_validation(job):
            raise UserError("a search compares settings on validation nodes: give the graph some in every split")
        metric = metric_of(job.data, job.settings.data)
        check_metric(metric, job.data, sorted({replica.split for replica in job.replicas}))
        space = search_space(spec, given, job)
        replicas = [str(replica) for replica in job.replicas]
        identity = [job.settings.fingerprint(job.data_hash), replicas, space.to_dict(), self.seed]
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
        return Search(
            spec,
            space,
            self.trials,
            self.runs,
            f"{job.settings.dataset}-{job.settings.model}-{digest}",
            self.storage or str(Path(self.runs) / TRIALS / JOURNAL),
            self.seed,
            self.device,
            self.memory,
            math.inf if self.timeout is None else time.time() + self.timeout,
            len(job.replicas),
        )


def baseline_specs(specs: Sequence[RunSpec]) -> list[RunSpec]:
    """Plain backbones of the models that rewire, with the settings that were given for these, if they are not there."""
    names = [spec.settings.model for spec in specs]
    found: dict[str, RunSpec] = {}
    for spec in specs:
        backbone = str(spec.settings.options.get("backbone", ""))
        if models[spec.settings.model].rewires and backbone and backbone not in (*names, *found):
            found[backbone] = spec.with_model(backbone)
    return list(found.values())


def shared(tables: Tables, model: str, names: Iterable[str]) -> Tables:
    """Settings, or a space, for one of several models: without those that only others have.

    Settings that no model has are not left out, so that they are reported.
    """
    ours, others = of_model(tables, model), merge(*(of_model(tables, name) for name in names))
    return {
        table: {
            name: value
            for name, value in values.items()
            if name in ours.get(table, {}) or name not in others.get(table, {})
        }
        for table, values in tables.items()
        if table in ours or table not in others
    }


def search_all(
    specs: Sequence[RunSpec],
    given: Tables | None,
    budget: Budget,
    workers: int,
    on: str,
    quiet: bool,
) -> list[Tuning]:
    """Search for the settings of every model with the same budget, in a given space or in their own."""
    names, found = [spec.settings.model for spec in specs], list[Tuning]()
    monitor = ProgressMonitor(show_test=False, quiet=quiet)
    with closing(monitor), workers_of(workers, on, budget.device) as several:
        for spec in specs:
            search = budget.search(spec, None if given is None else shared(given, spec.settings.model, names))
            study = open_study(search)
            follower = Follower(study, search, monitor)
            if several is not None and on == LOCAL:
                free = budget.memory or available_bytes(pick_device(budget.device))
                work_together(replace(search, memory=free), several, follower)
            else:  # a cluster trains the runs of one trial after another
                place: dict[str, Any] = {"device": search.device, "memory": search.memory, "reader": budget.reader}
                work_on(search, Session(search.runs, TRIALS, monitor=monitor, workers=several, **place), follower)
            found.append(Tuning(search, tuple(results(study, search, budget.reader))))
    return found
