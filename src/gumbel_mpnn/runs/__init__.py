"""Runs: described by a `RunSpec`, trained by `fit`, saved in the run store, and read by `query` without torch."""

from importlib import import_module
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
    from gumbel_mpnn.runs.estimating import Estimate, estimate
    from gumbel_mpnn.runs.fitting import Monitor, Place, Step, find_spec, fit_spec
    from gumbel_mpnn.runs.graph_file import learned_graph
    from gumbel_mpnn.runs.loading import load_run
    from gumbel_mpnn.runs.machines import Machines, default_workers, helped
    from gumbel_mpnn.runs.predictions import predictions_of
    from gumbel_mpnn.runs.reader import DataReader, Transform
    from gumbel_mpnn.runs.run import Run
    from gumbel_mpnn.runs.spec import RunSpec, find_preset
    from gumbel_mpnn.runs.store import SettingFolder
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
    "estimating": ["Estimate", "estimate"],
    "fitting": ["Monitor", "Place", "Step", "find_spec", "fit_spec"],
    "graph_file": ["learned_graph"],
    "loading": ["load_run"],
    "machines": ["Machines", "default_workers", "helped"],
    "predictions": ["predictions_of"],
    "reader": ["DataReader", "Transform"],
    "run": ["Run"],
    "spec": ["RunSpec", "find_preset"],
    "store": ["SettingFolder"],
    "trials": ["Search", "Trial"],
    "tuned": ["Tuning"],
    "tuning": ["tune"],
    "work_queue": ["BusyError"],
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}
__all__ = [
    "LADDERS",
    "AnySpec",
    "AutoSpec",
    "BusyError",
    "Choice",
    "DataReader",
    "Estimate",
    "Machines",
    "Monitor",
    "Place",
    "Run",
    "RunSpec",
    "Search",
    "SettingFolder",
    "Step",
    "Transform",
    "Trial",
    "Tuning",
    "default_model",
    "default_workers",
    "describe",
    "estimate",
    "final_spec",
    "find_any",
    "find_preset",
    "find_spec",
    "fit",
    "fit_any",
    "fit_spec",
    "helped",
    "learned_graph",
    "load_run",
    "missing_preset",
    "predictions_of",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Import a module when one of its names is first used, so that `query` does not import torch."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gumbel_mpnn.runs' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"gumbel_mpnn.runs.{_MODULE_OF[name]}"), name)
    return value
