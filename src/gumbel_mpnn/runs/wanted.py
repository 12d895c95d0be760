"""What is asked of `fit`, before anything is made of it: settings, data, splits and seeds."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from gumbel_mpnn.config import DataSettings, Settings
from gumbel_mpnn.data import GraphFacts, add_splits, check, get_spec, load
from gumbel_mpnn.errors import DataError, DataWarning, UserError, whole_numbers
from gumbel_mpnn.graph import says_directed
from gumbel_mpnn.records import Replica
from gumbel_mpnn.runs.own_candidates import asks_for_candidates, settle_candidates
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.settings import make_settings
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.training import data_hash

OWN_PROTOCOL = "random-60-20-20"
"""How a graph that comes without masks is split."""

Transform = Callable[[Data], Data]


@dataclass(frozen=True)
class Wanted:
    """Enough to know which runs are wanted and where they lie, and nothing that is slow to make."""

    settings: Settings
    data: Data
    data_hash: str
    replicas: list[Replica]

    @classmethod
    def of(
        cls,
        dataset: str | Data,
        model: str,
        *,
        splits: Iterable[int] | None,
        seeds: int | Iterable[int],
        preset: str | Path | None,
        settings: Mapping[str, Mapping[str, Any]] | None,
        overrides: Iterable[str],
        transform: Transform | None,
        root: str | Path | None,
    ) -> Wanted:
        """The arguments are those of `fit`."""
        overrides = tuple(overrides)
        resolved = make_settings(dataset, model, preset=preset, settings=settings, overrides=overrides)
        data = read_data(dataset, resolved.data, root)
        if transform is not None:
            data = transform(data)
        data, resolved = settle_candidates(data, resolved, asks_for_candidates(preset, settings, overrides))
        return cls(resolved, data, data_hash(data), replicas_of(data, splits, seeds))

    def folder(self, runs: str | Path, experiment: str, models: bool = False) -> SettingFolder:
        """Where these runs lie; with `models`, none is finished whose trained model is not there."""
        if not experiment or Path(experiment).name != experiment:
            raise UserError(f"an experiment is the name of one folder, which {experiment!r} is not")
        return SettingFolder.of(Path(runs), experiment, self.settings, self.data_hash, models)

    def run(self, folder: SettingFolder, keep: object = None) -> Run:
        """The runs, all of which are finished; `keep` lives as long as they do."""
        records = tuple(folder.record(replica) for replica in self.replicas)
        return Run(self.settings, records[0].metric, records, self.data, folder, keep)


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
    if settings.undirected and says_directed(dataset):
        warnings.warn(
            "this graph says that its edges have a direction (undirected is false), but they are taken both ways: set"
            " data.undirected=false to train on directions",
            DataWarning,
            stacklevel=2,
        )
    if isinstance(dataset.x, torch.Tensor) and dataset.x.layout != torch.strided:
        dataset = copy.copy(dataset)
        dataset.x = dataset.x.to_dense()
    if dataset.get("train_mask") is None:
        _check_classes(check(dataset))
    if protocol or dataset.get("train_mask") is None:
        dataset = add_splits(dataset, protocol or OWN_PROTOCOL)
    _check_classes(check(dataset))
    for name in ("validation", "test"):
        empty = ~dataset["val_mask" if name == "validation" else "test_mask"].any(0)
        if empty.any():
            raise DataError(f"the {name} mask is empty: a model is chosen on validation and judged on test nodes")
    return dataset


def _check_classes(facts: GraphFacts) -> None:
    """Refuse labels that say nothing: all the same, or each its own."""
    if facts.num_classes == 1:
        raise DataError("all labelled nodes are of one class, so there is nothing to tell apart")
    if facts.num_classes == facts.num_nodes - facts.num_unlabelled:
        raise DataError(
            f"there are as many classes as labelled nodes, {facts.num_classes}, so no class has nodes both to train"
            " and to test on: are these labels ids?"
        )


def replicas_of(data: Data, splits: Iterable[int] | None, seeds: int | Iterable[int]) -> list[Replica]:
    """Every seed of every split, all splits of `data` by default."""
    num_splits = 1 if data.train_mask.dim() == 1 else int(data.train_mask.shape[1])
    chosen = whole_numbers("splits", range(num_splits) if splits is None else splits)
    for split in chosen:
        if not 0 <= split < num_splits:
            raise UserError(f"there is no split {split}: this data set has splits 0 to {num_splits - 1}")
    each = whole_numbers("seeds", range(int(seeds)) if isinstance(seeds, Integral) else seeds)
    if not chosen or not each:
        raise UserError("there is nothing to train: give at least one split and one seed")
    return [Replica(split, seed) for split in dict.fromkeys(chosen) for seed in dict.fromkeys(each)]
