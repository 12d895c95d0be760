"""Records of finished runs, and summaries of several runs."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.config.replica import Replica

RECORD, HISTORY = "record.json", "history.jsonl"
"""Files in the folder of a run: its record, which is written last, and its curves."""
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
    """Read a record."""
    try:
        record = Record(**json.loads(path.read_text(encoding="utf-8")))
        _check_kinds(record)
        return record
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"cannot read the run record {path}: {error}; delete its folder to do the run again") from None


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


def find_records(root: Path) -> Iterator[Record]:
    """Records of all finished runs under `root`, sorted by folder."""
    yield from map(read_record, sorted(root.glob(f"**/{RECORD}")))
