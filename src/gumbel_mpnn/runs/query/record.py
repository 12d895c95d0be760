"""What is known of one finished run, and the summary of several."""

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
"""Files in the folder of a run: what it ended in, written last, and its curves."""

_KINDS: dict[Any, Any] = {
    "str": str,
    "int": int,
    "float": int | float,
    "dict[str, Any]": dict,
    "dict[str, str]": dict,
}
"""What a field of `Record` may be in a file, by how the field is declared."""


@dataclass(frozen=True)
class Record:
    """A finished run: its settings, its figures and the machine that made them."""

    fingerprint: str
    data_hash: str
    settings: dict[str, Any]
    split: int
    seed: int
    metric: str
    val: float
    test: float
    best_epoch: int
    epochs: int
    seconds: float
    machine: dict[str, str]

    @property
    def replica(self) -> Replica:
        """Which run of its setting it is."""
        return Replica(self.split, self.seed)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Summary:
    """Mean, sample standard deviation, standard error and number of some figures, as shares of 1."""

    mean: float
    std: float
    stderr: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Summary:
        """The summary of `values`; the spread of a single one is 0."""
        values = list(values)
        n, mean = len(values), math.fsum(values) / len(values)
        std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else 0.0
        return cls(mean=mean, std=std, stderr=std / math.sqrt(n), n=n)

    def to_dict(self) -> dict[str, float | None]:
        """Plain JSON values; a single figure has no spread."""
        std, stderr = (self.std, self.stderr) if self.n > 1 else (None, None)
        return {"mean": self.mean, "std": std, "stderr": stderr}

    def __str__(self) -> str:
        if self.n == 1:
            return f"{100 * self.mean:.2f} (one run)"
        return f"{100 * self.mean:.2f} ± {100 * self.std:.2f} (std of {self.n})"


def read_record(path: Path) -> Record:
    """The record in a file."""
    try:
        record = Record(**json.loads(path.read_text(encoding="utf-8")))
        _check_kinds(record)
        return record
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"cannot read the run record {path}: {error}; delete its folder to do the run again") from None


def _check_kinds(record: Record) -> None:
    """Raise a `TypeError` that names the first entry that is of another kind than a run writes."""
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
    """Every finished run under `root`, in the order of their folders."""
    yield from map(read_record, sorted(root.glob(f"**/{RECORD}")))
