"""What a fitted classifier holds: runs in memory, without a folder, so that it can be pickled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.config import DataSettings, Replica
from gumbel_mpnn.runs import DataReader, Run, SettingFolder, Transform
from gumbel_mpnn.training import data_hash
from gumbel_mpnn.training.build import WITH_STRUCTURE


class GivenData(DataReader):
    """Takes the graph of a classifier as it is: rows are checked already, and each edge may be listed one way only."""

    def read(
        self, dataset: str | Data, settings: DataSettings, root: str | Path | None, transform: Transform | None
    ) -> tuple[Data, str]:
        """Return the transformed graph with its hash."""
        assert isinstance(dataset, Data)
        for name in ("protocol", "attack"):
            if getattr(settings, name):
                raise UserError(f"data.{name} does not apply to RewiringClassifier: leave it out")
        if settings.features == WITH_STRUCTURE:
            raise UserError(
                f"data.features={WITH_STRUCTURE} gives models of one graph alone, and RewiringClassifier predicts on"
                " others: use gm.fit, or leave it out"
            )
        data = dataset if transform is None else transform(dataset)
        return data, data_hash(data)


class InMemory(SettingFolder):
    """Models and curves of runs, read from their folders once."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.folder.path, run.folder.models)
        replicas = [record.replica for record in run.records]
        self.states = {replica: run.folder.state(replica) for replica in replicas}
        self.curves = {replica: run.folder.history(replica) for replica in replicas}

    def state(self, replica: Replica) -> dict[str, Tensor]:
        """Parameters of a run."""
        return self.states[replica]

    def history(self, replica: Replica) -> list[dict[str, Any]] | None:
        """Training curve of a run."""
        return self.curves[replica]

    def learned(self, replicas: Iterable[Replica]) -> None:
        """No learned graphs: they are computed by the models."""
        return


def in_memory(run: Run) -> Run:
    """The same runs without their folder; those of rungs that were not chosen are left out."""
    kept = replace(run, folder=InMemory(run), rungs={}, _temporary=None)
    if isinstance(run._temporary, TemporaryDirectory):
        run._temporary.cleanup()
    return kept


def validation_rows(label: NDArray[np.int64], fraction: float, random: np.random.RandomState) -> NDArray[np.bool_]:
    """Choose about a fraction of the rows of each class at random, [N]; every class keeps a row to train on."""
    chosen = np.zeros(len(label), dtype=bool)
    shuffled = random.permutation(len(label))
    spare = list[int]()
    for each in np.unique(label):
        mine = shuffled[label[shuffled] == each]
        chosen[mine[: min(round(fraction * len(mine)), len(mine) - 1)]] = True
        spare += mine[:-1].tolist()
    if not spare:
        raise UserError("every class has a single row, so that none is left for validation: give more rows")
    if not chosen.any():
        chosen[spare[0]] = True
    return chosen
