"""Reads finished runs: records, the index of all runs, comparisons and exports.

Only the export to TensorBoard imports torch.
"""

from gumbel_mpnn.runs.query.filters import Filter, flat
from gumbel_mpnn.runs.query.index import RunIndex
from gumbel_mpnn.runs.query.paired import ENOUGH, ONE_SPLIT, Paired, compare, corrected, holm
from gumbel_mpnn.runs.query.record import (
    FINGERPRINT,
    HISTORY,
    RECORD,
    TRIALS,
    Record,
    Summary,
    find_records,
    read_curve,
    read_record,
)

__all__ = [
    "ENOUGH",
    "FINGERPRINT",
    "HISTORY",
    "ONE_SPLIT",
    "RECORD",
    "TRIALS",
    "Filter",
    "Paired",
    "Record",
    "RunIndex",
    "Summary",
    "compare",
    "corrected",
    "find_records",
    "flat",
    "holm",
    "read_curve",
    "read_record",
]
