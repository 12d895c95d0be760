"""Runs: described by a `RunSpec`, trained by `fit`, kept in a folder, and listed by calling this package.

`gm.runs("runs")` is a table of the finished runs. Names are imported when they are first used, since tables and records
do not need torch.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gumbel_mpnn.runs.auto import AutoSpec
    from gumbel_mpnn.runs.choice import LADDERS, Choice
    from gumbel_mpnn.runs.entry import (
        AnySpec,
        default_model,
        describe,
        final_spec,
        find_any,
        fit,
        fit_any,
        missing_preset,
    )
    from gumbel_mpnn.runs.fitting import Monitor, Place, Step, find_spec, fit_spec
    from gumbel_mpnn.runs.graph_file import learned_graph
    from gumbel_mpnn.runs.listing import find_setting, list_runs
    from gumbel_mpnn.runs.loading import load_run
    from gumbel_mpnn.runs.machines import Machines, default_workers, helped
    from gumbel_mpnn.runs.paired import ENOUGH, ONE_SPLIT, Paired, compare, corrected
    from gumbel_mpnn.runs.predictions import predictions_of
    from gumbel_mpnn.runs.reader import DataReader, Transform
    from gumbel_mpnn.runs.record import Record, Summary, find_records, flat
    from gumbel_mpnn.runs.run import Run
    from gumbel_mpnn.runs.spec import RunSpec, find_preset
    from gumbel_mpnn.runs.store import SettingFolder
    from gumbel_mpnn.runs.trained import models_of, task_of
    from gumbel_mpnn.runs.trials import Search, Trial
    from gumbel_mpnn.runs.tuned import Tuning
    from gumbel_mpnn.runs.tuning import tune
    from gumbel_mpnn.runs.work_queue import BusyError

_NAMES_OF = {
    "auto": ["AutoSpec"],
    "choice": ["LADDERS", "Choice"],
    "entry": [
        "AnySpec",
        "default_model",
        "describe",
        "final_spec",
        "find_any",
        "fit",
        "fit_any",
        "missing_preset",
    ],
    "fitting": ["Monitor", "Place", "Step", "find_spec", "fit_spec"],
    "graph_file": ["learned_graph"],
    "listing": ["find_setting", "list_runs"],
    "loading": ["load_run"],
    "machines": ["Machines", "default_workers", "helped"],
    "paired": ["ENOUGH", "ONE_SPLIT", "Paired", "compare", "corrected"],
    "predictions": ["predictions_of"],
    "reader": ["DataReader", "Transform"],
    "record": ["Record", "Summary", "find_records", "flat"],
    "run": ["Run"],
    "spec": ["RunSpec", "find_preset"],
    "store": ["SettingFolder"],
    "trained": ["models_of", "task_of"],
    "trials": ["Search", "Trial"],
    "tuned": ["Tuning"],
    "tuning": ["tune"],
    "work_queue": ["BusyError"],
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}
__all__ = [
    "ENOUGH",
    "LADDERS",
    "ONE_SPLIT",
    "AnySpec",
    "AutoSpec",
    "BusyError",
    "Choice",
    "DataReader",
    "Machines",
    "Monitor",
    "Paired",
    "Place",
    "Record",
    "Run",
    "RunSpec",
    "Search",
    "SettingFolder",
    "Step",
    "Summary",
    "Transform",
    "Trial",
    "Tuning",
    "compare",
    "corrected",
    "default_model",
    "default_workers",
    "describe",
    "final_spec",
    "find_any",
    "find_preset",
    "find_records",
    "find_setting",
    "find_spec",
    "fit",
    "fit_any",
    "fit_spec",
    "flat",
    "helped",
    "learned_graph",
    "list_runs",
    "load_run",
    "missing_preset",
    "models_of",
    "predictions_of",
    "task_of",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Import a module when one of its names is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gumbel_mpnn.runs' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"gumbel_mpnn.runs.{_MODULE_OF[name]}"), name)
    return value


class _Package(ModuleType):
    """This package, which is also a function."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """`list_runs` with the same arguments."""
        return self.list_runs(*arguments, **options)


sys.modules[__name__].__class__ = _Package
