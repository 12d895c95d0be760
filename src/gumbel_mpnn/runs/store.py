"""Folders of runs: `<root>/<experiment>/<dataset>/<model>/<fingerprint>/<replica>/`, and what lies in them.

Every file has a checksum. The record of a run is written last and marks it as finished. Torch is imported where tensors
are read or written, so that runs are listed without it.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumbel_mpnn._version import __version__
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError, unreadable
from gumbel_mpnn.util.files import (
    json_with_checksum,
    lines_with_checksum,
    load_tensors,
    read_json,
    read_lines,
    save_tensors,
    write_atomically,
)

if TYPE_CHECKING:
    import torch
    from pandas import DataFrame
    from torch import Tensor

    from gumbel_mpnn.graph import PairGraph
    from gumbel_mpnn.runs.spec import Job
    from gumbel_mpnn.training import Outcome

RECORD, HISTORY, MODEL, GRAPH = "record.json", "history.jsonl", "model.safetensors", "graph.safetensors"
"""Files of a finished run: its record, its curves, its trained model and, if it rewires, its learned graph."""
FACTS, LOCK = "data.json", ".lock"
"""Facts about the data in the folder of a setting, and the lock of a run in training."""
AGAIN = "delete its folder to do the run again"
FINGERPRINT = re.compile(r"[0-9a-f]{16}")
"""Name of the folder of a setting."""
TRIALS = "tune"
"""Experiment of the trials of a search; settings are chosen among them on validation, so test results are hidden."""
CURVES = ("split", "seed", "epoch", "train_loss", "val", "val_loss")


@dataclass(frozen=True)
class Record:
    """A finished run: its settings, its metrics and the machine it was trained on."""

    fingerprint: str
    data_hash: str
    settings: dict[str, Any]
    split: int
    seed: int
    metric: str
    val: float | None
    """None if the split has no validation nodes."""
    test: float | None
    """None if the split has no test nodes, or if the metric is not defined on them."""
    best_epoch: int
    epochs: int
    seconds: float
    machine: dict[str, str]

    @classmethod
    def of(cls, outcome: Outcome, job: Job, metric: str, device: torch.device) -> Record:
        """Create the record of a run of a job."""
        import torch
        import torch_geometric

        name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
        machine = {
            "device": f"{device.type} ({name})",
            "python": platform.python_version(),
            "torch": torch.__version__,
            "torch_geometric": torch_geometric.__version__,
            "gumbel_mpnn": __version__,
        }
        figures = {name: getattr(outcome, name) for name in ("val", "test", "best_epoch", "epochs", "seconds")}
        settings, (split, seed) = job.settings, (outcome.replica.split, outcome.replica.seed)
        fingerprint = settings.fingerprint(job.data_hash)
        return cls(fingerprint, job.data_hash, settings.to_dict(), split, seed, metric, **figures, machine=machine)

    @property
    def replica(self) -> Replica:
        """Split and seed of the run."""
        return Replica(self.split, self.seed)

    @property
    def val_or_nan(self) -> float:
        """Validation metric; NaN if there is none."""
        return math.nan if self.val is None else self.val

    @property
    def test_or_nan(self) -> float:
        """Test metric; NaN if there is none."""
        return math.nan if self.test is None else self.test

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Summary:
    """Mean, sample standard deviation and standard error of n values between 0 and 1; NaN if there are none."""

    mean: float
    std: float
    stderr: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Summary:
        """Summarize values; None and NaN are left out, and the standard deviation of a single value is 0."""
        found = [value for value in values if value is not None and not math.isnan(value)]
        n = len(found)
        if not n:
            return cls(math.nan, math.nan, math.nan, 0)
        mean = math.fsum(found) / n
        std = math.sqrt(math.fsum((value - mean) ** 2 for value in found) / (n - 1)) if n > 1 else 0.0
        return cls(mean=mean, std=std, stderr=std / math.sqrt(n), n=n)

    def to_dict(self) -> dict[str, float | None]:
        """Convert to plain JSON values; a single value has no standard deviation, and none has no mean."""
        std, stderr = (self.std, self.stderr) if self.n > 1 else (None, None)
        return {"mean": self.mean if self.n else None, "std": std, "stderr": stderr}

    def __str__(self) -> str:
        if self.n == 0:
            return "–"
        if self.n == 1:
            return f"{100 * self.mean:.2f} (one run)"
        return f"{100 * self.mean:.2f} ± {100 * self.std:.2f} (std of {self.n})"


@dataclass(frozen=True)
class Learned:
    """The learned graphs of runs, which have the same pairs."""

    graph: PairGraph
    probability: Tensor
    """Probability of every pair in each run, [R, P]."""
    node_ids: list[str] | None = None

    @property
    def mean(self) -> Tensor:
        """Mean probability of every pair over the runs, [P]."""
        return self.probability.mean(0)


class SettingFolder:
    """Folder of all runs of one setting on one data set: a subfolder for each, and checkpoints of unfinished groups."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, root: Path, experiment: str, job: Job) -> SettingFolder:
        """Folder of the runs of a job under `root`."""
        if Path(experiment).name != experiment or not experiment.isprintable() or experiment[:1] in ("", "."):
            raise UserError(f"experiment must be the name of a single folder that is not hidden, but is {experiment!r}")
        settings = job.settings
        return cls(root / experiment / settings.dataset / settings.model / settings.fingerprint(job.data_hash))

    def folder(self, replica: Replica) -> Path:
        """Folder of one run."""
        return self.path / str(replica)

    def is_finished(self, replica: Replica) -> bool:
        """Whether the run has a record."""
        return (self.folder(replica) / RECORD).exists()

    def write(self, outcome: Outcome, record: Record, graph: PairGraph, node_ids: Sequence[str] | None = None) -> None:
        """Write the files of a finished run, the record last.

        The probabilities of the outcome of a model that rewires belong to the pairs of `graph`.
        """
        folder = self.folder(outcome.replica)
        for left_over in folder.glob(".*.*"):  # files that a killed process has not finished
            left_over.unlink(missing_ok=True)
        if outcome.probability is not None:
            tensors = {"pairs": graph.pair_index.int(), "probability": outcome.probability}
            tensors["is_original"] = graph.is_original
            if graph.pair_weight is not None:
                tensors["given_weight"] = graph.pair_weight.float()
            ids = None if node_ids is None else [str(name) for name in node_ids]
            about = {"num_nodes": graph.num_nodes, "undirected": graph.undirected, "node_ids": ids}
            save_tensors(folder / GRAPH, tensors, about)
        save_tensors(folder / MODEL, outcome.state)
        write_atomically(folder / HISTORY, lines_with_checksum(outcome.history))
        write_atomically(folder / RECORD, json_with_checksum(record.to_dict()))

    def record(self, replica: Replica) -> Record:
        """Read the record of a finished run."""
        return read_record(self.folder(replica) / RECORD)

    def file(self, replica: Replica, name: str) -> Path:
        """File of a finished run; raises a `DataError` if it is missing."""
        path = self.folder(replica) / name
        if not self.path.exists():
            raise DataError(
                f"the folder {self.path} of these runs does not exist any more: without runs=, fit uses a temporary"
                " folder that is deleted with its result; give fit a folder with runs="
            )
        if not path.exists():
            raise DataError(f"there is no {path} any more: {AGAIN}")
        return path

    def state(self, replica: Replica) -> dict[str, Tensor]:
        """Read the parameters of a finished run, [1, ...]."""
        return load_tensors(self.file(replica, MODEL), AGAIN)[0]

    def learned(self, replicas: Iterable[Replica]) -> Learned:
        """Learned graphs of finished runs."""
        return read_learned([self.file(replica, GRAPH) for replica in replicas])

    def history(self, records: Sequence[Record]) -> DataFrame:
        """Read the curves of all runs, one row for each run and evaluated epoch."""
        from pandas import DataFrame

        rows = [
            {"split": record.split, "seed": record.seed, **row}
            for record in records
            for row in read_curve(self.file(record.replica, HISTORY))
        ]
        return DataFrame(rows, columns=list(CURVES))

    def checkpoint(self, group: Sequence[Replica]) -> Path:
        """Checkpoint of replicas that are trained together and not finished."""
        digest = hashlib.sha256(" ".join(map(str, group)).encode()).hexdigest()[:12]
        return self.path / f"checkpoint-{digest}.safetensors"

    def begun(self) -> Iterator[list[Replica]]:
        """Groups of replicas that have a checkpoint."""
        for path in sorted(self.path.glob("checkpoint-*.safetensors")):
            with suppress(DataError, ValueError, TypeError):  # training reports what is damaged
                group = [Replica.parse(name) for name in load_tensors(path)[1].get("replicas", ())]
                if group and path == self.checkpoint(group):
                    yield group

    def remove_checkpoint(self, group: Sequence[Replica]) -> None:
        """Remove the checkpoint of a group, and what a killed process has not finished of it."""
        checkpoint = self.checkpoint(group)
        for path in (checkpoint, *self.path.glob(f".{checkpoint.name}.*")):
            path.unlink(missing_ok=True)

    def tidy(self, replicas: Iterable[Replica]) -> None:
        """Remove what processes have left that were killed after they had finished a group."""
        for group in self.begun():
            if all(map(self.is_finished, group)):
                self.remove_checkpoint(group)
        for replica in replicas:
            (self.folder(replica) / LOCK).unlink(missing_ok=True)

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Write facts about the training data, unless they are there."""
        path, content = self.path / FACTS, json_with_checksum(facts)
        if not path.exists() or path.read_bytes() != content:
            write_atomically(path, content)


def read_record(path: Path) -> Record:
    """Read a record; raises a `DataError` if it is damaged or does not belong to the folder that it is in."""
    try:
        record, folder = Record(**read_json(path.read_bytes())), path.absolute().parent
        if (folder.parent.name, folder.name) != (record.fingerprint, str(record.replica)):
            raise ValueError(f"it belongs into a folder {record.fingerprint}/{record.replica}")
        return record
    except (OSError, ValueError, TypeError) as error:
        raise unreadable(f"the run record {path}", error, AGAIN) from None


def read_curve(path: Path) -> list[dict[str, Any]]:
    """Read the training curve of a run, one row per evaluated epoch."""
    try:
        return read_lines(path.read_bytes())
    except (OSError, ValueError) as error:
        raise unreadable(f"the curve {path}", error, AGAIN) from None


def read_learned(files: Sequence[Path]) -> Learned:
    """Read the learned graphs of runs on the same graph."""
    import torch

    from gumbel_mpnn.graph import PairGraph

    first, about = load_tensors(files[0], AGAIN)
    probability = torch.empty(len(files), first["pairs"].shape[1])
    for row, file in enumerate(files):
        tensors, _ = load_tensors(file, AGAIN)
        probability[row] = tensors.pop("probability")
        if any(name not in first or not torch.equal(first[name], value) for name, value in tensors.items()):
            folder = Path(os.path.commonpath(files))
            raise DataError(f"the runs under {folder} are of different graphs: give the folder of one of them")
    pairs, given = first["pairs"].long(), first["is_original"]
    graph = PairGraph.build(
        pairs[:, given], about["num_nodes"], undirected=about["undirected"], candidate_index=pairs[:, ~given]
    )
    if "given_weight" in first:  # pairs are sorted in the file as in the graph
        graph = replace(graph, pair_weight=first["given_weight"])
    return Learned(graph, probability, about["node_ids"])


def find_records(root: Path) -> Iterator[Record]:
    """Records of all finished runs under `root`, sorted by folder."""
    return (record for _, record in records_by_path(root))


def records_by_path(root: Path) -> Iterator[tuple[Path, Record]]:
    """Paths and records of all finished runs under `root`, sorted by folder.

    Records that cannot be read, such as those of copied folders, are left out with a `DataWarning`.
    """
    for path in sorted(root.glob(f"**/{RECORD}")):
        try:
            yield path, read_record(path)
        except DataError as error:
            warnings.warn(f"a run is left out: {error}", DataWarning, stacklevel=2)


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a record by `table.name`."""
    tables = {table: values for table, values in settings.items() if isinstance(values, dict)}
    return {f"{table}.{name}": value for table, values in tables.items() for name, value in values.items()}


def find_setting(run: str | Path, runs: str | Path = "runs") -> Path:
    """Folder of a setting or of one run: the folder `run` if it exists, else the setting whose fingerprint begins so.

    Fingerprints are looked up in the folder `runs`.
    """
    if Path(run).exists():
        return Path(run)
    found = []
    if re.fullmatch(r"[0-9a-f]{1,16}", str(run)):
        found = [path for path in sorted(Path(runs).glob(f"*/*/*/{run}*")) if FINGERPRINT.fullmatch(path.name)]
    if len(found) > 1:
        raise UserError(f"{str(run)!r} is ambiguous and may be {found[0]} or {found[1]}: give a folder")
    if not found:
        raise UserError(
            f"there is no finished run {str(run)!r} in {runs}: give its folder or the beginning of its fingerprint, as"
            " `gumbel-mpnn runs` lists them, or name another folder of runs (--runs, in Python runs=)"
        )
    return found[0]
