"""Runs: records, their folders, and `fit`, which makes them."""

from gumbel_mpnn.runs.fit import Monitor, Run, fit, make_settings
from gumbel_mpnn.runs.record import Record, Summary
from gumbel_mpnn.runs.store import SettingFolder, find_records, read_record

__all__ = [
    "Monitor",
    "Record",
    "Run",
    "SettingFolder",
    "Summary",
    "find_records",
    "fit",
    "make_settings",
    "read_record",
]
