"""Training of the runs that a spec describes, without repeating finished ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from gumbel_mpnn.runs.reader import DataReader
from gumbel_mpnn.runs.record import FINGERPRINT
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.spec import RunSpec, Workload
from gumbel_mpnn.runs.store import SettingFolder, record_of
from gumbel_mpnn.runs.training_data import DataFacts, TrainingData, has_facts, write_facts
from gumbel_mpnn.runs.work_queue import BusyError, WorkQueue
from gumbel_mpnn.settings import Replica, Settings
from gumbel_mpnn.training import Task, pick_device, prepare, train
from gumbel_mpnn.training.device import plan_groups, too_large
from gumbel_mpnn.training.loop import Pruner
from gumbel_mpnn.training.metrics import check_metric, metric_of
from gumbel_mpnn.util.errors import (
    DataWarning,
    DivergedError,
    StoppedError,
    UserError,
    is_out_of_memory,
)


@dataclass(frozen=True)
class Step:
    """A step of `auto`: the runs of one rung in one round."""

    rung: str
    round: int
    """Number of the round, from 1."""
    place: int
    """Place of the rung among those of the round, from 1."""
    rungs: int
    before: float
    """Share of the whole work that is done when the step begins. The work ahead is estimated from above."""
    share: float
    """Share of the work that this step takes."""
    processes: int = 1
    """Number of processes that share the work."""


class Monitor(Protocol):
    """Called while the runs of a setting are trained."""

    def prepare(self, done: int, total: int) -> None:
        """Report the steps done while SDRF rewires the graph, before training begins."""

    def begin(self, settings: Settings, replicas: int, finished: int, groups: int, bytes_needed: int) -> None:
        """Training of one setting begins; `finished` of its replicas were finished before."""

    def group(self, replicas: int, epochs: int) -> None:
        """The next group of replicas begins."""

    def resume(self, epoch: int) -> None:
        """The group continues from a checkpoint of an earlier process, which did `epoch` epochs."""

    def progress(self, epoch: int, best: float) -> None:
        """The group has done `epoch` epochs; `best` is its mean best validation value."""

    def rung(self, step: Step) -> None:
        """`auto` begins a step: the runs of one rung in one round."""

    def wait(self) -> None:
        """Another process trains the missing runs, and this process waits for it."""

    def end(self, run: Run) -> None:
        """All replicas are finished."""


class Crew(Protocol):
    """Trains runs in other processes, such as those of a cluster."""

    slots: int
    """Number of tasks that can run at once."""

    @property
    def shares_disk(self) -> bool:
        """Whether tasks can write to the folder of runs."""

    def call(self, what: str, work: Callable[[int], None], device: str, times: int, watch: Callable[[], None]) -> None:
        """Call `work` with the bytes that it may use in several tasks, and `watch` from time to time until they end."""

    def train(self, workload: Workload, missing: Sequence[Replica], folder: SettingFolder, place: Place) -> None:
        """Train the missing replicas and report it to the monitor of `place`; their runs are in `folder` afterwards."""

    def branch(self) -> Crew:
        """Return the same crew, whose work can be stopped separately."""

    def stop(self) -> None:
        """Let `train` end in all threads."""


@dataclass(frozen=True)
class Place:
    """Where runs are saved and how they are trained; none of this changes their results."""

    runs: str | Path | None = None
    """Folder of the runs; None for a temporary folder that is deleted with the result."""
    experiment: str = "train"
    """Folder within `runs`."""
    device: str = "auto"
    """`cpu`, `cuda`, or `auto` for a GPU if there is one."""
    memory: int | None = None
    """Bytes that training may use; all free memory by default."""
    monitor: Monitor | None = None
    wait: bool = True
    """Whether to wait for runs that another process is training; otherwise a `BusyError` is raised."""
    models: bool = False
    """Whether trained models are needed besides records; runs whose models were deleted are trained again."""
    reader: DataReader | None = None
    """Reads the data; share it between calls on the same data set to read this only once."""
    parts: int = 1
    """Number of processes that share the runs: no group is larger than a part of them."""
    crew: Crew | None = None
    """Trains the runs in place of this process."""
    pruner: Pruner | None = None
    """Called at some epochs of every group; it may end training with a `StoppedError`, after which nothing is left of
    the group."""

    def on(self, crew: Crew | None, settings: int = 1) -> Place:
        """Let a crew train, which is shared by as many settings at once."""
        return self if crew is None else replace(self, crew=crew, parts=max(1, crew.slots // max(1, settings)))

    def folder(self, workload: Workload, runs: str | Path) -> SettingFolder:
        """Folder of the setting under `runs`."""
        check_experiment(self.experiment)
        return SettingFolder.of(Path(runs), self.experiment, workload.settings, workload.data_hash, self.models)


def check_experiment(name: str) -> None:
    """Raise a `UserError` if an experiment of this name would not be found among the runs."""
    if not name or Path(name).name != name or not name.isprintable():
        raise UserError(f"experiment must be the name of a single folder, but is {name!r}")
    if name.startswith(".") or FINGERPRINT.fullmatch(name):
        raise UserError(
            f"experiment must not be {name!r}: folders that begin with a point are hidden, and 16 hex digits are the"
            " name of a setting"
        )


def fit_spec(spec: RunSpec, place: Place) -> Run:
    """Train the runs of `spec` that are missing in `place`; returns all of them."""
    monitor = place.monitor
    if place.crew is None:
        pick_device(place.device)  # an invalid name is reported before the data is read
    workload = spec.read(place.reader)
    temporary = TemporaryDirectory() if place.runs is None else None
    folder = place.folder(workload, temporary.name if temporary else place.runs or "")
    with disk_errors_as_sentences(folder.path):
        missing = [replica for replica in workload.replicas if not folder.is_finished(replica)]
        folder.check_diverged(missing)
        if missing and not place.wait and WorkQueue(folder).all_held(missing):
            raise _busy(workload.settings)  # before the data is prepared
    _warn_of_runs_without_models(workload, missing, folder)
    if missing:
        metric = metric_of(workload.data, workload.settings.data)
        check_metric(metric, workload.data, sorted({replica.split for replica in missing}))
    task = _make_task(workload, place) if missing and place.crew is None else None
    with disk_errors_as_sentences(folder.path):
        if task is not None:
            _train_missing(task, workload, missing, folder, place)
        elif missing and place.crew is not None:
            place.crew.train(workload, missing, folder, place)
        else:
            with suppress(OSError):  # the folder may be read-only
                write_facts_of(workload, WorkQueue(folder))
            if monitor is not None:
                monitor.begin(workload.settings, len(workload.replicas), len(workload.replicas), 0, 0)
        WorkQueue(folder).tidy()
    run = _finished(workload, folder, temporary)
    if monitor is not None:
        monitor.end(run)
    return run


def find_spec(spec: RunSpec, place: Place) -> Run | None:
    """Find the runs of `spec` without training; returns None if some are missing."""
    if place.runs is None:
        return None
    workload = spec.read(place.reader)
    folder = place.folder(workload, place.runs)
    return _finished(workload, folder) if all(map(folder.is_finished, workload.replicas)) else None


def _finished(workload: Workload, folder: SettingFolder, temporary: object = None) -> Run:
    """Read the finished runs; `temporary` is deleted with the result."""
    records = tuple(folder.record(replica) for replica in workload.replicas)
    trained_on = TrainingData(workload.data)
    return Run(workload.settings, records[0].metric, records, trained_on, folder, _temporary=temporary)


def _warn_of_runs_without_models(workload: Workload, missing: Sequence[Replica], folder: SettingFolder) -> None:
    """Warn that finished runs are trained again and their records are replaced."""
    again = sum(map(folder.is_recorded, missing))
    if again:
        warnings.warn(
            f"the trained model of {again} finished run{'s' * (again > 1)} of {workload.settings.model} on"
            f" {workload.settings.dataset} is missing but needed: trained again, with a new record",
            DataWarning,
            stacklevel=3,
        )


def train_here(workload: Workload, folder: SettingFolder, place: Place) -> None:
    """Train the missing replicas of `workload`, whose data and settings were checked before, in this process."""
    missing = [replica for replica in workload.replicas if not folder.is_finished(replica)]
    if missing:
        task = _make_task(workload, place)
        _train_missing(task, workload, missing, folder, place)


def _make_task(workload: Workload, place: Place) -> Task:
    """Prepare the data for training, only if runs are missing, since candidates and SDRF take time."""
    settings, monitor, device = workload.settings, place.monitor, pick_device(place.device)
    nodes, parts = int(workload.data.num_nodes or 0), settings.train.partitions
    if parts > nodes:
        raise UserError(f"train.partitions={parts}, but this graph has {nodes} nodes: make fewer parts")
    prepared = prepare(workload.data, settings, None if monitor is None else monitor.prepare)
    return Task.for_model(prepared, settings, device)


def _train_missing(
    task: Task, workload: Workload, missing: Sequence[Replica], folder: SettingFolder, place: Place
) -> None:
    settings, device, monitor = workload.settings, task.device, place.monitor
    size, each = plan_groups(settings, task, place.memory)
    size = min(size, share_of(missing, place.parts))
    queue = WorkQueue(folder)
    groups = queue.plan(missing, size).free
    if monitor is not None:
        total, largest = len(workload.replicas), max(map(len, groups), default=0)
        monitor.begin(settings, total, total - len(missing), len(groups), largest * each)
    while any(not folder.is_finished(replica) for replica in missing):
        claim = queue.next(missing, size)
        if claim is None:
            wait_for_others(queue, missing, size, settings, place)
            continue
        with claim:
            group = claim.group
            if monitor is not None:
                monitor.group(len(group), settings.train.epochs)
            watch = monitor.progress if monitor is not None else None
            resumed = getattr(monitor, "resume", None)  # a monitor of the user may lack it
            try:
                outcomes = train(
                    task,
                    settings,
                    group,
                    checkpoint=folder.checkpoint(group),
                    watch=watch,
                    resumed=resumed,
                    pruner=place.pruner,
                )
            except StoppedError:
                claim.close()
                raise
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if len(group) == 1:
                    raise too_large(settings, device) from None
                size = -(-len(group) // 2)
            except DivergedError as error:
                claim.give_up(error.runs)
                raise
            else:
                write_facts_of(workload, queue)
                for outcome in outcomes:
                    if not folder.is_finished(outcome.replica):
                        record = record_of(outcome, settings, workload.data_hash, task.metric, device)
                        folder.write(outcome, record, task.graph, workload.data.get("node_ids"))
            claim.close()


def share_of(missing: Sequence[Replica], parts: int) -> int:
    """Largest size of a group if the missing replicas are divided into as many parts."""
    return -(-len(missing) // parts)


def write_facts_of(workload: Workload, queue: WorkQueue) -> None:
    """Write what a trained model must know about its data, unless it is there."""
    facts, folder = DataFacts.of(workload.data), queue.folder.path
    if not has_facts(folder, facts):
        with queue.alone():
            write_facts(folder, facts)


def wait_for_others(queue: WorkQueue, missing: Sequence[Replica], size: int, settings: Settings, place: Place) -> None:
    """Wait for processes that train all missing replicas; raises a `BusyError` if `place` says not to wait."""
    if not place.wait:
        raise _busy(settings)
    if place.monitor is not None:
        place.monitor.wait()
    queue.wait(missing, size)


def _busy(settings: Settings) -> BusyError:
    return BusyError(f"another process is training {settings.model} on {settings.dataset}: wait until it has ended")


@contextmanager
def disk_errors_as_sentences(folder: Path) -> Iterator[None]:
    """Raise errors of the disk as a `UserError`."""
    try:
        yield
    except BrokenPipeError:  # the reader of the output has ended, which is not an error of the disk
        raise
    except OSError as error:
        raise UserError(
            f"cannot write the runs in {error.filename or folder}: {error.strerror or error}; finished runs are safe:"
            " solve the problem and repeat the command to continue"
        ) from error
