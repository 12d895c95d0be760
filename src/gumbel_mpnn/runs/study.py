"""A search as a study of Optuna, which survives a kill and is shared by any number of processes.

The study lies in a storage, a journal file or a database, in which processes and machines meet. They share the folder
of runs, where a process holds the lock of a file while it trains a trial: one that is running without a lock has lost
its process, and is continued.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import optuna
from filelock import FileLock, Timeout
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from gumbel_mpnn.nn.replica import derive_seed
from gumbel_mpnn.runs.progress import Monitor, in_time
from gumbel_mpnn.runs.session import TRIES, Session
from gumbel_mpnn.runs.space import Space, draw, number_of_choices, search_space, searched, tables_of
from gumbel_mpnn.runs.spec import DataReader, RunSpec, Tables, splits_without_validation
from gumbel_mpnn.runs.store import TRIALS, Summary
from gumbel_mpnn.runs.workers import LostError, Workers
from gumbel_mpnn.settings import Replica, Settings
from gumbel_mpnn.settings.registry import load_plugins
from gumbel_mpnn.training.build import available_bytes, pick_device
from gumbel_mpnn.util.errors import (
    DivergedError,
    StoppedError,
    TooLargeError,
    UserError,
    check_at_least,
    counted,
    reason,
)

JOURNAL = "studies.journal"
"""File of all studies in the folder of trials, unless the user names a storage."""
JOURNAL_BEGINS = b'{"op_code"'
START = "start"
"""Attribute of the trial that has the settings from which the search starts."""
PRUNED_AFTER = (8, 4, 2)
"""Trials are compared after an eighth, a quarter and half of the epochs."""
UNPRUNED = 4
"""Number of trials that are finished before weak ones are stopped."""
LOOK_SECONDS = 1.0
FINISHED, PRUNED, DIVERGED, TOO_LARGE = "finished", "pruned", "diverged", "too large"
STATES = {FINISHED: TrialState.COMPLETE, PRUNED: TrialState.PRUNED}
"""Other trials fail, and the study has their end as an attribute."""


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


@dataclass(frozen=True)
class Search:
    """What a process needs to know to work on a search; it can be sent to other processes."""

    spec: RunSpec
    """Runs of every trial, with the settings from which the search starts."""
    space: Space
    with_start: bool
    """Whether these are the first trial."""
    runs_of_each: int
    study: str
    """Name of the study."""
    trials: int
    runs: str
    storage: str = ""
    """Address of the study: a journal file, or a database as SQLAlchemy names it."""
    seed: int = 0
    device: str = "auto"
    memory: int | None = None
    until: float = math.inf
    """Time in seconds since 1970 after which no trial is started."""

    @classmethod
    def of(
        cls,
        spec: RunSpec,
        given: Tables | None,
        *,
        reader: DataReader | None = None,
        timeout: float | None = None,
        storage: str | None = None,
        **options: Any,
    ) -> Search:
        """The search in a given space, or in that of the model. The time limit begins now."""
        check_at_least(1, trials=options["trials"])
        if timeout is not None and timeout <= 0:
            raise UserError(f"the time limit must be above 0 seconds, but is {timeout}")
        job = spec.read(reader)
        if splits_without_validation(job):
            raise UserError("a search compares settings on validation nodes: give the graph some in every split")
        space = search_space(spec, given, job)
        what = [job.settings.fingerprint(job.data_hash), list(map(str, job.replicas)), space, options.get("seed", 0)]
        digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]
        name = f"{job.settings.dataset}-{job.settings.model}-{digest}"
        until = math.inf if timeout is None else time.time() + timeout
        storage = storage or str(Path(options["runs"]) / TRIALS / JOURNAL)
        return cls(spec, space, given is None, len(job.replicas), name, storage=storage, until=until, **options)

    @property
    def title(self) -> str:
        """What is searched for."""
        return f"{self.spec.settings.model} on {self.spec.settings.dataset}"

    @property
    def wanted(self) -> int:
        """Number of trials, which is smaller than asked for if the space has fewer settings."""
        return int(min(self.trials, number_of_choices(self.space) + self.with_start))

    def chosen(self, trial: optuna.Trial | FrozenTrial) -> dict[str, Any]:
        """Values that were drawn for a trial, by `table.name`; a `ValueError` if not all were drawn."""
        return {} if trial.user_attrs.get(START) else draw(trial, self.space)

    def spec_of(self, chosen: Mapping[str, Any]) -> RunSpec:
        """The runs of a trial."""
        return self.spec.laid_over(tables_of(self.space, chosen))

    def lock(self, name: object = "study") -> FileLock:
        """The lock of the study, which is held for moments, or of a trial, which its process holds while it trains."""
        folder = Path(self.runs) / TRIALS / ".studies" / self.study
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / f"{name}.lock")


def open_study(search: Search) -> optuna.Study:
    """Open the study of a search; it is created if there is none."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(
        storage=open_storage(search.storage),
        study_name=search.study,
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(UNPRUNED),
        load_if_exists=True,
    )


def open_storage(address: str) -> optuna.storages.BaseStorage:
    """Open a storage by its address: a journal file, or a database as SQLAlchemy names it."""
    try:
        if "://" in address:
            return optuna.storages.RDBStorage(address)
        path = Path(address)
        path.parent.mkdir(parents=True, exist_ok=True)
        # The system releases this lock if its process dies; others would wait for that of Optuna, or for ever.
        lock: Any = FileLock(f"{address}.lock", poll_interval=0.005)
        with lock, path.open("a+b") as file:
            file.seek(0)
            content = file.read()
            if not content.startswith(JOURNAL_BEGINS) and not JOURNAL_BEGINS.startswith(content):
                raise UserError(f"{address} is no journal of Optuna: name another file as --storage")
            file.truncate(content.rfind(b"\n") + 1)  # without a line that was cut off by a kill or a full disk
        return optuna.storages.JournalStorage(JournalFileBackend(address, lock))
    except (OSError, UserError):
        raise
    except Exception as error:  # of SQLAlchemy, of a driver, or of a damaged journal
        raise UserError(
            f"cannot open the storage {without_password(address)}: {without_password(reason(error))}; correct its"
            " address, or name another one"
        ) from error


def without_password(text: str) -> str:
    """Hide the passwords of addresses."""
    return re.sub(r"(://[^:/@\s]*):\S*@", r"\1:…@", text)


def results(search: Search, reader: DataReader | None = None) -> list[Trial]:
    """All trials of a search that ended, the best validation value first; their values are those of their runs."""
    study, reader, found = open_study(search), reader or DataReader(), list[Trial]()
    for trial, end in _ended(study):
        spec = search.spec_of(chosen := search.chosen(trial))
        run = Session(search.runs, TRIALS, reader=reader).find(spec) if end == FINISHED else None
        val = Summary.of([trial.value if end == FINISHED else None]) if run is None else run.val
        seconds = trial.duration.total_seconds() if trial.duration else 0.0
        found.append(Trial(trial.number, end, chosen, spec.read(reader).settings, val, seconds))
    return sorted(found, key=lambda trial: (-trial.val.mean if trial.val.n else math.inf, trial.number))


def _ended(study: optuna.Study) -> list[tuple[FrozenTrial, str]]:
    """Trials with the way they ended; without those of processes that were killed before all settings were drawn."""
    ends = {state: end for end, state in STATES.items()}
    each = [(trial, ends.get(trial.state, study.user_attrs.get(f"end of {trial.number}"))) for trial in study.trials]
    return [(trial, end) for trial, end in each if end is not None]


def work_on(search: Search, session: Session | None = None, follow: Callable[[], None] = lambda: None) -> None:
    """Train trials of a study until all are done, the time is up, or other processes train the rest.

    This is the work of one process. `follow` is called after each trial.
    """
    load_plugins()
    study, session = open_study(search), session or Session(search.runs, TRIALS, search.device, search.memory)
    while time.time() < search.until and (begun := _begin(study, search)) is not None:
        trial, lock = begun
        try:
            _train(study, trial, search, session)
        finally:
            lock.release()
        follow()


def _begin(study: optuna.Study, search: Search) -> tuple[optuna.Trial | FrozenTrial, FileLock] | None:
    """Begin a trial, or take one that a killed process has left, with its lock; None if all are begun."""
    with search.lock():
        if search.with_start and not study.trials:
            study.enqueue_trial({}, user_attrs={START: True})
        if number_of_choices(search.space) <= search.trials:  # all of them are tried
            values = searched(search.space)
            for choice in product(*values.values()):
                study.enqueue_trial(dict(zip(values, choice, strict=True)), skip_if_exists=True)
        begun = len(_ended(study))
        for left in study.get_trials(states=(TrialState.RUNNING,)):
            lock = search.lock(left.number)
            try:
                lock.acquire(timeout=0)
                search.chosen(left)
                return left, lock
            except Timeout:  # its process is at work
                begun += 1
            except ValueError:  # its process was killed before all settings were drawn
                study.tell(left.number, state=TrialState.FAIL)
                lock.release()
        if begun >= search.wanted:
            return None
        seed = derive_seed(search.seed, f"trial {begun}") % 2**32  # the same after an interruption
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        trial = study.ask()
        search.chosen(trial)
        lock = search.lock(trial.number)
        lock.acquire()
        return trial, lock


def _train(study: optuna.Study, trial: optuna.Trial | FrozenTrial, search: Search, session: Session) -> None:
    """Train all runs of a trial, and tell the study how it ended; after other errors, it is left to be continued."""
    spec = search.spec_of(search.chosen(trial))
    if isinstance(trial, optuna.Trial):
        session = replace(session, pruner=Pruner(trial, spec.settings.train.epochs))
    session.monitor.label = f"{search.title}, trial {trial.number + 1} of {search.wanted}"
    end, val = FINISHED, None
    try:
        val = session.fit(spec).val.mean
    except StoppedError:
        end = PRUNED
    except (DivergedError, TooLargeError) as error:
        end = DIVERGED if isinstance(error, DivergedError) else TOO_LARGE
    with search.lock():
        if end not in STATES:
            study.set_user_attr(f"end of {trial.number}", end)
        study.tell(trial.number, val, STATES.get(end, TrialState.FAIL))
        Path(search.lock(trial.number).lock_file).unlink(missing_ok=True)


class Pruner:
    """Lets Optuna stop a weak trial, by the mean validation value of the runs that are trained first."""

    def __init__(self, trial: optuna.Trial, epochs: int) -> None:
        self.trial, self.latest = trial, 0
        self.epochs = sorted({epochs // share for share in PRUNED_AFTER} - {0})

    def __call__(self, epoch: int, values: Mapping[Replica, float]) -> None:
        """Compare the trial with others; raises a `StoppedError`."""
        if epoch <= self.latest or not any(map(math.isfinite, values.values())):  # of later runs, or not evaluated yet
            return
        self.latest = epoch
        self.trial.report(fmean(max(value, 0.0) for value in values.values()), self.epochs.index(epoch))
        if self.trial.should_prune():
            raise StoppedError("the trial is worse than the median")


def work_together(search: Search, workers: Workers, follow: Callable[[], None]) -> None:
    """Let several processes of this machine work on a study; those that die are replaced."""
    memory = search.memory or available_bytes(pick_device(search.device))
    part = replace(search, memory=memory // workers.count)
    running, deaths = {workers.submit(work_on, part) for _ in range(min(workers.count, search.wanted))}, 0
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
    """Shows the trials that ended since the last call, and the time that is left."""

    def __init__(self, search: Search, monitor: Monitor) -> None:
        self.search, self.monitor, self.study, self.started = search, monitor, open_study(search), time.monotonic()
        self.before = self.shown = len(_ended(self.study))
        trials = counted(search.wanted, "trial")
        of_each = f"{trials} of {counted(search.runs_of_each, 'run')} each"
        monitor.say(f"{search.title}: {of_each}, {counted(len(searched(search.space)), 'setting')} searched")
        if self.before:
            monitor.say(f"{self.before} of {trials} were done before")

    def __call__(self) -> None:
        """Look at the study."""
        ended = sorted(_ended(self.study), key=lambda each: each[0].datetime_complete or datetime.max)
        best = max((trial.value or 0.0 for trial, end in ended if end == FINISHED), default=0.0)
        for trial, end in ended[self.shown :]:
            self.shown += 1
            result = f"val {100 * (trial.value or 0):.2f}, best val {100 * best:.2f}" if end == FINISHED else end
            left = self.search.wanted - self.shown
            seconds = (time.monotonic() - self.started) / (self.shown - self.before) * left
            ends = f", about {in_time(seconds)} left" * (left > 0)
            self.monitor.say(f"trial {trial.number}: {result}, {self.shown} of {self.search.wanted} done{ends}")
