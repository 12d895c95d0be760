"""Finished runs read back: records, the index of all, comparisons, exports.

Nothing here waits for torch but the export to TensorBoard, whose files torch writes.
"""

from gumbel_mpnn.records.filters import Filter, flat
from gumbel_mpnn.records.index import RunIndex, SettingRow
from gumbel_mpnn.records.paired import ENOUGH_SPLITS, Paired, compare, corrected, holm
from gumbel_mpnn.records.record import HISTORY, RECORD, Record, Summary, find_records, read_record
from gumbel_mpnn.records.replica import Replica

__all__ = [
    "ENOUGH_SPLITS",
    "HISTORY",
    "RECORD",
    "Filter",
    "Paired",
    "Record",
    "Replica",
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
