"""`fit`: any model on any data, every split and seed of it, nothing done twice."""

from __future__ import annotations

import copy
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from operator import index
from pathlib import Path
from typing import Any, Protocol

import torch
from torch_geometric.data import Data

from gumbel_mpnn.config import DataSettings, Settings, constant_temperature, resolve
from gumbel_mpnn.data import add_splits, check, get_spec, load
from gumbel_mpnn.errors import DataError, UserError, did_you_mean
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.presets import read_preset
from gumbel_mpnn.rewiring import OnBackbone
from gumbel_mpnn.runs.claims import BusyError, Claims
from gumbel_mpnn.runs.outcome_record import record_of
from gumbel_mpnn.runs.own_candidates import asks_for_candidates, settle_candidates
from gumbel_mpnn.runs.run import Run, with_candidates
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.settings_tables import merge, parse_overrides, read_settings_file
from gumbel_mpnn.training import Replica, Task, data_hash, models, pick_device, prepare, train
from gumbel_mpnn.training.memory import available_bytes, bytes_per_replica, group_size

OWN_PROTOCOL = "random-60-20-20"
"""How a graph that comes without masks is split."""


Transform = Callable[[Data], Data]


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
) -> Run:
    """Train a model on some splits and seeds of a data set, all of them at once where they fit in memory.

    Args:
        dataset: Name of a data set, or a `Data` with `x`, `y` and masks [N] or [N, S]. A `candidate_index` that it
            brings is what a model that rewires chooses from, unless `rewiring.candidates` is set to something else.
        model: Name of a model.
        splits: Which splits; all by default.
        seeds: How many seeds for each split, or which.
        preset: A family of presets (`tuned`, `paper`), a TOML file, or None for plain defaults.
        settings: Tables `data`, `model`, `train` laid over the preset.
        overrides: The same as `["model.dropout=0.7", ...]`, laid over both.
        runs: Folder that keeps the runs; what is finished there is not done again, what was interrupted goes on.
            None keeps them in a temporary folder as long as the result lives.
        experiment: Folder within `runs`.
        transform: Applied to the data once they are read and split; what it gives is trained on.
        root: Where the data sets' files lie.
        device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
        memory: Bytes that training may take; what is free by default.
        monitor: Told how it goes.
        wait: Whether to wait for runs that another process is training; a `BusyError` otherwise.
    """
    overrides = tuple(overrides)
    resolved = make_settings(dataset, model, preset=preset, settings=settings, overrides=overrides)
    data = read_data(dataset, resolved.data, root)
    if transform is not None:
        data = transform(data)
    data, resolved = settle_candidates(data, resolved, asks_for_candidates(preset, settings, overrides))
    where = pick_device(device)
    rewires = resolved.rewiring is not None
    prepared = prepare(data, resolved, None if monitor is None else monitor.prepare)
    prepared = with_candidates(prepared, resolved.rewiring)
    task = Task.of(prepared, resolved.data, where, candidates=rewires)
    replicas = replicas_of(data, splits, seeds)
    keep = tempfile.TemporaryDirectory(prefix="gumbel-mpnn-") if runs is None else None
    base = Path(keep.name) if keep else Path(runs or "")
    digest = data_hash(data)
    folder = SettingFolder.of(base, experiment, resolved, digest)
    with _told(folder.path):
        _train_missing(task, resolved, replicas, folder, digest, data.get("node_ids"), memory, monitor, wait)
    records = tuple(folder.record(replica) for replica in replicas)
    run = Run(resolved, task.metric, records, data, folder, keep)
    if monitor is not None:
        monitor.end(run)
    return run


def make_settings(
    dataset: str | Data,
    model: str,
    *,
    preset: str | Path | None = "tuned",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Iterable[str] = (),
) -> Settings:
    """Complete settings from a preset and what is laid over it."""
    if not isinstance(dataset, str | Data):
        raise UserError(f"a data set is a name or a Data, not {dataset!r}")
    name = get_spec(dataset).name if isinstance(dataset, str) else _folder_name(dataset.get("name"))
    if not isinstance(model, str):
        raise UserError(f"a model to fit is a name, as 'gcn', not {model!r}: {did_you_mean('', models)}")
    model = models.canonical(model)
    changes = merge(settings, parse_overrides(overrides))
    if "rewiring" in changes:  # else the preset's tau_end would go with a tau that is laid over it
        changes["rewiring"] = constant_temperature(changes["rewiring"])
    base: Mapping[str, Any] | None = None
    if isinstance(preset, Path) or (preset or "").endswith(".toml"):
        base = read_settings_file(Path(preset or ""))
    elif preset is not None:
        base = _read_preset(str(preset), name, model, changes)
    return resolve(name, model, merge(base, changes), models.complete, rewires=models[model].rewires)


def _read_preset(family: str, dataset: str, model: str, changes: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The preset of a model; a backbone on another graph that has none of its own takes the backbone's."""
    tables, kind = read_preset(family, dataset, model), models[model]
    if tables is None and issubclass(kind, OnBackbone):
        backbone = changes.get("model", {}).get("backbone", kind.default_backbone)
        tables = read_preset(family, dataset, backbones.canonical(str(backbone)))
    return tables


def _folder_name(name: object) -> str:
    """The name of a person's graph as it may stand in a path."""
    return re.sub(r"[^\w.-]+", "-", str(name or "")).strip(".-") or "own"


def read_data(dataset: str | Data, settings: DataSettings, root: str | Path | None) -> Data:
    """The data with masks: a data set's own or, for a person's graph that has none, those of a random protocol.

    A data set is read with the direction of its edges where it has one and the settings want it.
    """
    protocol = settings.protocol
    if isinstance(dataset, str):
        directed = not settings.undirected and get_spec(dataset).has_directions
        return load(dataset, protocol=protocol or None, root=root, directed=directed)
    if dataset.get("y") is None:
        raise DataError("this graph has no labels: give it data.y")
    if isinstance(dataset.x, torch.Tensor) and dataset.x.layout != torch.strided:
        dataset = copy.copy(dataset)
        dataset.x = dataset.x.to_dense()
    if dataset.get("train_mask") is None:
        check(dataset)
    if protocol or dataset.get("train_mask") is None:
        dataset = add_splits(dataset, protocol or OWN_PROTOCOL)
    check(dataset)
    for name in ("validation", "test"):
        empty = ~dataset["val_mask" if name == "validation" else "test_mask"].any(0)
        if empty.any():
            raise DataError(f"the {name} mask is empty: a model is chosen on validation and judged on test nodes")
    return dataset


def _train_missing(
    task: Task,
    settings: Settings,
    replicas: Sequence[Replica],
    folder: SettingFolder,
    digest: str,
    node_ids: Sequence[str] | None,
    memory: int | None,
    monitor: Monitor | None,
    wait: bool,
) -> None:
    device = task.y.device
    each = bytes_per_replica(settings, task)
    size = group_size(each, available_bytes(device) if memory is None else memory)
    missing = [replica for replica in replicas if not folder.is_finished(replica)]
    claims = Claims(folder)
    groups = claims.plan(missing, size).free if missing else []
    if monitor is not None:
        largest = max(map(len, groups), default=0)
        monitor.begin(settings, len(replicas), len(replicas) - len(missing), len(groups), largest * each)
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
            else:
                for outcome in outcomes:
                    if not folder.is_finished(outcome.replica):
                        record = record_of(outcome, settings, digest, task.metric, device)
                        folder.write(outcome, record, task.graph, node_ids)
            claim.close()
    claims.tidy()


def _wait_for_others(
    claims: Claims,
    missing: Sequence[Replica],
    size: int,
    settings: Settings,
    wait: bool,
    monitor: Monitor | None,
) -> None:
    if not wait:
        raise BusyError(f"another process is training {settings.model} on {settings.dataset}: wait until it has ended")
    if monitor is not None:
        monitor.wait()
    claims.wait(missing, size)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
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


def replicas_of(data: Data, splits: Iterable[int] | None, seeds: int | Iterable[int]) -> list[Replica]:
    """Every seed of every split, all splits of `data` by default."""
    num_splits = 1 if data.train_mask.dim() == 1 else int(data.train_mask.shape[1])
    chosen = _whole_numbers("splits", range(num_splits) if splits is None else splits)
    for split in chosen:
        if not 0 <= split < num_splits:
            raise UserError(f"there is no split {split}: this data set has splits 0 to {num_splits - 1}")
    each = _whole_numbers("seeds", range(int(seeds)) if isinstance(seeds, Integral) else seeds)
    if not chosen or not each:
        raise UserError("there is nothing to train: give at least one split and one seed")
    return [Replica(split, seed) for split in dict.fromkeys(chosen) for seed in dict.fromkeys(each)]


def _whole_numbers(name: str, values: Any) -> list[int]:
    try:
        return [index(value) for value in values]
    except TypeError:
        raise UserError(f"{name} are a list of whole numbers, as [0] or range(3), not {values!r}") from None
