"""Runs: their folders, `fit`, which makes them, and `find`, which only looks."""

from gumbel_mpnn.runs.claims import BusyError
from gumbel_mpnn.runs.finished import find
from gumbel_mpnn.runs.fit import Monitor, fit
from gumbel_mpnn.runs.learned import learned_graph
from gumbel_mpnn.runs.reader import DataReader, Transform
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.settings import Preset, find_preset, folder_name, make_settings
from gumbel_mpnn.runs.store import SettingFolder

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
