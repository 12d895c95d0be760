"""A search as a study of Optuna, which survives a kill and is shared by any number of processes; and what it searches.

A space is written as tables of settings, in a file or beside the component that it belongs to. A list of values is
searched, and so is a range:

    [model]
    hidden_channels = [64, 256]
    norm = "batch"
    [train]
    lr = {low = 0.001, high = 0.1, log = true}

The study lies in a storage, a journal file or a database, in which processes and machines meet. They share the folder
of runs, where a process holds the lock of a file while it trains a trial: one that is running without a lock has lost
its process, and is continued.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from filelock import FileLock, Timeout

from gumbel_mpnn.candidates.strategies import DATA
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.nn.replica import derive_seed
from gumbel_mpnn.runs.session import Session
from gumbel_mpnn.runs.spec import REGISTRIES, DataReader, Job, RunSpec, Tables, splits_without_validation
from gumbel_mpnn.runs.store import TRIALS, flat
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.settings.files import merge, read_settings_file
from gumbel_mpnn.settings.registry import load_plugins
from gumbel_mpnn.settings.settings import COMPONENTS, TABLES
from gumbel_mpnn.training import Task
from gumbel_mpnn.training.build import outline_model
from gumbel_mpnn.util.errors import DivergedError, StoppedError, TooLargeError, UserError, check_at_least, reason

try:
    import optuna
    from optuna.distributions import FloatDistribution, IntDistribution
    from optuna.storages.journal import JournalFileBackend
    from optuna.trial import BaseTrial, FixedTrial, FrozenTrial, TrialState
except ImportError:
    raise UserError("tune needs Optuna, which is not installed: pip install 'gumbel-mpnn[tune]'") from None

Space = Mapping[str, Any]
"""Values by `table.name`: a list of choices, a range as Optuna's `suggest_float` takes it, or a fixed value."""
DIGITS = 4
"""Significant digits of numbers from a range, so that they can be read and written."""
JOURNAL = "studies.journal"
"""File of all studies in the folder of trials, unless the user names a storage."""
JOURNAL_BEGINS = b'{"op_code"'
START = "start"
"""Attribute of the trial that has the settings from which the search starts."""
UNPRUNED = 4
"""Number of trials that are finished before weak ones are stopped."""
FINISHED, PRUNED, DIVERGED, TOO_LARGE = "finished", "pruned", "diverged", "too large"
STATES = {FINISHED: TrialState.COMPLETE, PRUNED: TrialState.PRUNED}
"""Other trials fail, and the study has their end as an attribute."""
ENDS = {StoppedError: PRUNED, DivergedError: DIVERGED, TooLargeError: TOO_LARGE}
PRUNED_AFTER = (8, 4, 2)
"""Trials are compared after an eighth, a quarter and half of the epochs."""


def read_space(space: Tables | str | Path | None) -> Tables | None:
    """Read the tables of a space of the user, from a file or as they are; it must leave something to search."""
    if space is None:
        return None
    tables = merge(space if isinstance(space, Mapping) else read_settings_file(Path(space)))
    if not searched(read_tables(tables, {})):
        raise UserError("the space contains nothing to search: give at least one setting a list of values or a range")
    return tables


def search_space(spec: RunSpec, given: Tables | None, job: Job) -> Space:
    """The space to search around `spec`: what the user gives, or the default. Choices and ends of ranges are tried."""
    space = default_space(spec, job) if given is None else read_tables(given, flat(spec.settings.to_dict()))
    several = searched(space).items()
    for name in ("data.metric", "data.protocol"):
        if name in dict(several):
            raise UserError(f"a search compares settings on one graph, by one metric: give {name} one value")
    tried = {name: [each["low"], each["high"]] if isinstance(each, dict) else each for name, each in several}
    task, first = Task.of(job.data, job.settings), {name: each[0] for name, each in tried.items()}
    for name, value in ((name, value) for name, each in tried.items() for value in each):
        drawn = draw(FixedTrial({**first, name: value}), space)
        outline_model(spec.laid_over(tables_of(space, drawn)).settings, task)
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
    numbers = {name: number for name, number in value.items() if name != "log"}
    known = {"low", "high"} <= numbers.keys() <= {"low", "high", "step"}
    if not known or not all(type(number) in (int, float) and math.isfinite(number) for number in numbers.values()):
        raise UserError(f"the range of {key} must have numbers low and high, and may have step and log, but is {value}")
    kind = FloatDistribution if float in map(type, (start, *numbers.values())) else IntDistribution
    try:
        checked = kind(**numbers, log=bool(value.get("log", False)))
    except ValueError as error:
        raise UserError(f"the range of {key} is not valid: {reason(error)}") from None
    return {name: getattr(checked, name) for name in (*numbers, "log")}  # high is what the steps reach


def searched(space: Space) -> dict[str, Any]:
    """The settings of a space that have several values."""
    return {name: values for name, values in space.items() if isinstance(values, list | dict)}


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
            drawn[key] = float(f"{trial.suggest_float(key, **values):.{DIGITS}g}")
    return drawn


def tables_of(space: Space, drawn: Mapping[str, Any]) -> Tables:
    """Tables of the fixed settings of a space and those that were drawn."""
    tables: dict[str, dict[str, Any]] = {}
    fixed = {key: value for key, value in space.items() if not isinstance(value, list | dict)}
    for key, value in (fixed | dict(drawn)).items():
        table, _, name = key.partition(".")
        tables.setdefault(table, {})[name] = value
    return tables


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
        options["trials"] = options["trials"] if searched(space) else 1  # all would be the same
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

    def chosen(self, trial: BaseTrial) -> dict[str, Any]:
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


def ended(study: optuna.Study) -> list[tuple[FrozenTrial, str]]:
    """Trials with the way they ended; without those of processes that were killed before all settings were drawn."""
    ends = {state: end for end, state in STATES.items()}
    each = [(trial, ends.get(trial.state, study.user_attrs.get(f"end of {trial.number}"))) for trial in study.trials]
    return [(trial, end) for trial, end in each if end is not None]


def work_on(search: Search, session: Session | None = None, follow: Callable[[], None] = lambda: None) -> None:
    """Train trials of a study until all have ended, also those of other processes, or the time is up.

    This is the work of one process. `follow` is called after each trial.
    """
    load_plugins()
    study, session = open_study(search), session or Session(search.runs, TRIALS, search.device, search.memory)
    while time.time() < search.until and len(ended(study)) < search.trials:
        if (begun := _begin(study, search)) is None:  # other processes train the rest, unless they are killed
            time.sleep(1)
            continue
        trial, lock = begun
        with lock:
            _train(study, trial, search, session)
        follow()


def _begin(study: optuna.Study, search: Search) -> tuple[BaseTrial, AbstractContextManager[Any]] | None:
    """Begin a trial, or take one that a killed process has left, with its lock; None if all are begun."""
    with search.lock():
        if search.with_start and not study.trials:
            study.enqueue_trial({}, user_attrs={START: True})
        begun = len(ended(study))
        for left in study.get_trials(states=(TrialState.RUNNING,)):
            try:
                lock = search.lock(left.number).acquire(timeout=0)
                search.chosen(left)
                return left, lock
            except Timeout:  # its process is at work
                begun += 1
            except ValueError:  # its process was killed before all settings were drawn
                with lock:
                    study.tell(left.number, state=TrialState.FAIL)
        if begun >= search.trials:
            return None
        seed = derive_seed(search.seed, f"trial {begun}") % 2**32  # the same after an interruption
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        trial = study.ask()
        search.chosen(trial)
        return trial, search.lock(trial.number).acquire()


def _train(study: optuna.Study, trial: BaseTrial, search: Search, session: Session) -> None:
    """Train all runs of a trial, and tell the study how it ended; after other errors, it is left to be continued."""
    spec = search.spec_of(search.chosen(trial))
    if isinstance(trial, optuna.Trial):
        pruner = Pruner(trial, spec.settings.train.epochs)
        session = replace(session, prune=pruner, prune_after=pruner.epochs)
    session.monitor.label = f"{search.title}, trial {trial.number + 1} of {search.trials}"
    end, val = FINISHED, None
    try:
        val = session.fit(spec).val.mean
    except (StoppedError, DivergedError, TooLargeError) as error:
        end = ENDS[type(error)]
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
