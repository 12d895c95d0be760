"""Runs: records, their folders, and `fit`, which makes them."""

from gumbel_mpnn.runs.claims import BusyError
from gumbel_mpnn.runs.fit import Monitor, Transform, fit, make_settings
from gumbel_mpnn.runs.paired import Paired, compare, corrected, holm
from gumbel_mpnn.runs.record import Record, Summary
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.store import SettingFolder, find_records, learned_graph, read_record

__all__ = [
    "BusyError",
    "Monitor",
    "Paired",
    "Record",
    "Run",
    "SettingFolder",
    "Summary",
    "Transform",
    "compare",
    "corrected",
    "find_records",
    "fit",
    "holm",
    "learned_graph",
    "make_settings",
    "read_record",
]
