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
        find_any,
        fit,
        fit_any,
        missing_preset,
    )
    from gumbel_mpnn.runs.estimating import Estimate, estimate
    from gumbel_mpnn.runs.final import final_spec
    from gumbel_mpnn.runs.fitting import Monitor, Place, Step, find_spec, fit_spec
    from gumbel_mpnn.runs.graph_file import learned_graph
    from gumbel_mpnn.runs.loading import load_run
    from gumbel_mpnn.runs.machines import Machines, helped
    from gumbel_mpnn.runs.predictions import predictions_of
    from gumbel_mpnn.runs.reader import DataReader, Transform
    from gumbel_mpnn.runs.run import Run
    from gumbel_mpnn.runs.spec import RunSpec, find_preset
    from gumbel_mpnn.runs.store import SettingFolder
    from gumbel_mpnn.runs.trials import Search, Trial
    from gumbel_mpnn.runs.tuning import Tuning, tune
    from gumbel_mpnn.runs.work_queue import BusyError

_MODULE_OF = {
    **dict.fromkeys(
        [
            "AnySpec",
            "default_model",
            "describe",
            "find_any",
            "fit",
            "fit_any",
            "missing_preset",
        ],
        "entry",
    ),
    **dict.fromkeys(["LADDERS", "Choice"], "choice"),
    **dict.fromkeys(["Monitor", "Place", "Step", "find_spec", "fit_spec"], "fitting"),
    **dict.fromkeys(["DataReader", "Transform"], "reader"),
    **dict.fromkeys(["Machines", "helped"], "machines"),
    **dict.fromkeys(["RunSpec", "find_preset"], "spec"),
    **dict.fromkeys(["Search", "Trial"], "trials"),
    **dict.fromkeys(["Tuning", "tune"], "tuning"),
    **dict.fromkeys(["Estimate", "estimate"], "estimating"),
    "AutoSpec": "auto",
    "BusyError": "work_queue",
    "Run": "run",
    "final_spec": "final",
    "SettingFolder": "store",
    "learned_graph": "graph_file",
    "load_run": "loading",
    "predictions_of": "predictions",
}
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
