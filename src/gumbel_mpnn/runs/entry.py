"""`fit`: the entry to training, for a single model, for `auto`, and on every labelled node."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.data import get_spec
from gumbel_mpnn.data.splits import ALL
from gumbel_mpnn.nn import models
from gumbel_mpnn.runs.auto import AutoSpec, find_auto, fit_auto
from gumbel_mpnn.runs.choice import LADDERS
from gumbel_mpnn.runs.fitting import Monitor, Place, find_spec, fit_spec
from gumbel_mpnn.runs.machines import LOCAL, Machines, helped
from gumbel_mpnn.runs.reader import Transform
from gumbel_mpnn.runs.record import Record
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.settings import Settings
from gumbel_mpnn.settings.files import is_settings_file, merge, parse_overrides, tuned_model
from gumbel_mpnn.settings.plugins import load_plugins
from gumbel_mpnn.settings.presets import AUTO, list_presets
from gumbel_mpnn.settings.registry import normal_name
from gumbel_mpnn.util.errors import DataWarning, UserError, unknown_name

AnySpec = RunSpec | AutoSpec
DEFAULT_FAMILY = "tuned"
WITH_PRESETS = "gcn"
"""Default model on data sets that have presets."""


def fit(
    dataset: str | Data,
    model: str | None = None,
    *,
    splits: Iterable[int] | None = None,
    seeds: int | Iterable[int] = 1,
    preset: str | Path | None = "tuned",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Iterable[str] = (),
    transform: Transform | None = None,
    root: str | Path | None = None,
    runs: str | Path | None = None,
    experiment: str = "train",
    device: str = "auto",
    memory: int | None = None,
    monitor: Monitor | None = None,
    models: bool = False,
    progress: bool | None = None,
    on: str | Machines = LOCAL,
) -> Run:
    """Train a model on splits and seeds of a data set, as many at once as fit into memory.

    Args:
        dataset: Name of a data set, or a `Data` with `x`, `y` and masks [N] or [N, S]. If it has a `candidate_index`
            and `rewiring.candidates` is not set, these are the candidates of rewiring.
        model: Name of a model, or `auto`, which trains plain and rewired models and chooses one on validation (see
            `Run.choice`). `auto-wary` chooses with hostile edges at validation nodes, for nodes that someone may have
            attacked. `auto-frozen`, `auto-random` and `auto-wary-frozen` are controls, in which no edge is learned. By
            default `auto`, or `gcn` if a preset is given or the data set has presets.
        splits: Splits to train on; all by default.
        seeds: Number of seeds per split, or the seeds themselves.
        preset: Family of presets (`tuned`, `paper`), a TOML file, or None for the defaults. `auto` has its own settings
            and takes no preset.
        settings: Tables `data`, `model`, `train` and `rewiring`, which override the preset.
        overrides: Settings such as `["model.dropout=0.7", ...]`, which override both.
        transform: Applied to the data after reading and splitting.
        root: Folder with the files of the data sets.
        runs: Folder of the runs. Finished runs are not trained again, and interrupted ones are continued. Runs that
            diverged raise a `DivergedError`, which names the file to delete to try them again. None for a temporary
            folder that is deleted with the result.
        experiment: Folder within `runs`.
        device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
        memory: Bytes that training may use; all free memory by default.
        monitor: Called while runs are trained.
        models: Whether trained models are needed besides records; runs whose models were deleted are trained again,
            and their records are replaced.
        progress: Whether to show progress on standard error; by default on a terminal and in a notebook, unless there
            is a `monitor`.
        on: Where to train: `local`, `ray` or the address of a Ray cluster, or `gm.Machines` with its options. A script
            that uses several processes (`gm.Machines(workers=4)`) must call `fit` inside `if __name__ == "__main__":`.

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
    if message := missing_preset(spec):
        warnings.warn(message, DataWarning, stacklevel=2)
    place, shows = Place(runs, experiment, device, memory, monitor, models=models), _shows(progress, monitor)
    with helped(spec, place, Machines.of(on)) as place:
        return _fit_with_progress(spec, place) if shows else fit_any(spec, place)


def _shows(progress: bool | None, monitor: Monitor | None) -> bool:
    """Whether `fit` shows progress by itself."""
    if monitor is not None:
        if progress:
            raise UserError("fit was given both monitor and progress=True: leave out one of them")
        return False

    from gumbel_mpnn.util.live_line import in_notebook, on_terminal

    return on_terminal() or in_notebook() if progress is None else progress


def _fit_with_progress(spec: AnySpec, place: Place) -> Run:
    from gumbel_mpnn.runs.progress import ProgressMonitor

    with closing(ProgressMonitor()) as monitor:
        return fit_any(spec, replace(place, monitor=monitor))


def describe(
    dataset: str | Data | Callable[[bool], str | Data],
    model: str | None = None,
    *,
    preset: str | Path | None = DEFAULT_FAMILY,
    **arguments: Any,
) -> AnySpec:
    """Describe the runs of `fit` with the same arguments; `dataset` may also be a function, as in `RunSpec.of`."""
    model = default_model(dataset, preset) if model is None else model
    ladder = LADDERS.get(normal_name(model)) if isinstance(model, str) else None
    load_plugins()
    if isinstance(model, str) and ladder is None and model not in models:
        raise unknown_name("model", model, [*models, *LADDERS])
    if ladder is None:
        return RunSpec.of(dataset, model, preset=preset, **arguments)
    if preset not in (None, DEFAULT_FAMILY):
        what = f"the settings file {preset}" if is_settings_file(preset) else f"the preset {preset}"
        raise UserError(f"model 'auto' has its own settings and cannot use {what}: name another model")
    return AutoSpec.of(dataset, ladder=ladder, **arguments)


def missing_preset(spec: AnySpec) -> str:
    """Return a sentence if the family of presets has none for the model on this data set; empty otherwise.

    On a graph of the user's, the default family is not remarked on: it never has one.
    """
    if isinstance(spec, AutoSpec) or spec.preset is not None:
        return ""
    family = spec.asked_preset
    if family is None or is_settings_file(family) or (family == DEFAULT_FAMILY and not isinstance(spec.dataset, str)):
        return ""
    model, dataset = spec.settings.model, spec.settings.dataset
    return f"there is no {family} preset for {model} on {dataset}: the default settings are used"


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


def fit_any(spec: AnySpec, place: Place) -> Run:
    """Train the runs of `spec` that are missing in `place`; returns all of them, or those that `auto` chose."""
    return fit_auto(spec, place) if isinstance(spec, AutoSpec) else fit_spec(spec, place)


def find_any(spec: AnySpec, place: Place) -> Run | None:
    """Find the runs of `spec` without training; returns None if some are missing."""
    return find_auto(spec, place) if isinstance(spec, AutoSpec) else find_spec(spec, place)


def final_spec(
    dataset: str | Data | Callable[[bool], str | Data],
    records: Sequence[Record],
    *,
    seeds: int | Iterable[int] = 1,
    overrides: Iterable[str] = (),
    transform: Transform | None = None,
    root: str | Path | None = None,
) -> RunSpec:
    """Describe runs on all labelled nodes that are like finished runs, to be trained by `fit_any`.

    They have the settings of these runs, but no validation and no test nodes (`data.protocol` is `all`). They train as
    many epochs as the median of the best epochs of these runs, and keep the model of the last. `records` are those of
    one setting, such as `run.records`; the other arguments are those of `RunSpec.of`.
    """
    if len({record.fingerprint for record in records}) != 1:
        raise UserError("the number of epochs is taken from finished runs of one setting: give the folder of one")
    settings = Settings.from_dict(records[0].settings)
    tables = settings.to_dict()
    given: dict[str, Any] = {name: table for name, table in tables.items() if name in ("data", "train", "rewiring")}
    given["model"] = dict(settings.options)
    epochs = max(1, round(median(record.best_epoch for record in records)))
    last: dict[str, dict[str, Any]] = {
        "data": {"protocol": ALL},
        "train": {"select": "last", "patience": 0, "epochs": epochs},
    }
    changed = parse_overrides(overrides)
    for table, values in last.items():
        for name in values.keys() & changed.get(table, {}).keys():
            raise UserError(f"{table}.{name} follows from the finished runs: leave it out")
    return RunSpec.of(
        dataset,
        settings.model,
        seeds=seeds,
        preset=None,
        settings=merge(given, changed, last),
        transform=transform,
        root=root,
    )
