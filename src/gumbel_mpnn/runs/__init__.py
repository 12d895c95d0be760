"""Runs: `fit` makes them, the store keeps them, and `query` reads them back without torch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gumbel_mpnn.runs.finished import find
    from gumbel_mpnn.runs.fitting import Monitor, fit
    from gumbel_mpnn.runs.graph_file import learned_graph
    from gumbel_mpnn.runs.reader import DataReader, Transform
    from gumbel_mpnn.runs.run import Run
    from gumbel_mpnn.runs.settings import Preset, find_preset, folder_name, make_settings
    from gumbel_mpnn.runs.store import SettingFolder
    from gumbel_mpnn.runs.work_queue import BusyError

__all__ = [
    "BusyError",
    "DataReader",
    "Monitor",
    "Preset",
    "Run",
    "SettingFolder",
    "Transform",
    "find",
    "find_preset",
    "fit",
    "folder_name",
    "learned_graph",
    "make_settings",
]

_MODULE_OF = {
    **dict.fromkeys(["DataReader", "Transform"], "reader"),
    **dict.fromkeys(["Monitor", "fit"], "fitting"),
    **dict.fromkeys(["Preset", "find_preset", "folder_name", "make_settings"], "settings"),
    "BusyError": "work_queue",
    "Run": "run",
    "SettingFolder": "store",
    "find": "finished",
    "learned_graph": "graph_file",
}


def __getattr__(name: str) -> Any:
    """Import a module when one of its names is first asked for: `query` does not wait for torch."""
    if name in _MODULE_OF:
        value = getattr(import_module(f"gumbel_mpnn.runs.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'gumbel_mpnn.runs' has no attribute {name!r}")
