"""Records of finished runs, and summaries of several runs."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gumbel_mpnn.settings.replica import REPLICA_NAME, Replica
from gumbel_mpnn.util.errors import DataError, DataWarning, unreadable
from gumbel_mpnn.util.files import read_json, read_lines

RECORD, HISTORY = "record.json", "history.jsonl"
"""Files in the folder of a run: its record, which is written last, and its curves."""
FINGERPRINT = re.compile(r"[0-9a-f]{16}")
"""Name of the folder of a setting."""
TRIALS = "tune"
"""Experiment of the trials of a search; settings are chosen among them on validation, so test results are hidden."""


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


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a record by `table.name`."""
    tables = {table: values for table, values in settings.items() if isinstance(values, dict)}
    return {f"{table}.{name}": value for table, values in tables.items() for name, value in values.items()}


def read_record(path: Path) -> Record:
    """Read a record; raises a `DataError` if it is damaged or does not belong to the folder that it is in."""
    try:
        record = Record(**read_json(path.read_bytes()))
        _check_folder(record, path.absolute().parent)
        return record
    except (OSError, ValueError, TypeError) as error:
        raise unreadable(f"the run record {path}", error, "delete its folder to do the run again") from None


def read_curve(path: Path) -> list[dict[str, Any]]:
    """Read the training curve of a run, one row per evaluated epoch; raises a `FileNotFoundError` if there is none."""
    try:
        return read_lines(path.read_bytes())
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise unreadable(f"the curve {path}", error, "delete its folder to do the run again") from None


def _check_folder(record: Record, folder: Path) -> None:
    """Raise a `ValueError` if the names of the folders are those of another run."""
    if REPLICA_NAME.fullmatch(folder.name) and folder.name != str(record.replica):
        raise ValueError(f"it is of {record.replica}, which is not the name of its folder")
    if FINGERPRINT.fullmatch(folder.parent.name) and folder.parent.name != record.fingerprint:
        raise ValueError(f"its fingerprint {record.fingerprint} is not the name of the folder above")


def find_records(root: Path) -> Iterator[Record]:
    """Records of all finished runs under `root`, sorted by folder."""
    return (record for _, record in records_by_path(root))


def records_by_path(root: Path) -> Iterator[tuple[Path, Record]]:
    """Paths and records of all finished runs under `root`, sorted by folder.

    Records that cannot be read, and those of folders that were copied under another name, are left out with a
    `DataWarning`.
    """
    first: dict[tuple[Path, str, Replica], Path] = {}
    for path in sorted(root.glob(f"**/{RECORD}"), key=lambda path: (not _has_usual_name(path), path)):
        try:
            record = read_record(path)
        except DataError as error:
            warnings.warn(f"a run is left out: {error}", DataWarning, stacklevel=2)
            continue
        beside = path.absolute().parents[2] if len(path.absolute().parents) > 2 else path.absolute().parent
        original = first.setdefault((beside, record.fingerprint, record.replica), path)
        if original is path:
            yield path, record
        else:
            warnings.warn(f"{path} is a copy of {original}: it is left out", DataWarning, stacklevel=2)


def _has_usual_name(path: Path) -> bool:
    """Whether a record is in folders that have the names of a run and of a setting."""
    folder = path.absolute().parent
    return bool(REPLICA_NAME.fullmatch(folder.name) and FINGERPRINT.fullmatch(folder.parent.name))
