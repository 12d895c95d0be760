"""`tune`: search for the settings of a model with the best validation value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.nn import models
from gumbel_mpnn.runs.progress import Monitor, is_watched
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.session import TRIES, Session, open_workers
from gumbel_mpnn.runs.spec import DataReader, RunSpec, Tables, Transform, of_model
from gumbel_mpnn.runs.store import TRIALS, Summary
from gumbel_mpnn.runs.study import FINISHED, PRUNED, Search, ended, open_study, read_space, searched, work_on
from gumbel_mpnn.runs.workers import LOCAL, LostError, Workers
from gumbel_mpnn.settings import Settings
from gumbel_mpnn.settings.files import to_toml
from gumbel_mpnn.settings.presets import AUTO, save_preset
from gumbel_mpnn.settings.registry import normal_name
from gumbel_mpnn.training.build import available_bytes, pick_device
from gumbel_mpnn.util.errors import UserError, counted
from gumbel_mpnn.util.files import write_atomically

LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Trial:
    """One setting of a search and its validation results; there are no test results."""

    number: int
    """Number of the trial in the study, from 0."""
    state: str
    """`finished`, `pruned`, `diverged` or `too large`."""
    chosen: Mapping[str, Any]
    """Chosen values by `table.name`; empty for the settings from which the search started."""
    settings: Settings
    val: Summary
    """Validation values of its runs; of no values unless it is finished."""
    seconds: float
    run: Run | None = field(compare=False, repr=False)
    """Its runs; None unless it is finished, or if they were deleted."""


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
        if not self.count(FINISHED):
            raise UserError(
                f"no trial of {self.model} on {self.dataset} is finished: give the search more time or another space"
            )
        return self.trials[0]

    @property
    def run(self) -> Run:
        """The runs of the best trial."""
        if self.best.run is None:
            raise UserError(f"runs of the best trial are missing in {self.search.runs}: they were deleted")
        return self.best.run

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

    def save(self, path: str | Path) -> Path:
        """Write the settings of the best trial to a file for `--preset`; returns its path."""
        head = f"# Written by gumbel-mpnn tune. Use it with: gumbel-mpnn train ... --model {self.model} --preset FILE\n"
        write_atomically(Path(path), (head + to_toml(self.entry())).encode())
        return Path(path)

    def save_as(self, name: str) -> Path:
        """Keep the settings of the best trial as a preset of the user: `--preset NAME` finds it on this data set."""
        return save_preset(name, self.dataset, self.model, self.entry())


def tune(
    dataset: str | Data,
    model: str = "gcn",
    *,
    trials: int = 20,
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
    if isinstance(model, str) and normal_name(model) == AUTO:
        raise UserError("'auto' chooses among settings by itself: name a model to tune, such as 'gumbel-mpnn'")
    spec = RunSpec.of(
        dataset,
        model,
        splits=splits,
        seeds=seeds,
        preset=preset,
        settings=settings,
        overrides=overrides,
        transform=transform,
        root=root,
    )
    backbone = spec.settings.options.get("backbone") if baseline and models[spec.settings.model].rewires else None
    given, temporary = read_space(space), TemporaryDirectory() if runs is None else None
    options: dict[str, Any] = {"trials": trials, "timeout": timeout, "storage": storage, "seed": seed, "memory": memory}
    options |= {"runs": str(temporary.name if temporary else runs), "device": device, "reader": DataReader()}
    shown = is_watched() if progress is None else progress
    monitor = Monitor(not shown, show_test=False)
    with closing(monitor), open_workers(workers, on, device) as several:
        found = _search(Search.of(spec, given, **options), several, on, monitor, options["reader"])
        if backbone:
            plain = spec.with_model(str(backbone))
            within = given if given is None else of_model(given, plain.settings.model)
            other = _search(Search.of(plain, within, **options), several, on, monitor, options["reader"])
            found = replace(found, baseline=other)
    return replace(found, _temporary=temporary)


def _search(search: Search, workers: Workers | None, on: str, monitor: Monitor, reader: DataReader) -> Tuning:
    """Try settings until enough are tried, in workers of this machine or here."""
    follower = Follower(search, monitor)
    if workers is not None and on == LOCAL:
        work_together(search, workers, follower)
    else:  # a cluster trains the runs of one trial after another
        place: dict[str, Any] = {"monitor": monitor, "workers": workers, "reader": reader}
        work_on(search, Session(search.runs, TRIALS, search.device, search.memory, **place), follower)
    return Tuning(search, tuple(results(search, reader)))


def results(search: Search, reader: DataReader | None = None) -> list[Trial]:
    """All trials of a search that ended, the best validation value first; their values are those of their runs."""
    found, session = list[Trial](), Session(search.runs, TRIALS, reader=reader or DataReader())
    for trial, end in ended(open_study(search)):
        spec = search.spec_of(chosen := search.chosen(trial))
        run = session.find(spec) if end == FINISHED else None
        val = Summary.of([trial.value if end == FINISHED else None]) if run is None else run.val
        seconds = trial.duration.total_seconds() if trial.duration else 0.0
        found.append(Trial(trial.number, end, chosen, spec.read(session.reader).settings, val, seconds, run))
    return sorted(found, key=lambda trial: (-trial.val.mean if trial.val.n else math.inf, trial.number))


def work_together(search: Search, workers: Workers, follow: Callable[[], None]) -> None:
    """Let several processes of this machine work on a study; those that die are replaced."""
    memory = search.memory or available_bytes(pick_device(search.device))
    part = replace(search, memory=memory // workers.count)
    running, deaths = {workers.submit(work_on, part) for _ in range(min(workers.count, search.trials))}, 0
    while running:
        done, running = wait(running, LOOK_SECONDS, FIRST_COMPLETED)
        follow()
        for future in done:
            try:
                workers.result(future)
            except LostError as error:
                deaths += 1
                if deaths > TRIES * workers.count:
                    raise UserError(f"the processes of this search died again and again ({error})") from error
                running.add(workers.submit(work_on, part))


class Follower:
    """Says of every trial that ends how it ended, and the best validation value so far."""

    def __init__(self, search: Search, monitor: Monitor) -> None:
        self.search, self.monitor, self.study = search, monitor, open_study(search)
        self.told = {trial.number for trial, _ in ended(self.study)}
        of_each = f"{counted(search.trials, 'trial')} of {counted(search.runs_of_each, 'run')} each"
        before = f", {len(self.told)} of them done before" * bool(self.told)
        monitor.say(f"{search.title}: {of_each}, {counted(len(searched(search.space)), 'setting')} searched{before}")

    def __call__(self) -> None:
        """Look at the study."""
        trials = ended(self.study)
        best = max((trial.value or 0.0 for trial, end in trials if end == FINISHED), default=0.0)
        for trial, end in trials:
            if trial.number not in self.told:
                self.told.add(trial.number)
                result = f"val {100 * (trial.value or 0):.2f}, best val {100 * best:.2f}" if end == FINISHED else end
                self.monitor.say(f"trial {trial.number}: {result}, {len(self.told)} of {self.search.trials} done")
