"""What is asked of `fit`, before anything is made of it: settings, data, splits and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError, whole_numbers
from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.runs.own_candidates import asks_for_candidates, settle_candidates
from gumbel_mpnn.runs.reader import DataReader, Transform
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.settings import make_settings
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.training import data_hash


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
        reader: DataReader | None,
    ) -> Wanted:
        """The arguments are those of `fit`."""
        overrides = tuple(overrides)
        resolved = make_settings(dataset, model, preset=preset, settings=settings, overrides=overrides)
        read, digest = (reader or DataReader()).read(dataset, resolved.data, root, transform)
        data, resolved = settle_candidates(read, resolved, asks_for_candidates(preset, settings, overrides))
        digest = digest if data is read else data_hash(data)
        return cls(resolved, data, digest, replicas_of(data, splits, seeds))

    def folder(self, runs: str | Path, experiment: str, models: bool = False) -> SettingFolder:
        """Where these runs lie; with `models`, none is finished whose trained model is not there."""
        if not experiment or Path(experiment).name != experiment:
            raise UserError(f"an experiment is the name of one folder, which {experiment!r} is not")
        return SettingFolder.of(Path(runs), experiment, self.settings, self.data_hash, models)

    def run(self, folder: SettingFolder, keep: object = None) -> Run:
        """The runs, all of which are finished; `keep` lives as long as they do."""
        records = tuple(folder.record(replica) for replica in self.replicas)
        return Run(self.settings, records[0].metric, records, self.data, folder, keep)


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
