"""Runs that are there, found again without training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.runs.reader import DataReader, Transform
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.wanted import Wanted


def find(
    dataset: str | Data,
    model: str,
    *,
    runs: str | Path,
    splits: Iterable[int] | None = None,
    seeds: int | Iterable[int] = 1,
    preset: str | Path | None = "tuned",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Iterable[str] = (),
    experiment: str = "train",
    transform: Transform | None = None,
    root: str | Path | None = None,
    models: bool = False,
    reader: DataReader | None = None,
) -> Run | None:
    """What `fit` with the same arguments would give, if all of it is finished already; None where something is missing.

    Args:
        dataset: Name of a data set, or a `Data`.
        model: Name of a model.
        runs: Folder that keeps the runs.
        splits: Which splits; all by default.
        seeds: How many seeds for each split, or which.
        preset: A family of presets, a TOML file, or None for plain defaults.
        settings: Tables `data`, `model`, `train` laid over the preset.
        overrides: The same as `["model.dropout=0.7", ...]`, laid over both.
        experiment: Folder within `runs`.
        transform: What was done to the data before training.
        root: Where the data sets' files lie.
        models: Whether the trained models have to be there too, and not only the records.
        reader: Reads the data set; given to calls on the same one that follow each other, it reads it once.
    """
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
    folder = wanted.folder(runs, experiment, models)
    return wanted.run(folder) if all(map(folder.is_finished, wanted.replicas)) else None
