"""Records of finished runs, summaries of several, and lists of all in a folder, as a pandas DataFrame."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gumbel_mpnn.settings import Replica
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError, unreadable
from gumbel_mpnn.util.files import read_json, read_lines

if TYPE_CHECKING:
    from pandas import DataFrame

RECORD, HISTORY = "record.json", "history.jsonl"
"""Files in the folder of a run: its record, which is written last, and its curves."""
FINGERPRINT = re.compile(r"[0-9a-f]{16}")
"""Name of the folder of a setting."""
OF_A_SETTING = ["folder", "experiment", "dataset", "model", "fingerprint", "data_hash", "metric"]
"""Columns that the runs of a setting share, besides the settings themselves."""
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
        record, folder = Record(**read_json(path.read_bytes())), path.absolute().parent
        if (folder.parent.name, folder.name) != (record.fingerprint, str(record.replica)):
            raise ValueError(f"it belongs into a folder {record.fingerprint}/{record.replica}")
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


def list_runs(
    folder: str | Path = "runs", by: Literal["run", "setting"] = "run", *, tests_of_trials: bool = False
) -> DataFrame:
    """List the finished runs in a folder, such as `gm.runs("runs").query("dataset == 'cora' and test > 0.8")`.

    Columns of both tables are `folder` (of the setting), `experiment`, `dataset`, `model`, `fingerprint`, `data_hash`,
    `metric` and all settings by `table.name`. A run has `split`, `seed`, `val`, `test`, `best_epoch`, `epochs`,
    `seconds` and `device`. A setting has the number of its runs `n`, the mean of `val`, the sum of `seconds`, and of
    the test metric the mean `test`, `std` and `stderr`. Metrics are shares between 0 and 1.

    Args:
        folder: Folder of runs, or a folder in it.
        by: One row for each `run`, or for each `setting`.
        tests_of_trials: Whether to show test results of the trials of `tune` too, which are left empty by default,
            since settings are chosen among them.
    """
    from pandas import DataFrame

    rows, settings = list[dict[str, Any]](), dict[str, dict[str, Any]]()
    for path, record in records_by_path(Path(folder)):
        place, parents = path.parents[1], path.absolute().parents
        experiment = parents[4].name if len(parents) > 5 else ""
        settings.setdefault(str(place), flat(record.settings))
        rows.append(
            {
                "folder": str(place),
                "experiment": experiment,
                "dataset": record.settings["dataset"],
                "model": record.settings["model"]["name"],
                "fingerprint": record.fingerprint,
                "data_hash": record.data_hash,
                "metric": record.metric,
                "split": record.split,
                "seed": record.seed,
                "val": record.val,
                "test": record.test if tests_of_trials or experiment != TRIALS else None,
                "best_epoch": record.best_epoch,
                "epochs": record.epochs,
                "seconds": record.seconds,
                "device": record.machine.get("device"),
            }
        )
    columns = [*OF_A_SETTING, "split", "seed", "val", "test", "best_epoch", "epochs", "seconds", "device"]
    runs = DataFrame(rows, columns=columns).astype({"val": float, "test": float, "seconds": float})
    table = runs.sort_values(["folder", "split", "seed"]) if by == "run" else _by_setting(runs)
    of_all = DataFrame.from_dict(settings, orient="index").drop(columns="model.name", errors="ignore")
    return table.join(of_all, on="folder").reset_index(drop=True)


def _by_setting(runs: DataFrame) -> DataFrame:
    groups = runs.groupby(OF_A_SETTING, as_index=False)
    return groups.agg(
        n=("split", "size"),
        test=("test", "mean"),
        std=("test", "std"),
        stderr=("test", "sem"),
        val=("val", "mean"),
        seconds=("seconds", "sum"),
    )


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
        others = " or another" * (len(found) > 2)
        raise UserError(f"{str(run)!r} is ambiguous and may be {found[0]} or {found[1]}{others}: give a folder")
    if not found:
        raise UserError(
            f"there is no finished run {str(run)!r} in {runs}: give its folder or the beginning of its fingerprint, as"
            " `gumbel-mpnn runs` lists them, or name another folder of runs (--runs, in Python runs=)"
        )
    return found[0]
