"""`fit`: any model on any data, every split and seed of it, nothing done twice."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataWarning, DivergedError, UserError
from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.data.names import node_ids_of
from gumbel_mpnn.runs.outcome_record import record_of
from gumbel_mpnn.runs.reader import DataReader, Transform
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.runs.wanted import Wanted
from gumbel_mpnn.runs.work_queue import BusyError, Claims
from gumbel_mpnn.training import Task, pick_device, prepare, train
from gumbel_mpnn.training.free_memory import available_bytes
from gumbel_mpnn.training.memory import bytes_per_replica, group_size, group_size_of_a_cpu


class Monitor(Protocol):
    """Told how a setting's runs come along."""

    def prepare(self, done: int, total: int) -> None:
        """The graph of `sdrf` is made, before training begins: so many steps are done."""

    def begin(self, settings: Settings, replicas: int, finished: int, groups: int, bytes_needed: int) -> None:
        """Training of one setting begins; `finished` of its replicas were found done."""

    def group(self, replicas: int, epochs: int) -> None:
        """The next group of replicas begins."""

    def progress(self, epoch: int, best: float) -> None:
        """The group has done `epoch` epochs; `best` is its mean best validation value."""

    def wait(self) -> None:
        """Another process trains what is missing; its end is waited for."""

    def end(self, run: Run) -> None:
        """All replicas are done."""


def fit(
    dataset: str | Data,
    model: str,
    *,
    splits: Iterable[int] | None = None,
    seeds: int | Iterable[int] = 1,
    preset: str | Path | None = "tuned",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Iterable[str] = (),
    runs: str | Path | None = None,
    experiment: str = "train",
    transform: Transform | None = None,
    root: str | Path | None = None,
    device: str = "auto",
    memory: int | None = None,
    monitor: Monitor | None = None,
    wait: bool = True,
    models: bool = False,
    reader: DataReader | None = None,
) -> Run:
    """Train a model on some splits and seeds of a data set: as many at once as fit in memory, on a CPU as are fast.

    Args:
        dataset: Name of a data set, or a `Data` with `x`, `y` and masks [N] or [N, S]. A `candidate_index` that it
            brings is what a model that rewires chooses from, unless `rewiring.candidates` is set to something else.
        model: Name of a model.
        splits: Which splits; all by default.
        seeds: How many seeds for each split, or which.
        preset: A family of presets (`tuned`, `paper`), a TOML file, or None for plain defaults.
        settings: Tables `data`, `model`, `train` laid over the preset.
        overrides: The same as `["model.dropout=0.7", ...]`, laid over both.
        runs: Folder that keeps the runs; what is finished there is not done again, nor what diverged there (a
            `DivergedError` says which file to delete to try it again); what was interrupted goes on.
            None keeps them in a temporary folder as long as the result lives.
        experiment: Folder within `runs`.
        transform: Applied to the data once they are read and split; what it gives is trained on.
        root: Where the data sets' files lie.
        device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
        memory: Bytes that training may take; what is free by default.
        monitor: Told how it goes.
        wait: Whether to wait for runs that another process is training; a `BusyError` otherwise.
        models: Whether the trained models have to be there too, and not only the records: runs whose models were
            deleted are done again, and their records replaced.
        reader: Reads the data set; given to calls on the same one that follow each other, it reads it once.
    """
    where = pick_device(device)
    wanted = Wanted.of(
        dataset,
        model,
        splits=splits,
        seeds=seeds,
        preset=preset,
        settings=settings,
        overrides=overrides,
        transform=transform,
        root=root,
        reader=reader,
    )
    keep = tempfile.TemporaryDirectory(prefix="gumbel-mpnn-") if runs is None else None
    folder = wanted.folder(keep.name if keep else runs or "", experiment, models)
    with disk_errors_as_sentences(folder.path):
        missing = [replica for replica in wanted.replicas if not folder.is_finished(replica)]
        folder.check_diverged(missing)
        if missing and not wait and Claims(folder).all_held(missing):
            raise _busy(wanted.settings)  # before anything is made that would be of no use
    _warn_of_runs_without_models(wanted, missing, folder)
    task = _make_task(wanted, where, monitor) if missing else None
    with disk_errors_as_sentences(folder.path):
        if task is not None:
            _train_missing(task, wanted, missing, folder, memory, monitor, wait)
        elif monitor is not None:
            monitor.begin(wanted.settings, len(wanted.replicas), len(wanted.replicas), 0, 0)
        Claims(folder).tidy()
    run = wanted.run(folder, keep)
    if monitor is not None:
        monitor.end(run)
    return run


def _warn_of_runs_without_models(wanted: Wanted, missing: Sequence[Replica], folder: SettingFolder) -> None:
    """Warn that finished runs are done again, and their records replaced."""
    again = sum(map(folder.is_recorded, missing))
    if again:
        warnings.warn(
            f"the trained model of {again} finished run{'s' * (again > 1)} of {wanted.settings.model} on"
            f" {wanted.settings.dataset} is gone and is needed: done again, with a new record",
            DataWarning,
            stacklevel=3,
        )


def _make_task(wanted: Wanted, device: torch.device, monitor: Monitor | None) -> Task:
    """What to train on, made only where something is missing: candidates and SDRF take their time."""
    prepared = prepare(wanted.data, wanted.settings, None if monitor is None else monitor.prepare)
    return Task.of(prepared, wanted.settings.data, device, candidates=wanted.settings.rewiring is not None)


def _train_missing(
    task: Task,
    wanted: Wanted,
    missing: Sequence[Replica],
    folder: SettingFolder,
    memory: int | None,
    monitor: Monitor | None,
    wait: bool,
) -> None:
    settings, device = wanted.settings, task.y.device
    each = bytes_per_replica(settings, task)
    size = group_size(each, available_bytes(device) if memory is None else memory)
    if device.type == "cpu":
        size = min(size, group_size_of_a_cpu(settings, task))
    claims = Claims(folder)
    groups = claims.plan(missing, size).free
    if monitor is not None:
        total, largest = len(wanted.replicas), max(map(len, groups), default=0)
        monitor.begin(settings, total, total - len(missing), len(groups), largest * each)
    while any(not folder.is_finished(replica) for replica in missing):
        claim = claims.next(missing, size)
        if claim is None:
            _wait_for_others(claims, missing, size, settings, wait, monitor)
            continue
        with claim:
            group = claim.group
            if monitor is not None:
                monitor.group(len(group), settings.train.epochs)
            watch = monitor.progress if monitor is not None else None
            try:
                outcomes = train(task, settings, group, checkpoint=folder.checkpoint(group), watch=watch)
            except torch.OutOfMemoryError:
                if len(group) == 1:
                    raise UserError(
                        f"one run of {settings.model} on {settings.dataset} does not fit into the memory of {device}:"
                        " try a smaller model.hidden_channels or model.num_layers, or --device cpu"
                    ) from None
                size = -(-len(group) // 2)
            except DivergedError as error:
                claim.give_up(error.runs)
                raise
            else:
                for outcome in outcomes:
                    if not folder.is_finished(outcome.replica):
                        record = record_of(outcome, settings, wanted.data_hash, task.metric, device)
                        folder.write(outcome, record, task.graph, node_ids_of(wanted.data))
            claim.close()


def _wait_for_others(
    claims: Claims,
    missing: Sequence[Replica],
    size: int,
    settings: Settings,
    wait: bool,
    monitor: Monitor | None,
) -> None:
    if not wait:
        raise _busy(settings)
    if monitor is not None:
        monitor.wait()
    claims.wait(missing, size)


def _busy(settings: Settings) -> BusyError:
    return BusyError(f"another process is training {settings.model} on {settings.dataset}: wait until it has ended")


@contextmanager
def disk_errors_as_sentences(folder: Path) -> Iterator[None]:
    """What the disk refuses is told in one sentence."""
    try:
        yield
    except BrokenPipeError:  # nobody reads what a monitor says
        raise
    except OSError as error:
        raise UserError(
            f"cannot write the runs in {error.filename or folder}: {error.strerror or error}; what is finished is kept,"
            " and the same command goes on from there once that is mended"
        ) from error
