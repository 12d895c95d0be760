"""Folders of runs: `<root>/<experiment>/<dataset>/<model>/<fingerprint>/<replica>/`."""

from __future__ import annotations

import hashlib
import json
import platform
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gumbel_mpnn._version import __version__
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.runs.graph_file import GRAPH, Learned, pack, read_learned
from gumbel_mpnn.runs.record import HISTORY, RECORD, Record, read_curve, read_record
from gumbel_mpnn.settings import Replica, Settings
from gumbel_mpnn.training import Outcome
from gumbel_mpnn.training.checkpoint import load_tensors, save_tensors
from gumbel_mpnn.util.errors import DataError, DataWarning, DivergedError
from gumbel_mpnn.util.files import json_with_checksum, lines_with_checksum, read_json, write_atomically

if TYPE_CHECKING:
    from pandas import DataFrame

MODEL = "model.safetensors"
DIVERGED = "diverged.json"
COLUMNS = ("split", "seed", "epoch", "train_loss", "val", "val_loss")


class SettingFolder:
    """Folder of all runs of one setting on one data set: a subfolder per replica, and checkpoints of unfinished groups.

    With `models`, a run whose trained model was deleted does not count as finished.
    """

    def __init__(self, path: Path, models: bool = False) -> None:
        self.path, self.models = path, models

    @classmethod
    def of(cls, root: Path, experiment: str, settings: Settings, data_hash: str, models: bool = False) -> SettingFolder:
        """Folder of the runs of `settings` under `root`."""
        return cls(root / experiment / settings.dataset / settings.model / settings.fingerprint(data_hash), models)

    def folder(self, replica: Replica) -> Path:
        """Folder of one run."""
        return self.path / str(replica)

    def is_finished(self, replica: Replica) -> bool:
        """Whether the run has a record and, with `models`, its trained model still exists."""
        return self.is_recorded(replica) and (not self.models or (self.folder(replica) / MODEL).exists())

    def is_recorded(self, replica: Replica) -> bool:
        """Whether the run has a record."""
        return (self.folder(replica) / RECORD).exists()

    def write(
        self, outcome: Outcome, record: Record, graph: PairGraph | None = None, node_ids: Sequence[str] | None = None
    ) -> None:
        """Write the files of a finished run; the record is written last and marks the run as finished.

        The probabilities of the outcome of a model that rewires belong to the pairs of `graph`.
        """
        folder = self.folder(outcome.replica)
        for left_over in folder.glob(".*"):  # files that a killed process has not finished
            left_over.unlink(missing_ok=True)
        if outcome.probability is not None and graph is not None:
            write_atomically(folder / GRAPH, pack(graph, outcome.probability, node_ids))
        save_tensors(folder / MODEL, outcome.state)
        write_atomically(folder / HISTORY, lines_with_checksum(outcome.history))
        write_atomically(folder / RECORD, json_with_checksum(record.to_dict()))

    def files(self, replica: Replica) -> dict[str, bytes]:
        """Content of all files of a finished run, the record last."""
        found = (path for path in self.folder(replica).iterdir() if not path.name.startswith("."))
        return {path.name: path.read_bytes() for path in sorted(found, key=lambda path: (path.name == RECORD, path))}

    def write_files(self, replica: Replica, files: Mapping[str, bytes]) -> None:
        """Write what `files` of another folder returned; the record is written last."""
        for name in sorted(files, key=lambda name: (name == RECORD, name)):
            write_atomically(self.folder(replica) / name, files[name])

    def check_diverged(self, replicas: Iterable[Replica]) -> None:
        """Raise a `DivergedError` if training of any of these replicas diverged before."""
        diverged = self._diverged()
        found = [str(replica) for replica in replicas if str(replica) in diverged]
        if found:
            raise DivergedError(
                f"training diverged when it was tried before (no finite validation value of {found[0]}"
                f"{f' and {len(found) - 1} more' * (len(found) > 1)}): try a smaller train.lr, or delete"
                f" {self.path / DIVERGED} to try it again",
                runs=found,
            )

    def remember_diverged(self, runs: Iterable[str]) -> None:
        """Add runs to those whose training diverged; the caller must hold the lock of the folder."""
        write_atomically(self.path / DIVERGED, json_with_checksum({"runs": sorted({*self._diverged(), *runs})}))

    def _diverged(self) -> set[str]:
        path = self.path / DIVERGED
        try:
            return set(read_json(path.read_bytes())["runs"])
        except FileNotFoundError:
            return set()
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{path} is not a list of diverged runs ({error}): delete it") from error

    def record(self, replica: Replica) -> Record:
        """Read the record of a finished run."""
        return read_record(self.folder(replica) / RECORD)

    def state(self, replica: Replica) -> dict[str, Tensor]:
        """Read the parameters of a finished run, [1, ...]."""
        path = self.folder(replica) / MODEL
        if not self.path.exists():
            raise DataError(
                f"the folder {self.path} of these runs does not exist any more: without runs=, fit uses a temporary"
                " folder that is deleted with its result; give fit a folder with runs="
            )
        if not path.exists():
            raise DataError(f"the trained model {path} does not exist: train the run again with fit(..., models=True)")
        return load_tensors(
            path, "delete it and train the run again with fit(..., models=True), train --predictions or reproduce"
        )[0]

    def history(self, replica: Replica) -> list[dict[str, Any]] | None:
        """Read the training curve of a finished run, one row per evaluated epoch; None if the file is missing."""
        path = self.folder(replica) / HISTORY
        try:
            return read_curve(path)
        except FileNotFoundError:
            return None

    def learned(self, replicas: Iterable[Replica]) -> Learned | None:
        """Learned graphs of finished runs; None if the file of one of them is missing."""
        files = [self.folder(replica) / GRAPH for replica in replicas]
        return read_learned(files) if all(file.exists() for file in files) else None

    def figures(self, name: str, records: Sequence[Record]) -> Path:
        """File of results computed from the models of these records; runs that are trained again have another file."""
        content = json.dumps([record.to_dict() for record in records])
        return self.path / f"figures-{name}-{_digest(content)}.json"

    def checkpoint(self, group: Sequence[Replica]) -> Path:
        """Checkpoint of an unfinished group."""
        return self.path / f"checkpoint-{_key(group)}.safetensors"

    def group_file(self, group: Sequence[Replica]) -> Path:
        """File with the replicas of a group, which exists until the group is finished."""
        return self.path / f"group-{_key(group)}.json"


def _key(group: Sequence[Replica]) -> str:
    return _digest(" ".join(map(str, group)))


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def record_of(outcome: Outcome, settings: Settings, data_hash: str, metric: str, device: torch.device) -> Record:
    """Create the record of a run."""
    return Record(
        fingerprint=settings.fingerprint(data_hash),
        data_hash=data_hash,
        settings=settings.to_dict(),
        split=outcome.replica.split,
        seed=outcome.replica.seed,
        metric=metric,
        val=outcome.val,
        test=outcome.test,
        best_epoch=outcome.best_epoch,
        epochs=outcome.epochs,
        seconds=outcome.seconds,
        machine=describe_machine(device),
    )


def describe_machine(device: torch.device) -> dict[str, str]:
    """Device and versions that a run was trained with."""
    import torch_geometric

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "device": f"{device.type} ({name})",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "gumbel_mpnn": __version__,
    }


def read_history(folder: SettingFolder, records: Sequence[Record]) -> DataFrame:
    """Read the curves of all runs, one row for each run and evaluated epoch.

    Runs without a file are left out with a `DataWarning`; if no run has one, a `DataError` is raised.
    """
    from pandas import DataFrame

    rows, missing = list[dict[str, Any]](), list[Record]()
    for record in records:
        curve = folder.history(record.replica)
        if curve is None:
            missing.append(record)
        else:
            rows += [{"split": record.split, "seed": record.seed, **row} for row in curve]
    if missing:
        path = folder.folder(missing[0].replica) / HISTORY
        what = f"the training curves of {len(missing)} of {len(records)} runs are missing: there is no {path}"
        if len(missing) == len(records):
            raise DataError(f"{what}; give fit a folder with runs=, and delete the folders of runs to train them again")
        warnings.warn(f"{what}; delete such folders to train the runs again", DataWarning, stacklevel=3)
    return DataFrame(rows, columns=list(COLUMNS))
