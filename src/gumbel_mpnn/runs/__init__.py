"""Runs: their folders, and `fit`, which makes them."""

from gumbel_mpnn.runs.claims import BusyError
from gumbel_mpnn.runs.fit import Monitor, Transform, fit, make_settings
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.store import SettingFolder, learned_graph

__all__ = [
    "BusyError",
    "Monitor",
    "Run",
    "SettingFolder",
    "Transform",
    "fit",
    "learned_graph",
    "make_settings",
]
