"""Finished runs read back: records, the index of all, comparisons, exports. Nothing here waits for torch."""

from gumbel_mpnn.records.filters import Filter, flat
from gumbel_mpnn.records.index import RunIndex, SettingRow
from gumbel_mpnn.records.paired import ENOUGH_SPLITS, Paired, compare, corrected, holm
from gumbel_mpnn.records.record import HISTORY, RECORD, Record, Summary, find_records, read_record

__all__ = [
    "ENOUGH_SPLITS",
    "HISTORY",
    "RECORD",
    "Filter",
    "Paired",
    "Record",
    "RunIndex",
    "SettingRow",
    "Summary",
    "compare",
    "corrected",
    "find_records",
    "flat",
    "holm",
    "read_record",
]
