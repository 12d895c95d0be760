"""`fit`: the entry to training, for a single model, for `auto`, and on every labelled node."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch_geometric.data import Data

from gumbel_mpnn.data import get_spec
from gumbel_mpnn.data.splits import ALL
from gumbel_mpnn.nn import models as registered
from gumbel_mpnn.runs.auto import AutoSpec, fit_auto
from gumbel_mpnn.runs.progress import Monitor, is_watched
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.session import Session, open_workers
from gumbel_mpnn.runs.spec import RunSpec, Transform
from gumbel_mpnn.runs.store import Record
from gumbel_mpnn.runs.workers import LOCAL
from gumbel_mpnn.settings import Settings
from gumbel_mpnn.settings.files import is_settings_file, merge, parse_overrides, tuned_model
from gumbel_mpnn.settings.presets import AUTO, list_presets
from gumbel_mpnn.settings.registry import load_plugins, normal_name
from gumbel_mpnn.training import pick_device
from gumbel_mpnn.util.errors import DataWarning, UserError, unknown_name

AnySpec = RunSpec | AutoSpec
DEFAULT_FAMILY = "tuned"
WITH_PRESETS = "gcn"
"""Default model on data sets that have presets."""
MOST_EDGES = 10**6
"""With more edges, every process would need much memory for a graph of its own."""


def fit(
    dataset: str | Data,
    model: str | None = None,
    *,
    splits: Iterable[int] | None = None,
    seeds: int | Iterable[int] = 1,
    preset: str | Path | None = DEFAULT_FAMILY,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Iterable[str] = (),
    transform: Transform | None = None,
    root: str | Path | None = None,
    runs: str | Path | None = None,
    experiment: str = "train",
    device: str = "auto",
    memory: int | None = None,
    workers: int = 1,
    on: str = LOCAL,
    progress: bool | None = None,
) -> Run:
    """Train a model on splits and seeds of a data set, as many at once as fit into memory.

    Args:
        dataset: Name of a data set, or a `Data` with `x`, `y` and masks [N] or [N, S]. If it has a `candidate_index`
            and `rewiring.candidates` is not set, these are the candidates of rewiring.
        model: Name of a model, or `auto`, which trains plain and rewired models and chooses one on validation (see
            `Run.choice`). `model.wary=true` makes it choose with hostile edges at validation nodes, for nodes that
            someone may have attacked; with `model.learned=frozen` or `random` it is a control, in which no edge is
            learned. By default `auto`, or `gcn` if a preset is given or the data set has presets.
        splits: Splits to train on; all by default.
        seeds: Number of seeds per split, or the seeds themselves.
        preset: Family of presets (`tuned`, `paper`), a TOML file, or None for the defaults. `auto` has its own settings
            and takes no preset.
        settings: Tables `data`, `model`, `train` and `rewiring`, which override the preset.
        overrides: Settings such as `["model.dropout=0.7", ...]`, which override both.
        transform: Applied to the data after reading and splitting.
        root: Folder with the files of the data sets.
        runs: Folder of the runs. Finished runs are not trained again, and interrupted ones are continued. None for a
            temporary folder that is deleted with the result.
        experiment: Folder within `runs`.
        device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
        memory: Bytes that training may use; all free memory by default.
        workers: Number of processes that train at once. A script that uses several must call `fit` inside
            `if __name__ == "__main__":`.
        on: `local`, or a Ray cluster in place of the workers: `ray` for that of `RAY_ADDRESS` or one that is started
            here, or its address `ray://HOST:PORT`.
        progress: Whether to show progress on standard error; by default on a terminal and in a notebook.

    Returns:
        The finished runs.
    """
    spec = describe(
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
    shown = is_watched() if progress is None else progress
    temporary = TemporaryDirectory() if runs is None else None
    run = train_spec(spec, temporary.name if temporary else runs or "", experiment, device, memory, workers, on, shown)
    return replace(run, _temporary=temporary)


def describe(
    dataset: str | Data, model: str | None = None, *, preset: str | Path | None = DEFAULT_FAMILY, **arguments: Any
) -> AnySpec:
    """Describe the runs of `fit` with the same arguments; warn if the family of presets has none for them."""
    model = check_model(default_model(dataset, preset) if model is None else model)
    if isinstance(model, str) and normal_name(model) == AUTO:
        if preset not in (None, DEFAULT_FAMILY):
            what = f"the settings file {preset}" if is_settings_file(preset) else f"the preset {preset}"
            raise UserError(f"model 'auto' has its own settings and cannot use {what}: name another model")
        return AutoSpec.of(dataset, **arguments)
    spec = RunSpec.of(dataset, model, preset=preset, **arguments)
    may_have = isinstance(dataset, str) or preset != DEFAULT_FAMILY
    if spec.preset is None and preset is not None and may_have and not is_settings_file(preset):
        what = f"there is no {preset} preset for {spec.settings.model} on {spec.settings.dataset}"
        warnings.warn(f"{what}: the default settings are used", DataWarning, stacklevel=3)
    return spec


def check_model(model: str) -> str:
    """Return the name of a model; raises a `UserError` if there is none of this name."""
    load_plugins()
    if isinstance(model, str) and model not in registered and normal_name(model) != AUTO:
        raise unknown_name("model", model, [*registered, AUTO])
    return model


def train_spec(
    spec: AnySpec,
    runs: str | Path,
    experiment: str = "train",
    device: str = "auto",
    memory: int | None = None,
    workers: int | None = None,
    on: str = LOCAL,
    progress: bool = False,
) -> Run:
    """Train the runs of `spec` that are missing; returns all of them, or those that `auto` chose.

    The other arguments are those of `fit`. By default, there is one process, or for `auto` on a CPU one for each of
    torch's threads: its rungs are then trained side by side, which takes less time than one after another.
    """
    if workers is None:
        workers = default_workers(spec, device) if on == LOCAL else 1
    with closing(Monitor(quiet=not progress)) as monitor, open_workers(workers, on, device) as several:
        session = Session(runs, experiment, device, memory, monitor, several)
        return fit_auto(spec, session) if isinstance(spec, AutoSpec) else session.fit(spec)


def default_model(dataset: object, preset: str | Path | None = DEFAULT_FAMILY) -> str:
    """Model that is trained if none is named: `auto`, or a GCN if a preset is asked for or the data set has one.

    A settings file that `tune` wrote names its model.
    """
    if is_settings_file(preset) and Path(preset or "").is_file():
        return str(tuned_model(Path(preset or "")) or WITH_PRESETS)
    if preset not in (None, DEFAULT_FAMILY):
        return WITH_PRESETS
    if preset is None or not isinstance(dataset, str):
        return AUTO
    return WITH_PRESETS if (DEFAULT_FAMILY, get_spec(dataset).name, WITH_PRESETS) in list_presets() else AUTO


def default_workers(spec: AnySpec, device: str) -> int:
    """Number of processes if the user names none."""
    if not isinstance(spec, AutoSpec) or pick_device(device).type != "cpu":
        return 1
    dataset = spec.plainest.dataset
    edges = get_spec(dataset).num_edges if isinstance(dataset, str) else dataset.num_edges
    return 1 if edges > MOST_EDGES else min(torch.get_num_threads(), len(spec.rungs) // 2)


def final_spec(
    dataset: str | Data,
    records: Sequence[Record],
    *,
    seeds: int | Iterable[int] = 1,
    overrides: Iterable[str] = (),
    root: str | Path | None = None,
) -> RunSpec:
    """Describe runs on all labelled nodes that are like the finished runs of one setting, such as `run.records`.

    They train as many epochs as the median of the best epochs of these runs, and keep the model of the last.
    """
    if len({record.fingerprint for record in records}) != 1:
        raise UserError("the number of epochs is taken from finished runs of one setting: give the folder of one")
    settings = Settings.from_dict(records[0].settings)
    epochs = max(1, round(median(record.best_epoch for record in records)))
    train = {"select": "last", "patience": 0, "epochs": epochs}
    last: dict[str, dict[str, Any]] = {"data": {"protocol": ALL}, "train": train}
    changed = parse_overrides(overrides)
    for table, values in last.items():
        for name in values.keys() & changed.get(table, {}).keys():
            raise UserError(f"{table}.{name} follows from the finished runs: leave it out")
    tables = {**settings.to_dict(), "model": dict(settings.options)}
    del tables["dataset"]
    merged = merge(tables, changed, last)
    return RunSpec.of(dataset, settings.model, seeds=seeds, preset=None, settings=merged, root=root)
