"""Finished runs with results of our own."""

from dataclasses import replace

import gumbel_mpnn as gm
from helpers import changed, small_data

SPLITS = 8
EVEN = [0.5 + 0.01 * split for split in range(SPLITS)]
SHORT = ("train.epochs=1", "model.hidden_channels=4")


def fit(data=None, model="gcn", overrides=SHORT, **options):
    """A narrow model without a preset on a small graph, for an epoch."""
    data = changed(small_data(), name="toy") if data is None else data
    return gm.fit(data, model, preset=None, overrides=overrides, device="cpu", **options)


def scoring(run, test=None, val=None):
    """The same runs with other results: a number for all of them, or one for each."""
    lists = [each if isinstance(each, list) or each is None else [each] * run.n for each in (test, val)]
    records = list(run.records)
    for name, values in zip(("test", "val"), lists, strict=True):
        if values is not None:
            records = [replace(record, **{name: value}) for record, value in zip(records, values, strict=True)]
    return replace(run, records=tuple(records))


def shifted(run, shift):
    """The same runs with test results from 0.5 on, moved by `shift`; each split differs from the others."""
    return scoring(run, [0.5 + 0.01 * record.split + shift for record in run.records])
