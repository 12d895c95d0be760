"""Runs that are there, found again without training."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torch_geometric.data import Data

from gumbel_mpnn.runs.fit import Transform, make_settings, read_data, replicas_of
from gumbel_mpnn.runs.own_candidates import asks_for_candidates, settle_candidates
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.training import data_hash


def find(
    dataset: str | Data,
    model: str,
    *,
    runs: str | Path,
    splits: Iterable[int] | None = None,
    seeds: int | Iterable[int] = 1,
    preset: str | Path | None = "tuned",
    overrides: Iterable[str] = (),
    experiment: str = "train",
    transform: Transform | None = None,
    root: str | Path | None = None,
    models: bool = False,
) -> Run | None:
    """What `fit` with the same arguments would give, if all of it is finished already; None where something is missing.

    Args:
        dataset: Name of a data set, or a `Data`.
        model: Name of a model.
        runs: Folder that keeps the runs.
        splits: Which splits; all by default.
        seeds: How many seeds for each split, or which.
        preset: A family of presets, a TOML file, or None for plain defaults.
        overrides: Settings laid over the preset.
        experiment: Folder within `runs`.
        transform: What was done to the data before training.
        root: Where the data sets' files lie.
        models: Whether the trained models have to be there too, and not only the records.
    """
    overrides = tuple(overrides)
    settings = make_settings(dataset, model, preset=preset, overrides=overrides)
    data = read_data(dataset, settings.data, root)
    if transform is not None:
        data = transform(data)
    data, settings = settle_candidates(data, settings, asks_for_candidates(preset, None, overrides))
    folder = SettingFolder.of(Path(runs), experiment, settings, data_hash(data))
    replicas = replicas_of(data, splits, seeds)
    there = folder.has_model if models else folder.is_finished
    if not all(there(replica) for replica in replicas):
        return None
    records = tuple(folder.record(replica) for replica in replicas)
    return Run(settings, records[0].metric, records, data, folder)
