"""Runs: described by a `RunSpec`, trained by `fit`, kept in a folder, and listed by calling this package.

`gm.runs("runs")` is a table of the finished runs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from gumbel_mpnn.runs.store import TRIALS, flat, records_by_path

if TYPE_CHECKING:
    from pandas import DataFrame

    from gumbel_mpnn.runs.compare import ONE_SPLIT, Paired, corrected
    from gumbel_mpnn.runs.predict import models_of, task_of
    from gumbel_mpnn.runs.run import Run
    from gumbel_mpnn.runs.spec import RunSpec, find_preset
    from gumbel_mpnn.runs.store import Record, Summary

__all__ = [
    "ONE_SPLIT",
    "Paired",
    "Record",
    "Run",
    "RunSpec",
    "Summary",
    "corrected",
    "find_preset",
    "flat",
    "list_runs",
    "models_of",
    "task_of",
]
_MODULE_OF = {
    **dict.fromkeys(["ONE_SPLIT", "Paired", "corrected"], "compare"),
    **dict.fromkeys(["models_of", "task_of"], "predict"),
    **dict.fromkeys(["RunSpec", "find_preset"], "spec"),
    **dict.fromkeys(["Record", "Summary"], "store"),
    "Run": "run",
}

OF_A_SETTING = ["folder", "experiment", "dataset", "model", "fingerprint", "data_hash", "metric"]
OF_A_RUN = ["split", "seed", "val", "test", "best_epoch", "epochs", "seconds", "device"]
"""Columns that the runs of a setting share, besides the settings themselves, and those of each run."""


class _Package(ModuleType):
    """This package, which is also a function."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """`list_runs` with the same arguments."""
        return list_runs(*arguments, **options)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Import the module of a name when it is first used, so that the command starts without torch."""
    if name in _MODULE_OF:
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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

    rows = list[dict[str, Any]]()
    for path, record in records_by_path(Path(folder)):
        parents, settings = path.absolute().parents, record.settings
        experiment = parents[4].name if len(parents) > 5 else ""
        of_setting = {"dataset": settings["dataset"], "model": settings["model"]["name"], **flat(settings)}
        row = vars(record) | {"folder": str(path.parents[1]), "experiment": experiment} | of_setting
        hidden = {"test": None} if experiment == TRIALS and not tests_of_trials else {}
        rows.append(row | hidden | {"device": record.machine.get("device")})
    names = dict.fromkeys(name for row in rows for name in row if "." in name and name != "model.name")
    runs = DataFrame(rows, columns=[*OF_A_SETTING, *OF_A_RUN, *names])
    runs = runs.astype({"val": float, "test": float, "seconds": float})
    if by == "run":
        return runs.sort_values(["folder", "split", "seed"]).reset_index(drop=True)
    table = runs.groupby(OF_A_SETTING, as_index=False).agg(
        n=("split", "size"),
        test=("test", "mean"),
        std=("test", "std"),
        stderr=("test", "sem"),
        val=("val", "mean"),
        seconds=("seconds", "sum"),
    )
    return table.join(runs.drop_duplicates("folder").set_index("folder")[list(names)], on="folder")
