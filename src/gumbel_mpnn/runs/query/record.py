"""Records of finished runs, and summaries of several runs."""

from __future__ import annotations

import math
import re
import reprlib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from gumbel_mpnn._util import checksums
from gumbel_mpnn._util.errors import LARGEST_INTEGER, DataError, DataWarning, unreadable
from gumbel_mpnn.config.replica import REPLICA_NAME, Replica

RECORD, HISTORY = "record.json", "history.jsonl"
"""Files in the folder of a run: its record, which is written last, and its curves."""
FINGERPRINT = re.compile(r"[0-9a-f]{16}")
"""Name of the folder of a setting."""
TRIALS = "tune"
"""Experiment of the trials of a search; settings are chosen among them on validation, so test results are hidden."""

_KINDS: dict[Any, Any] = {
    "str": str,
    "int": int,
    "float": int | float,
    "float | None": int | float | None,
    "dict[str, Any]": dict,
    "dict[str, str]": dict,
}
"""Allowed types of a field of `Record` in a file, by the declared type."""
_ROUNDING = 1e-9
_RANGES = {
    "split": (0, LARGEST_INTEGER),
    "seed": (-LARGEST_INTEGER, LARGEST_INTEGER),
    "val": (0, 1),
    "test": (0, 1),
    "best_epoch": (0, LARGEST_INTEGER),
    "epochs": (0, LARGEST_INTEGER),
    "seconds": (0, LARGEST_INTEGER),
}
"""Values that a number of `Record` can have; the integers are those of the index."""


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
        """Replica of the run."""
        return Replica(self.split, self.seed)

    @property
    def device(self) -> str | None:
        """Device that the run was trained on, if it is known."""
        return self.machine.get("device")

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


def read_record(path: Path) -> Record:
    """Read a record; raises a `DataError` if it is damaged or does not belong to the folder that it is in."""
    try:
        values = checksums.from_json(path.read_bytes())
        known = {field.name for field in fields(Record)}  # a newer version may have written more
        record = Record(**{name: value for name, value in values.items() if name in known})
        _check_kinds(record)
        _check_values(record)
        _check_place(record, path.absolute().parent)
        return record
    except (OSError, ValueError, TypeError) as error:
        raise unreadable(f"the run record {path}", error, "delete its folder to do the run again") from None


def read_curve(path: Path) -> list[dict[str, Any]]:
    """Read the training curve of a run, one row per evaluated epoch; raises a `FileNotFoundError` if there is none."""
    try:
        rows = checksums.from_lines(path.read_bytes())
        if not all("epoch" in row for row in rows):
            raise ValueError("a line has no epoch")
        return rows
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise unreadable(f"the curve {path}", error, "delete its folder to do the run again") from None


def _check_kinds(record: Record) -> None:
    """Raise a `TypeError` that names the first entry of a wrong type."""
    for field in fields(record):
        _check_kind(field.name, getattr(record, field.name), _KINDS[field.type])
    settings = record.settings
    _check_kind("dataset", settings.get("dataset"), str)
    _check_kind("model", settings.get("model"), dict)
    _check_kind("model.name", settings["model"].get("name"), str)
    _check_kind("device", record.machine.get("device", ""), str)


def _check_kind(name: str, value: object, kind: Any) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"its {name!r} is {reprlib.repr(value)}")


def _check_values(record: Record) -> None:
    """Raise a `ValueError` that names the first number that cannot be."""
    for name, (low, high) in _RANGES.items():
        value = getattr(record, name)
        if value is None or (value != value and name in ("val", "test")):  # older versions wrote NaN for no value
            continue
        if not low - _ROUNDING <= value <= high + _ROUNDING:
            raise ValueError(f"its {name!r} is {reprlib.repr(value)}, which is not between {low} and {high}")


def _check_place(record: Record, folder: Path) -> None:
    """Raise a `ValueError` if the names of the folders are those of another run."""
    if REPLICA_NAME.fullmatch(folder.name) and folder.name != str(record.replica):
        raise ValueError(f"it is of {record.replica}, which is not the name of its folder")
    if FINGERPRINT.fullmatch(folder.parent.name) and folder.parent.name != record.fingerprint:
        raise ValueError(f"its fingerprint {reprlib.repr(record.fingerprint)} is not the name of the folder above")


def find_records(root: Path) -> Iterator[Record]:
    """Records of all finished runs under `root`, sorted by folder.

    Records that cannot be read, that are not in their place, or that are copies are left out with a `DataWarning`.
    """
    first: dict[tuple[Path, str, Replica], Path] = {}
    for path in sorted(root.glob(f"**/{RECORD}"), key=lambda path: (not _in_place(path), path)):
        try:
            record = read_record(path)
        except DataError as error:
            warnings.warn(f"a run is left out: {error}", DataWarning, stacklevel=2)
            continue
        of_model = path.absolute().parents[2] if len(path.absolute().parents) > 2 else path.absolute().parent
        original = first.setdefault((of_model, record.fingerprint, record.replica), path)
        if original is path:
            yield record
        else:
            warnings.warn(f"{path} is a copy of {original}: it is left out", DataWarning, stacklevel=2)


def _in_place(path: Path) -> bool:
    """Whether a record is in folders that have the names of a run and of a setting."""
    folder = path.absolute().parent
    return bool(REPLICA_NAME.fullmatch(folder.name) and FINGERPRINT.fullmatch(folder.parent.name))
