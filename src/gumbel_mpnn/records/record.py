"""What is known of one finished run, and the summary of several."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gumbel_mpnn.errors import DataError
from gumbel_mpnn.records.replica import Replica

RECORD, HISTORY = "record.json", "history.jsonl"
"""Files in the folder of a run: what it ended in, written last, and its curves."""


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
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"cannot read the run record {path}: {error}; delete its folder to do the run again") from None


def find_records(root: Path) -> Iterator[Record]:
    """Every finished run under `root`, in the order of their folders."""
    yield from map(read_record, sorted(root.glob(f"**/{RECORD}")))
