"""A search as a study of Optuna, which survives a kill and is shared by any number of processes.

The study lies in a storage, a journal file or a database, in which processes and machines meet. The runs of a trial are
stored as all others. Every process that works on a study holds the lock of a file beside the runs, by which others
recognize the trials that a killed process has left, and finish them.
"""

from __future__ import annotations

import math
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

import optuna
from filelock import FileLock, Timeout
from optuna.trial import FrozenTrial, TrialState

from gumbel_mpnn.nn.rng import derive_seed
from gumbel_mpnn.runs.progress import ProgressMonitor, in_time
from gumbel_mpnn.runs.records import TRIALS, Summary
from gumbel_mpnn.runs.session import TRIES, Session
from gumbel_mpnn.runs.space import Space, values_of
from gumbel_mpnn.runs.spec import DataReader, RunSpec
from gumbel_mpnn.runs.workers import LostError, Workers
from gumbel_mpnn.settings import Replica, Settings
from gumbel_mpnn.settings.registry import load_plugins
from gumbel_mpnn.util.errors import DivergedError, StoppedError, TooLargeError, UserError, counted, reason

JOURNAL = "studies.journal"
"""File of all studies in the folder of trials, unless the user names a storage."""
START, WORKER = "start", "worker"
"""Attributes of a trial: whether it has the settings from which the search starts, and the lock of its process."""
SETTLED = timedelta(minutes=1)
"""After so long, a trial without a process has lost it."""
PRUNED_AFTER = (8, 4, 2)
"""Trials are compared after an eighth, a quarter and half of the epochs."""
UNPRUNED = 4
"""Number of trials that are finished before weak ones are stopped."""
LOOK_SECONDS = 1.0
FINISHED, PRUNED, DIVERGED, TOO_LARGE, FAILED = "finished", "pruned", "diverged", "too large", "failed"
STATES = {TrialState.COMPLETE: FINISHED, TrialState.PRUNED: PRUNED, TrialState.FAIL: FAILED}


@dataclass(frozen=True)
class Trial:
    """One setting of a search and its validation results; there are no test results."""

    number: int
    """Number of the trial in the study, from 0."""
    state: str
    """`finished`, `pruned`, `diverged`, `too large`, or `failed` if its process died again and again."""
    chosen: Mapping[str, Any]
    """Chosen values by `table.name`; empty for the settings from which the search started."""
    settings: Settings
    val: Summary = field(default_factory=lambda: Summary.of(()))
    """Validation values of its runs; of no values unless it is finished."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Search:
    """What a process needs to know to work on a search; it can be sent to other processes."""

    spec: RunSpec
    """Runs of every trial, with the settings from which the search starts."""
    space: Space
    trials: int
    runs: str
    study: str
    """Name of the study."""
    storage: str
    """Its address: a journal file, or a database as SQLAlchemy names it."""
    seed: int = 0
    device: str = "auto"
    memory: int | None = None
    until: float = math.inf
    """Time in seconds since 1970 after which no trial is started."""
    runs_of_each: int = 1

    @property
    def title(self) -> str:
        """What is searched for."""
        return f"{self.spec.settings.model} on {self.spec.settings.dataset}"

    @property
    def wanted(self) -> int:
        """Number of trials, which is smaller than asked for if the space has fewer settings."""
        return int(min(self.trials, self.space.total + self.space.with_start))

    @property
    def epochs(self) -> int:
        """Number of epochs of a trial; the largest if it is searched."""
        searched = self.space.searched.get("train.epochs")
        fixed = self.space.fixed.get("train", {}).get("epochs", self.spec.settings.train.epochs)
        return int(fixed if searched is None else max(values_of(searched)))

    def spec_of(self, trial: FrozenTrial) -> RunSpec:
        """The runs of a trial."""
        return self.spec.laid_over(self.space.tables({} if is_start(trial) else trial.params))

    def is_complete(self, trial: FrozenTrial) -> bool:
        """Whether all settings of a trial were chosen: its process was not killed meanwhile."""
        return is_start(trial) or self.space.searched.keys() <= trial.params.keys()


def is_start(trial: FrozenTrial) -> bool:
    """Whether a trial has the settings from which the search starts."""
    return bool(trial.user_attrs.get(START))


def open_study(search: Search) -> optuna.Study:
    """Open the study of a search; it is created if there is none."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        storage=open_storage(search.storage),
        study_name=search.study,
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(UNPRUNED, n_warmup_steps=0),
        load_if_exists=True,
    )
    with _lock(search, "planned"):
        if not study.get_trials(deepcopy=False):
            if search.space.with_start:
                study.enqueue_trial({}, user_attrs={START: True})
            if search.space.total <= search.trials:  # all of them are tried
                for params in search.space.listed():
                    study.enqueue_trial(params)
    return study


def open_storage(address: str) -> optuna.storages.BaseStorage:
    """Open a storage by its address: a journal file, or a database as SQLAlchemy names it."""
    from optuna.storages.journal import JournalFileBackend, JournalRedisBackend

    try:
        if address.startswith("redis"):
            return optuna.storages.JournalStorage(JournalRedisBackend(address))
        if "://" in address:
            return optuna.storages.RDBStorage(address)
        path = Path(address)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size:
            with path.open("rb") as file:
                if not file.readline().startswith(b'{"op_code"'):
                    raise UserError(f"{address} is no journal of Optuna: name another file as --storage")
        return optuna.storages.JournalStorage(JournalFileBackend(address))
    except (OSError, UserError):
        raise
    except Exception as error:  # of SQLAlchemy, of a driver, or of a damaged journal
        raise UserError(
            f"cannot open the storage {without_password(address)}: {without_password(reason(error))}; correct its"
            " address, or name another one"
        ) from error


def without_password(text: str) -> str:
    """Hide the passwords of addresses."""
    return re.sub(r"(://[^:/@\s]*):\S*@", r"\1:…@", re.sub(r"(password=)[^&\s]*", r"\1…", text))


def results(study: optuna.Study, search: Search, reader: DataReader | None = None) -> list[Trial]:
    """All trials of the study that ended, the best validation value first; their values are those of their runs."""
    reader, found = reader or DataReader(), list[Trial]()
    for trial in study.get_trials(deepcopy=False):
        if not trial.state.is_finished() or not search.is_complete(trial):
            continue
        spec, state = search.spec_of(trial), STATES[trial.state]
        chosen = {} if is_start(trial) else search.space.chosen(trial.params)
        run = Session(search.runs, TRIALS, reader=reader).find(spec) if state == FINISHED else None
        val = Summary.of([_value(trial)]) if run is None else run.val
        state = study.user_attrs.get(f"end of {trial.number}", state)
        seconds = trial.duration.total_seconds() if trial.duration else 0.0
        found.append(Trial(trial.number, state, chosen, spec.read(reader).settings, val, seconds))
    return sorted(found, key=lambda trial: (-trial.val.mean if trial.val.n else math.inf, trial.number))


def work_on(search: Search, session: Session | None = None, follow: Callable[[], None] = lambda: None) -> None:
    """Train trials of a study until all are done, the time is up, or other processes train the rest.

    This is the work of one process. `follow` is called before the first trial and after each.
    """
    load_plugins()
    study, session = open_study(search), session or Session(search.runs, TRIALS, search.device, search.memory)
    name = uuid.uuid4().hex
    with _lock(search, name) as own:
        follow()
        while time.time() < search.until and (found := _next(study, search, name)) is not None:
            trial, lock = found
            try:
                _train(study, trial, search, session)
                if lock is not None:
                    Path(lock.lock_file).unlink(missing_ok=True)
            finally:
                if lock is not None:
                    lock.release()
            follow()
        Path(own.lock_file).unlink(missing_ok=True)


def work_together(search: Search, workers: Workers, follow: Callable[[], None]) -> None:
    """Let several processes of this machine work on a study; those that die are replaced."""
    part = search if search.memory is None else replace(search, memory=search.memory // workers.count)
    running = {workers.submit(work_on, part) for _ in range(min(workers.count, search.wanted))}
    deaths = 0
    while running:
        follow()
        done, running = wait_for(running, LOOK_SECONDS, FIRST_COMPLETED)
        for future in done:
            try:
                workers.result(future)
            except LostError as error:
                deaths += 1
                if deaths > TRIES * search.wanted:
                    raise UserError(f"the processes of this search died again and again ({error})") from error
                running.add(workers.submit(work_on, part))
    follow()


def _next(
    study: optuna.Study, search: Search, worker: str
) -> tuple[optuna.Trial | FrozenTrial, FileLock | None] | None:
    """Begin a trial, or take one that a killed process has left, with the lock of that process; None if all are done.

    Trials that lost too many processes, or before all their settings were chosen, are given up.
    """
    with _lock(search, "planned"):
        started = 0
        for trial in study.get_trials(deepcopy=False):
            lock = _lock_of_lost(trial, search) if trial.state is TrialState.RUNNING else None
            if lock is not None and search.is_complete(trial) and not _gave_up(study, trial):
                return trial, lock
            if lock is not None:
                lock.release()
                study.tell(trial.number, state=TrialState.FAIL)
                started += search.is_complete(trial)
            elif trial.state is TrialState.RUNNING or (trial.state.is_finished() and search.is_complete(trial)):
                started += 1
        if started >= search.wanted:
            return None
        seed = derive_seed(search.seed, f"trial {started}") % 2**32
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        waiting = study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
        starts = bool(waiting) and is_start(waiting[0])
        begun = study.ask(None if starts else dict(search.space.searched))
        begun.set_user_attr(WORKER, worker)
        return begun, None


def _lock_of_lost(trial: FrozenTrial, search: Search) -> FileLock | None:
    """Take the lock of the process of a running trial if it has ended; those of other disks are taken to be at work."""
    worker = trial.user_attrs.get(WORKER)
    if worker is None:  # it is just beginning, or was killed as it began
        if trial.datetime_start is None or datetime.now() - trial.datetime_start < SETTLED:
            return None
        worker = f"trial-{trial.number}"
    elif not (_folder(search) / f"{worker}.lock").exists():
        return None
    lock = FileLock(_folder(search) / f"{worker}.lock")
    with suppress(Timeout):
        lock.acquire(timeout=0)
        return lock
    return None


def _gave_up(study: optuna.Study, trial: FrozenTrial) -> bool:
    """Count a trial that lost its process; true if it lost too many."""
    key = f"processes of {trial.number}"
    study.set_user_attr(key, lost := study.user_attrs.get(key, 0) + 1)
    return bool(lost >= TRIES)


def _train(study: optuna.Study, trial: optuna.Trial | FrozenTrial, search: Search, session: Session) -> None:
    """Train all runs of a trial, and tell the study how it ended."""
    frozen = next(each for each in study.get_trials(deepcopy=False) if each.number == trial.number)
    if isinstance(trial, optuna.Trial):
        session = replace(session, pruner=Pruner(trial, search.epochs))
    if isinstance(session.monitor, ProgressMonitor):
        session.monitor.label = f"{search.title}, trial {trial.number + 1} of {search.wanted}"
    try:
        value = session.fit(search.spec_of(frozen)).val.mean
        study.tell(trial.number, value, skip_if_finished=True)
    except StoppedError:
        study.tell(trial.number, state=TrialState.PRUNED)
    except (DivergedError, TooLargeError) as error:
        study.set_user_attr(f"end of {trial.number}", DIVERGED if isinstance(error, DivergedError) else TOO_LARGE)
        study.tell(trial.number, state=TrialState.FAIL)
    except BaseException:  # it is continued by the next call, and does not count as a death
        with suppress(Exception):
            key = f"processes of {trial.number}"
            study.set_user_attr(key, study.user_attrs.get(key, 0) - 1)
        raise


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
        self.trial.report(fmean(max(value, 0.0) for value in values.values()), epoch)
        if self.trial.should_prune():
            raise StoppedError("the trial is worse than the median")


class Follower:
    """Shows the trials that ended since the last call, and the time that is left."""

    def __init__(self, study: optuna.Study, search: Search, monitor: ProgressMonitor) -> None:
        self.study, self.search, self.monitor = study, search, monitor
        self.seen, self.started = set[int](), time.monotonic()
        self.found: int | None = None
        monitor.say(
            f"{search.title}: {counted(search.wanted, 'trial')} of {counted(search.runs_of_each, 'run')} each,"
            f" {counted(len(search.space.searched), 'setting')} searched"
        )

    def __call__(self) -> None:
        """Look at the study."""
        ended = [
            trial
            for trial in self.study.get_trials(deepcopy=False)
            if trial.state.is_finished() and self.search.is_complete(trial)
        ]
        if self.found is None:
            self.found, self.seen = len(ended), {trial.number for trial in ended}
            if ended:
                self.monitor.say(f"{len(ended)} of {counted(self.search.wanted, 'trial')} were done before")
        best = max((trial for trial in ended if _value(trial) is not None), key=lambda t: t.value or 0.0, default=None)
        for trial in ended:
            if trial.number not in self.seen:
                self.seen.add(trial.number)
                result = STATES[trial.state] if (val := _value(trial)) is None else f"val {100 * val:.2f}"
                so_far = "" if best is None else f", best val {100 * (best.value or 0):.2f} (trial {best.number})"
                done, left = len(self.seen) - self.found, self.search.wanted - len(self.seen)
                seconds = (time.monotonic() - self.started) / done * left
                self.monitor.say(
                    f"trial {trial.number}: {result}, {len(self.seen)} of {self.search.wanted} done{so_far}"
                    + f", about {in_time(seconds)} left" * (left > 0)
                )


def _value(trial: FrozenTrial) -> float | None:
    """Mean validation value of a trial; None unless it is finished, since that of a pruned one is of an early epoch."""
    return trial.value if trial.state is TrialState.COMPLETE else None


def _folder(search: Search) -> Path:
    """Folder of the locks of processes that work on a study."""
    return Path(search.runs) / TRIALS / ".studies" / search.study


@contextmanager
def _lock(search: Search, name: str) -> Iterator[FileLock]:
    folder = _folder(search)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f"{name}.lock") as lock:
        yield lock
