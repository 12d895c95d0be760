"""`tune`: search for settings with the best validation value.

With Optuna, the search is a study that learns from its trials, prunes weak ones, survives a kill and is joined by
several processes. Without it, settings are drawn at random.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib.util import find_spec as find_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from torch_geometric.data import Data

from gumbel_mpnn.nn import models
from gumbel_mpnn.runs.fitting import Crew, Place
from gumbel_mpnn.runs.machines import LOCAL, Machines, crew_of
from gumbel_mpnn.runs.reader import DataReader, Transform
from gumbel_mpnn.runs.record import TRIALS
from gumbel_mpnn.runs.search_space import search_space
from gumbel_mpnn.runs.spec import RunSpec, Tables, Workload, of_model, splits_without_validation
from gumbel_mpnn.runs.trials import Search, Standing, Trial, ranked, train_trial
from gumbel_mpnn.runs.tuned import Tuning
from gumbel_mpnn.runs.workers import check_workers, interrupted_by_sigterm, start_processes
from gumbel_mpnn.settings.files import merge, read_settings_file
from gumbel_mpnn.training.device import available_bytes, pick_device
from gumbel_mpnn.training.metrics import check_metric, metric_of
from gumbel_mpnn.util.errors import DataWarning, UserError
from gumbel_mpnn.util.live_line import in_notebook, on_terminal

if TYPE_CHECKING:
    from gumbel_mpnn.runs.progress import StudyMonitor

DEFAULT_TRIALS = 20
WITHOUT_OPTUNA = (
    "Optuna is not installed: settings are drawn at random and no trial is pruned (pip install 'gumbel-mpnn[tune]')"
)


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
    on: str | Machines = LOCAL,
    device: str = "auto",
    memory: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Tuning:
    """Search for the settings of a model with the best mean validation value.

    Trials train all splits and seeds at once. With Optuna, trials that are not in the better half after an eighth, a
    quarter or half of the epochs are stopped. Test results are not used.

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
        workers: Number of processes that train at once.
        on: Where to train: `local`, `ray` or the address of a Ray cluster, or `gm.Machines` with its options.
        device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
        memory: Bytes that training may use; all free memory by default.
        seed: Seed of the search.
        progress: Whether to show progress on standard error; by default on a terminal and in a notebook.

    Returns:
        The trials, the best first: see `Tuning.best`, `Tuning.run`, `Tuning.save` and `Tuning.baseline`.
    """
    from gumbel_mpnn.runs.progress import StudyMonitor

    given, overrides = read_space(space), list(overrides)
    arguments: dict[str, Any] = {
        "splits": None if splits is None else list(splits),
        "seeds": seeds if isinstance(seeds, int) else list(seeds),
        "preset": preset,
        "settings": settings,
        "overrides": overrides,
        "transform": transform,
        "root": root,
    }
    spec = RunSpec.of(dataset, model, **arguments)
    temporary = TemporaryDirectory() if runs is None else None
    machines = Machines.of(on) if workers == 1 else replace(Machines.of(on), workers=workers)
    folder = str(temporary.name if temporary else runs)
    budget = Budget(trials, timeout, folder, storage, machines.workers, device, memory, seed)
    shown = on_terminal() or in_notebook() if progress is None else progress
    if not has_optuna():
        budget.check_without_optuna()
        warnings.warn(WITHOUT_OPTUNA, DataWarning, stacklevel=2)
    specs = [spec, *(baseline_specs([spec]) if baseline else [])]
    with closing(StudyMonitor(quiet=not shown)) as monitor:
        found = search_all(specs, given, budget, machines, monitor)
    first = found[0] if len(found) == 1 else replace(found[0], baseline=found[1])
    return replace(first, _temporary=temporary)


@dataclass(frozen=True)
class Budget:
    """What every model is given in a search, and where it is done."""

    trials: int
    timeout: float | None
    runs: str
    storage: str | None = None
    workers: int = 1
    device: str = "auto"
    memory: int | None = None
    seed: int = 0
    crew: Crew | None = None
    """The cluster that trains, while there is a connection."""
    reader: DataReader = field(default_factory=DataReader)

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UserError(f"trials must be 1 or more, but is {self.trials}")
        if self.timeout is not None and self.timeout <= 0:
            raise UserError(f"the time limit must be above 0 seconds, but is {self.timeout}")
        check_workers(self.workers)

    def check_without_optuna(self) -> None:
        """Raise a `UserError` for what a random search cannot do."""
        if self.workers > 1 or self.storage is not None:
            what = "several workers" if self.workers > 1 else "a storage"
            raise UserError(f"{what} can be used with Optuna only: pip install 'gumbel-mpnn[tune]'")

    def search(self, spec: RunSpec, given: Tables | None = None) -> Search:
        """The search for one model, in a given space or in its own. The time limit begins now."""
        workload = spec.read(self.reader)
        _check_validation(workload)
        space = search_space(spec, given, workload)
        search = Search(
            spec,
            space,
            self.trials,
            self.runs,
            self.seed,
            self.device,
            self.memory,
            runs_of_each=len(workload.replicas),
        )
        if has_optuna():
            from gumbel_mpnn.runs.study import JOURNAL

            storage = self.storage or str(Path(self.runs) / TRIALS / JOURNAL)
            search = replace(search, storage=storage, study=_study_name(search, workload))
        return replace(search, until=None if self.timeout is None else time.time() + self.timeout)


def has_optuna() -> bool:
    """Whether Optuna can be imported."""
    try:
        return find_module("optuna") is not None
    except ValueError:  # sys.modules["optuna"] is None
        return False


def read_space(space: Tables | str | Path | None) -> Tables | None:
    """Read a space of the user from tables or from a file; it must leave something to search."""
    from gumbel_mpnn.settings.spaces import Space

    if space is None:
        return None
    tables = merge(space if isinstance(space, Mapping) else read_settings_file(Path(space)))
    if not Space.of(tables).open:
        what = "the space" if isinstance(space, Mapping) else str(space)
        raise UserError(f"{what} contains nothing to search: give at least one setting a list of values or a range")
    return tables


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
    specs: Sequence[RunSpec], given: Tables | None, budget: Budget, machines: Machines, monitor: StudyMonitor
) -> list[Tuning]:
    """Search for the settings of every model with the same budget, in a given space or in their own."""
    names = [spec.settings.model for spec in specs]
    found = []
    with crew_of(machines, budget.runs, budget.device) as crew:
        budget = replace(budget, crew=crew)
        for spec in specs:
            own = None if given is None else shared(given, spec.settings.model, names)
            found.append(run_search(budget.search(spec, own), budget, monitor))
    return found


def run_search(search: Search, budget: Budget, monitor: StudyMonitor | None = None) -> Tuning:
    """Carry out a search, which may have been begun before, and return all its trials."""
    if not search.study:
        if monitor is not None:
            monitor.begin_search(search)
        return Tuning(search, tuple(ranked(_draw_at_random(search, budget, monitor))), "random")
    from gumbel_mpnn.runs.study import open_study, results, standing, work_on

    study, watch = open_study(search), None
    if monitor is not None:
        watch = monitor.standing
        monitor.begin_search(search, look=lambda: standing(study, search))
    if budget.crew is not None:
        from gumbel_mpnn.runs.study_on_cluster import search_on_cluster

        search_on_cluster(search, study, budget.crew, watch, budget.reader)
        return Tuning(search, tuple(ranked(results(study, search))), "optuna")
    count = max(1, min(budget.workers, search.wanted, os.cpu_count() or 1))
    part = search
    if count > 1:
        memory = available_bytes(pick_device(search.device)) if search.memory is None else search.memory
        part = replace(search, memory=memory // count)
    # SIGTERM interrupts as Ctrl-C does, so that the trial does not count as failed.
    with interrupted_by_sigterm(), start_processes(count, _help, part) as helpers:
        work_on(part, monitor, watch, budget.reader)
        for helper in helpers:
            helper.join()
    if count > 1:  # the trial of a helper that was killed meanwhile
        work_on(search, monitor, watch, budget.reader)
    return Tuning(search, tuple(ranked(results(study, search))), "optuna")


def _draw_at_random(search: Search, budget: Budget, monitor: StudyMonitor | None) -> list[Trial]:
    place = Place(search.runs, TRIALS, search.device, search.memory, monitor, reader=budget.reader).on(budget.crew)
    done: list[Trial] = []
    for number, chosen in enumerate(search.planned()):
        if search.is_over:
            break
        done.append(train_trial(search, number, chosen, place))
        if monitor is not None:
            best = ranked(done)[0]
            monitor.standing(Standing(len(done), search.wanted, best if best.is_finished else None, done[-1]))
    return done


def _help(_: int, search: Search) -> None:
    from gumbel_mpnn.runs.study import work_on

    work_on(search)


def _check_validation(workload: Workload) -> None:
    """Raise a `UserError` if settings cannot be compared on validation."""
    if splits_without_validation(workload.data, workload.replicas):
        raise UserError("a search compares settings on validation nodes: give the graph some in every split")
    metric = metric_of(workload.data, workload.settings.data)
    check_metric(metric, workload.data, sorted({replica.split for replica in workload.replicas}))


def _study_name(search: Search, workload: Workload) -> str:
    """Name of the study: the same for the same data, settings, runs, space and seed."""
    settings = workload.settings
    identity = [
        settings.fingerprint(workload.data_hash),
        [str(replica) for replica in workload.replicas],
        search.space.to_dict(),
        search.seed,
    ]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
    return f"{settings.dataset}-{settings.model}-{digest}"
