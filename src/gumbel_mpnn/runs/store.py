"""Folders of runs: `<root>/<experiment>/<dataset>/<model>/<fingerprint>/<replica>/`.

Every process that trains a run holds the lock of this run, so that several processes, also on several machines with
one disk, share the work. Locks are released when their process ends, for whatever reason.
"""

from __future__ import annotations

import hashlib
import platform
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from filelock import FileLock, Timeout
from torch import Tensor
from torch_geometric.data import Batch, Data

from gumbel_mpnn._version import __version__
from gumbel_mpnn.data.check import IDENTITY
from gumbel_mpnn.data.columns import FeatureColumn
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.runs.learned import GRAPH, Learned, read_learned, write_learned
from gumbel_mpnn.runs.records import FINGERPRINT, HISTORY, RECORD, Record, read_curve, read_record
from gumbel_mpnn.runs.spec import Job
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Outcome
from gumbel_mpnn.training.checkpoint import load_tensors, note_of, save_tensors
from gumbel_mpnn.training.task import num_classes
from gumbel_mpnn.util.errors import DataError, DataWarning, DivergedError, UserError, unreadable
from gumbel_mpnn.util.files import json_with_checksum, lines_with_checksum, read_json, write_atomically

if TYPE_CHECKING:
    from pandas import DataFrame

MODEL, DIVERGED, FACTS = "model.safetensors", "diverged.json", "data.json"
LOCK = ".lock"
"""File in the folder of a run, which exists until the run is over."""
COLUMNS = ("split", "seed", "epoch", "train_loss", "val", "val_loss")


class SettingFolder:
    """Folder of all runs of one setting on one data set: a subfolder per replica, and checkpoints of unfinished groups.

    With `models`, a run whose trained model was deleted does not count as finished.
    """

    def __init__(self, path: Path, models: bool = False) -> None:
        self.path, self.models = path, models

    @classmethod
    def of(cls, root: Path, experiment: str, job: Job, models: bool = False) -> SettingFolder:
        """Folder of the runs of a job under `root`."""
        if not experiment or Path(experiment).name != experiment or not experiment.isprintable():
            raise UserError(f"experiment must be the name of a single folder, but is {experiment!r}")
        if experiment.startswith(".") or FINGERPRINT.fullmatch(experiment):
            raise UserError(
                f"experiment must not be {experiment!r}: folders that begin with a point are hidden, and 16 hex digits"
                " are the name of a setting"
            )
        settings = job.settings
        fingerprint = settings.fingerprint(job.data_hash)
        return cls(root / experiment / settings.dataset / settings.model / fingerprint, models)

    def folder(self, replica: Replica) -> Path:
        """Folder of one run."""
        return self.path / str(replica)

    def is_finished(self, replica: Replica) -> bool:
        """Whether the run has a record and, with `models`, its trained model still exists."""
        return self.is_recorded(replica) and (not self.models or (self.folder(replica) / MODEL).exists())

    def is_recorded(self, replica: Replica) -> bool:
        """Whether the run has a record."""
        return (self.folder(replica) / RECORD).exists()

    def write(self, outcome: Outcome, record: Record, graph: PairGraph, node_ids: Sequence[str] | None = None) -> None:
        """Write the files of a finished run; the record is written last and marks the run as finished.

        The probabilities of the outcome of a model that rewires belong to the pairs of `graph`.
        """
        folder = self.folder(outcome.replica)
        for left_over in folder.glob(".*.*"):  # files that a killed process has not finished
            left_over.unlink(missing_ok=True)
        if outcome.probability is not None:
            write_learned(folder / GRAPH, graph, outcome.probability, node_ids)
        save_tensors(folder / MODEL, outcome.state)
        write_atomically(folder / HISTORY, lines_with_checksum(outcome.history))
        write_atomically(folder / RECORD, json_with_checksum(record.to_dict()))

    def has_diverged(self, replica: Replica) -> bool:
        """Whether training of the run diverged."""
        return (self.folder(replica) / DIVERGED).exists()

    def check_diverged(self, replicas: Iterable[Replica]) -> None:
        """Raise a `DivergedError` if training of any of these replicas diverged before."""
        found = [replica for replica in replicas if self.has_diverged(replica)]
        if found:
            raise DivergedError(
                f"training diverged when it was tried before (no finite validation value of {found[0]}"
                f"{f' and {len(found) - 1} more' * (len(found) > 1)}): try a smaller train.lr, or delete"
                f" {self.folder(found[0]) / DIVERGED} to try it again",
                runs=map(str, found),
            )

    def remember_diverged(self, runs: Iterable[str]) -> None:
        """Note that training of these runs diverged, so that they are not tried again."""
        for name in runs:
            write_atomically(self.path / name / DIVERGED, b"{}\n")

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
        return load_tensors(path, "delete it and train the run again with fit(..., models=True)")[0]

    def learned(self, replicas: Iterable[Replica]) -> Learned | None:
        """Learned graphs of finished runs; None if the file of one of them is missing."""
        files = [self.folder(replica) / GRAPH for replica in replicas]
        return read_learned(files) if all(file.exists() for file in files) else None

    def history(self, records: Sequence[Record]) -> DataFrame:
        """Read the curves of all runs, one row for each run and evaluated epoch.

        Runs without a file are left out with a `DataWarning`; if no run has one, a `DataError` is raised.
        """
        from pandas import DataFrame

        rows, missing = list[dict[str, Any]](), list[Path]()
        for record in records:
            path = self.folder(record.replica) / HISTORY
            try:
                rows += [{"split": record.split, "seed": record.seed, **row} for row in read_curve(path)]
            except FileNotFoundError:
                missing.append(path)
        if missing:
            what = f"the training curves of {len(missing)} of {len(records)} runs are missing: there is no {missing[0]}"
            if len(missing) == len(records):
                raise DataError(f"{what}; give fit a folder with runs=, and delete folders of runs to train them again")
            warnings.warn(f"{what}; delete such folders to train the runs again", DataWarning, stacklevel=3)
        return DataFrame(rows, columns=list(COLUMNS))

    def checkpoint(self, group: Sequence[Replica]) -> Path:
        """Checkpoint of replicas that are trained together and not finished."""
        digest = hashlib.sha256(" ".join(map(str, group)).encode()).hexdigest()[:12]
        return self.path / f"checkpoint-{digest}.safetensors"

    def begun(self) -> Iterator[list[Replica]]:
        """Groups of replicas that have a checkpoint."""
        for path in sorted(self.path.glob("checkpoint-*.safetensors")):
            with suppress(DataError, ValueError, TypeError, AttributeError):  # training reports what is damaged
                group = [Replica.parse(name) for name in note_of(path).get("replicas", ())]
                if group and path == self.checkpoint(group):
                    yield group


class Claims:
    """Runs of one setting that this process trains: others leave them alone until the `with` block ends."""

    def __init__(self, folder: SettingFolder, wanted: Sequence[Replica]) -> None:
        self.folder, self.wanted, self.locks = folder, wanted, dict[Replica, FileLock]()

    def __enter__(self) -> Claims:
        return self

    def __exit__(self, *_: object) -> None:
        self.release(list(self.locks))

    @property
    def missing(self) -> list[Replica]:
        """Runs that are not finished."""
        return [replica for replica in self.wanted if not self.folder.is_finished(replica)]

    def is_free(self) -> bool:
        """Whether there is a missing run that no process trains; nothing is written."""
        missing = [replica for replica in self.missing if replica not in self.locks]
        self.folder.check_diverged(missing)
        for replica in missing:
            if not (self.folder.folder(replica) / LOCK).exists():
                return True
            with suppress(Timeout), self._lock(replica).acquire(timeout=0):
                return True
        return False

    def take(self, most: int) -> list[Replica]:
        """Claim runs to train together: at most so many, or those of a checkpoint; none if other processes have all."""
        missing = [replica for replica in self.missing if replica not in self.locks]
        self.folder.check_diverged(missing)
        for group in self.folder.begun():
            rest = [replica for replica in group if not self.folder.is_finished(replica)]
            if rest and set(rest) <= set(missing) and self._take(group, len(group)) is not None:
                return group
        groups = max(1, -(-len(missing) // most))
        return self._take(missing, max(1, -(-len(missing) // groups)), all_of_them=False) or []

    def _take(self, wanted: Sequence[Replica], most: int, all_of_them: bool = True) -> list[Replica] | None:
        """Lock up to `most` of the wanted runs; None if all of them are asked for and cannot be had."""
        taken = list[Replica]()
        for replica in wanted:
            lock = self._lock(replica)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                if not all_of_them:
                    continue
                self.release(taken)
                return None
            self.locks[replica] = lock
            if not all_of_them and self.folder.is_finished(replica):  # by another process just now
                self.release([replica])
            else:
                taken.append(replica)
            if len(taken) == most:
                break
        return taken

    def wait(self) -> None:
        """Wait until another process has finished a run that is missing, or has given it up."""
        for replica in self.missing[:1]:
            self.locks[replica] = lock = self._lock(replica)
            lock.acquire()
            self.release([replica])

    def release(self, replicas: Iterable[Replica]) -> None:
        """Give runs up; the locks of those that are over are deleted."""
        for replica in replicas:
            lock = self.locks.pop(replica)
            if self.folder.is_finished(replica) or self.folder.has_diverged(replica):  # which a waiting process finds
                Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()

    def forget(self, group: Sequence[Replica]) -> None:
        """Remove the checkpoint of a group, including what a killed process has not finished, and release the group."""
        checkpoint = self.folder.checkpoint(group)
        for path in (checkpoint, *self.folder.path.glob(f".{checkpoint.name}.*")):
            path.unlink(missing_ok=True)
        self.release([replica for replica in group if replica in self.locks])

    def tidy(self) -> None:
        """Remove what processes have left that were killed after they had finished a group."""
        for group in self.folder.begun():
            if all(map(self.folder.is_finished, group)):
                self.forget(group)
        for replica in self.wanted:
            (self.folder.folder(replica) / LOCK).unlink(missing_ok=True)
        (self.folder.path / LOCK).unlink(missing_ok=True)

    def _lock(self, replica: Replica) -> FileLock:
        path = self.folder.folder(replica) / LOCK
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(path)


@dataclass(frozen=True)
class DataFacts:
    """What a trained model must know about its training data to be applied to other graphs."""

    num_features: int
    num_classes: int
    class_names: tuple[Any, ...] | None = None
    weighted: bool = False
    """Whether edges had weights."""
    identity: bool = False
    """Whether the graph had no features, so that the model knows its nodes only."""
    feature_columns: tuple[FeatureColumn, ...] | None = None
    """Columns of the file of nodes that became features, if the graph was read from one."""
    source_files: dict[str, Any] | None = None
    """Arguments with which the files of the user can be read again; None for a batch, which is several graphs."""

    @classmethod
    def of(cls, data: Data) -> DataFacts:
        """Facts of a graph with features and labels."""
        names, columns, files = data.get("class_names"), data.get("feature_columns"), data.get("source_files")
        return cls(
            num_features=int(data.x.shape[1]),
            num_classes=num_classes(data),
            class_names=None if names is None else tuple(names),
            weighted=data.get("edge_weight") is not None,
            identity=bool(data.get(IDENTITY)),
            feature_columns=None if columns is None else tuple(columns),
            source_files=files if isinstance(files, dict) and files and not isinstance(data, Batch) else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values."""
        columns, names = self.feature_columns, self.class_names
        plain = [name if isinstance(name, str | int | float) else str(name) for name in names or ()]
        return {
            **vars(self),
            "class_names": None if names is None else plain,
            "feature_columns": None if columns is None else [column.to_dict() for column in columns],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> DataFacts:
        """Read what `to_dict` wrote."""
        names, columns = values["class_names"], values["feature_columns"]
        names = None if names is None else tuple(names)
        columns = None if columns is None else tuple(map(FeatureColumn.from_dict, columns))
        return cls(**{**values, "class_names": names, "feature_columns": columns})


class TrainingData:
    """The training data of runs, read when they are first needed, and facts about them.

    `data` may be a function that reads them or raises a `DataError` that says what is missing.
    """

    def __init__(self, data: Data | Callable[[], Data], facts: DataFacts | None = None) -> None:
        self._data, self._facts = data, facts

    @cached_property
    def data(self) -> Data:
        """The data."""
        return self._data if isinstance(self._data, Data) else self._data()

    @cached_property
    def facts(self) -> DataFacts:
        """Facts about the data."""
        return DataFacts.of(self.data) if self._facts is None else self._facts


def write_facts(folder: Path, facts: DataFacts) -> None:
    """Write the facts of the training data to the folder of a setting, unless they are there."""
    left_over = list(folder.glob(f".{FACTS}.*"))  # by a killed process
    with suppress(DataError):
        if not left_over and (found := read_facts(folder)) is not None and found.to_dict() == facts.to_dict():
            return
    with FileLock(folder / LOCK) as lock:
        for path in left_over:
            path.unlink(missing_ok=True)
        write_atomically(folder / FACTS, json_with_checksum(facts.to_dict()))
        Path(lock.lock_file).unlink(missing_ok=True)


def read_facts(folder: Path) -> DataFacts | None:
    """Read the facts of the training data from the folder of a setting; None if there are none."""
    path = folder / FACTS
    try:
        return DataFacts.from_dict(read_json(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise unreadable(str(path), error, "delete it and repeat the training command") from None


def record_of(outcome: Outcome, job: Job, metric: str, device: torch.device) -> Record:
    """Create the record of a run."""
    import torch_geometric

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return Record(
        fingerprint=job.settings.fingerprint(job.data_hash),
        data_hash=job.data_hash,
        settings=job.settings.to_dict(),
        split=outcome.replica.split,
        seed=outcome.replica.seed,
        metric=metric,
        val=outcome.val,
        test=outcome.test,
        best_epoch=outcome.best_epoch,
        epochs=outcome.epochs,
        seconds=outcome.seconds,
        machine={
            "device": f"{device.type} ({name})",
            "python": platform.python_version(),
            "torch": torch.__version__,
            "torch_geometric": torch_geometric.__version__,
            "gumbel_mpnn": __version__,
        },
    )
