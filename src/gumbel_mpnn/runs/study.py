"""A search as an Optuna study, which survives a kill and is shared by any number of processes.

Every trial has a number of its own, which it keeps if it has to be repeated. Trials are planned in the storage before
they are started, so that all processes together train each of them once. A process holds the lock of a file in the
runs folder while it works: trials of a process that was killed are recognised by it, told failed, and planned again.
"""

from __future__ import annotations

import math
import os
import re
import statistics
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumbel_mpnn.nn.rng import derive_seed
from gumbel_mpnn.runs.choice import upper_half
from gumbel_mpnn.runs.fitting import Monitor, Place
from gumbel_mpnn.runs.reader import DataReader
from gumbel_mpnn.runs.record import TRIALS
from gumbel_mpnn.runs.trials import FAILED, FINISHED, Search, Standing, Trial, train_trial
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.settings.plugins import load_plugins
from gumbel_mpnn.settings.spaces import Choices, Dimension
from gumbel_mpnn.util.errors import StoppedError, UserError, reason
from gumbel_mpnn.util.locks import FileLock, alone, is_held

if TYPE_CHECKING:
    import optuna

JOURNAL = "studies.journal"
"""File of all studies in the folder of trials."""
WORKERS, AT_WORK = ".studies", ".worker-"
"""Folder of the files that are locked by processes at work, and the beginning of their names."""
NUMBER, WORKER, RESULT, FINGERPRINT, RUNGS, INTERRUPTED = (
    "trial",
    "worker",
    "result",
    "fingerprint",
    "rungs",
    "interrupted",
)
"""User attributes of a trial: its number, the process that trains it, its result with all settings, the folder of its
runs, its validation values at the rungs, and whether an error or the user interrupted it."""
FIXED = "fixed_params"
"""System attribute of Optuna for the settings that a trial is given."""
MOST_ATTEMPTS = 5
"""A trial whose process vanished so many times is not tried again."""
PRUNED_AFTER = (8, 4, 2)
"""Trials are compared after an eighth, a quarter and half of the epochs; the better half goes on."""
FEWEST = 4
"""Fewer trials are not compared."""


Watch = Callable[[Standing], None]


def work_on(
    search: Search,
    monitor: Monitor | None = None,
    watch: Watch | None = None,
    reader: DataReader | None = None,
    place: Place | None = None,
) -> None:
    """Train trials of a study until all are done, the time is up, or other processes train the rest.

    This is the work of one process. Call it in as many processes as you like, on any machine that reaches the storage
    and the runs folder.

    Args:
        search: The search, as `tune` describes it.
        monitor: Called while runs are trained.
        watch: Called before the first trial and after each trial.
        reader: Reads the data, if it was read before in this process.
        place: Where and how to train, if it is not this process.
    """
    load_plugins()
    study = open_study(search)
    place = place or Place(search.runs, TRIALS, search.device, search.memory, monitor, reader=reader or DataReader())
    with _at_work(_folder(search)) as worker:
        if watch is not None:
            watch(standing(study, search))
        while not search.is_over and (trial := _next(study, search, worker)) is not None:
            result = _train(study, trial, search, place)
            if watch is not None:
                watch(replace(standing(study, search), latest=result))


def open_study(search: Search) -> optuna.Study:
    """Open the study of a search; it is created if there is none."""
    import optuna

    return optuna.create_study(
        storage=open_storage(search.storage),
        study_name=search.study,
        direction="maximize",
        pruner=optuna.pruners.NopPruner(),  # trials are pruned by `Halving`
        load_if_exists=True,
    )


def open_storage(address: str) -> optuna.storages.BaseStorage:
    """Open a storage by its address: a journal file, or a database as SQLAlchemy names it."""
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalRedisBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        if address.startswith("redis"):
            return optuna.storages.JournalStorage(JournalRedisBackend(address))
        if "://" in address:
            return optuna.storages.RDBStorage(address)
        path = Path(address)
        path.parent.mkdir(parents=True, exist_ok=True)
        lock: Any = JournalLock(path)
        return optuna.storages.JournalStorage(JournalFileBackend(address, lock))
    except OSError:
        raise
    except Exception as error:  # of SQLAlchemy, of a driver, or of a damaged journal
        raise UserError(
            f"cannot open the storage {without_password(address)}: {without_password(reason(error))}; correct its"
            " address, or name another one"
        ) from error


def without_password(text: str) -> str:
    """Hide the passwords of addresses."""
    return re.sub(r"(://[^:/@\s]*):\S*@", r"\1:…@", text)


class JournalLock:
    """Lock of a journal that ends with its process; Optuna's own outlives a kill by half a minute."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock: FileLock | None = None

    def acquire(self) -> bool:
        """Wait for the lock, and remove what a killed process has not finished writing."""
        self.lock = FileLock(self.path)
        self.lock.take(wait=True)
        _mend(self.path)
        return True

    def release(self) -> None:
        """Release the lock."""
        if self.lock is not None:
            self.lock.release()


def _mend(path: Path) -> None:
    """Remove the end of a journal that a process was killed while writing, which is not a whole line."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return
        file.seek(size - 1)
        if file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


def results(study: optuna.Study, search: Search) -> list[Trial]:
    """All trials of the study that ended, by number."""
    found = {}
    for trial in _trials(study):
        if RESULT in trial.user_attrs and trial.state.is_finished() and trial.state.name != "FAIL":
            result = Trial.from_dict(trial.user_attrs[RESULT])
            found[result.number] = result
    for number in _given_up(study):
        found.setdefault(number, Trial(number, FAILED))
    return [found[number] for number in sorted(found) if number < search.wanted]


def standing(study: optuna.Study, search: Search) -> Standing:
    """How far the study is."""
    done = results(study, search)
    best = max((trial for trial in done if trial.is_finished), key=lambda trial: trial.val or 0.0, default=None)
    return Standing(len(done), search.wanted, best)


def _trials(
    study: optuna.Study, states: tuple[optuna.trial.TrialState, ...] | None = None
) -> list[optuna.trial.FrozenTrial]:
    """Trials that were planned here; those that the user adds by other means are left alone."""
    return [trial for trial in study.get_trials(deepcopy=False, states=states) if NUMBER in trial.user_attrs]


def _next(study: optuna.Study, search: Search, worker: str) -> optuna.Trial | None:
    """Take the next trial; None if there is none left that no other process trains."""
    import optuna

    with alone(_folder(search) / ".lock"):
        _plan(study, search)
        states = (optuna.trial.TrialState.WAITING,)
        waiting = sorted(_trials(study, states), key=lambda trial: trial.user_attrs[NUMBER])
        for trial in waiting:
            number = trial.user_attrs[NUMBER]
            # Trials beyond those that are wanted are of an earlier call, which wanted more.
            if number < search.wanted and _take(study, trial):
                if not trial.system_attrs.get(FIXED) and (settings := _untried(study, search, number)):
                    study._storage.set_trial_system_attr(trial._trial_id, FIXED, settings)
                seed = derive_seed(search.seed, f"trial {number}") % 2**32
                with warnings.catch_warnings(action="ignore"):  # some versions call the argument experimental
                    study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
                taken = optuna.Trial(study, trial._trial_id)
                taken.set_user_attr(WORKER, worker)
                return taken
    return None


def _take(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
    """Start a trial that waits; returns whether no other process was faster. `Study.ask` would also make new ones."""
    import optuna

    with suppress(optuna.exceptions.UpdateFinishedTrialError):
        return study._storage.set_trial_state_values(trial._trial_id, optuna.trial.TrialState.RUNNING)
    return False


def _plan(study: optuna.Study, search: Search) -> None:
    """Plan all trials that are missing: new ones, and those whose process was killed. The caller holds the lock."""
    import optuna

    folder = _folder(search)
    gone = {path.name for path in folder.glob(f"{AT_WORK}*") if not is_held(path)}
    for trial in _trials(study, (optuna.trial.TrialState.RUNNING,)):
        if trial.user_attrs.get(WORKER) in (None, *gone):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    there, before = set(_given_up(study)), dict[int, optuna.trial.FrozenTrial]()
    for trial in _trials(study):
        if trial.state is optuna.trial.TrialState.FAIL:
            before[trial.user_attrs[NUMBER]] = trial
        else:
            there.add(trial.user_attrs[NUMBER])
    for number in range(search.wanted):
        if number not in there:
            params = before[number].params if number in before else {}
            study.enqueue_trial(params, user_attrs={NUMBER: number})


def _untried(study: optuna.Study, search: Search, number: int) -> dict[str, Any]:
    """Settings for a new trial that no other has, if all settings of the space are wanted; otherwise none."""
    if search.space.total > search.trials or (search.space.with_start and number == 0):
        return {}
    tried = [dict[str, Any]()]
    for trial in _trials(study):
        failed = trial.state.name == "FAIL"
        tried.append(trial.params or ({} if failed else trial.system_attrs.get(FIXED, {})))
    return next((settings for settings in search.planned() if settings not in tried), {})


def _given_up(study: optuna.Study) -> list[int]:
    """Numbers of the trials whose process vanished too often."""
    failed: dict[int, int] = {}
    for trial in _trials(study):
        if trial.state.name == "FAIL" and not trial.user_attrs.get(INTERRUPTED):
            number = trial.user_attrs[NUMBER]
            failed[number] = failed.get(number, 0) + 1
    return [number for number, count in failed.items() if count >= MOST_ATTEMPTS]


def _train(study: optuna.Study, trial: optuna.Trial, search: Search, place: Place) -> Trial:
    import optuna

    number = trial.user_attrs[NUMBER]
    starts = search.space.with_start and number == 0
    try:
        chosen = {} if starts else search.space.choose(lambda name, each: _suggest(trial, name, each))
        pruner = Halving(study, trial, search.epochs)
        result = train_trial(search, number, chosen, replace(place, pruner=pruner))
    except BaseException:  # reported by this process; only those that vanish count against a trial
        with suppress(Exception):
            trial.set_user_attr(INTERRUPTED, True)
        raise
    if result.is_finished and (result.val is None or math.isnan(result.val)):
        raise UserError("a search compares settings on validation nodes: give the graph some")
    trial.set_user_attr(FINGERPRINT, result.fingerprint)
    trial.set_user_attr(RESULT, result.to_dict())
    if result.state == FINISHED:
        study.tell(trial, result.val)
    else:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    return result


def _suggest(trial: optuna.Trial, name: str, dimension: Dimension) -> Any:
    if isinstance(dimension, Choices):
        return trial.suggest_categorical(name, dimension.values)
    low, high, step = dimension.low, dimension.high, dimension.step
    with warnings.catch_warnings(action="ignore"):  # of a step that does not end at `high`
        if dimension.whole:
            return trial.suggest_int(name, int(low), int(high), step=int(step or 1), log=dimension.log)
        return trial.suggest_float(name, low, high, step=step, log=dimension.log)


class Halving:
    """Stops a trial that is not in the better half of all trials at the same epoch, on the same runs.

    Runs that do not fit into memory at once are trained in groups: each group is compared as it is trained, together
    with those before it.
    """

    def __init__(self, study: optuna.Study, trial: optuna.Trial, epochs: int) -> None:
        self.study, self.trial, self.total = study, trial, epochs
        self.epochs = sorted({epochs // share for share in PRUNED_AFTER} - {0})
        self.values: dict[str, dict[str, float]] = {}
        """Best validation value of each run by epoch."""
        self.latest, self.before = 0, 0

    def __call__(self, epoch: int, values: Mapping[Replica, float]) -> None:
        """Compare the trial with all others that came this far; raises a `StoppedError`."""
        self.before += self.total if epoch <= self.latest else 0  # another group begins
        self.latest = epoch
        if all(value == -math.inf for value in values.values()):  # not evaluated yet
            return
        ours = self.values.setdefault(str(epoch), {})
        ours |= {str(replica): max(value, 0.0) for replica, value in values.items()}
        self.trial.set_user_attr(RUNGS, self.values)
        self.trial.report(statistics.fmean(ours.values()), self.before + epoch)
        # This trial comes first, so that it goes on if it is equal to others.
        compared = {"this": ours} | {str(number): of for number, of in self._others(str(epoch), ours)}
        means = {name: {Replica.parse(run): of[run] for run in ours} for name, of in compared.items()}
        if len(means) >= FEWEST and "this" not in upper_half(means, list(means), ()):
            raise StoppedError("the trial is not in the better half")

    def _others(self, epoch: str, ours: Mapping[str, float]) -> Iterator[tuple[int, dict[str, float]]]:
        """Values of the other trials at an epoch, of those that have all runs that this one has."""
        for trial in self.study.get_trials(deepcopy=False):
            values = trial.user_attrs.get(RUNGS, {}).get(epoch, {})
            if trial.number != self.trial.number and trial.state.name != "FAIL" and values.keys() >= ours.keys():
                yield trial.number, values


def _folder(search: Search) -> Path:
    """Folder of the files that processes at work on a study lock."""
    return Path(search.runs) / TRIALS / WORKERS / search.study


@contextmanager
def _at_work(folder: Path) -> Iterator[str]:
    """Lock a file as long as this process works; its name is given. If the work ends in an error, the file stays."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{AT_WORK}{uuid.uuid4().hex}"
    with alone(folder / ".lock"):
        path.touch()
        lock = FileLock(path)
        lock.take(wait=False)
    try:
        yield path.name
        path.unlink(missing_ok=True)
    finally:
        lock.release()
