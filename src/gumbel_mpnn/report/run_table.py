"""Tables of runs."""

from __future__ import annotations

from collections.abc import Iterable

from gumbel_mpnn.report.table import Table
from gumbel_mpnn.runs import Run

METRIC_NAMES = {"accuracy": "accuracy %", "roc_auc": "ROC-AUC %"}


def run_table(runs: Iterable[Run]) -> Table:
    """One row for each setting: test and validation figures in per cent."""
    return Table(
        columns=["dataset", "model", "metric", "n", "test", "std", "stderr", "val", "seconds"],
        rows=[
            [
                run.settings.dataset,
                run.settings.model,
                METRIC_NAMES[run.metric],
                run.n,
                100 * run.test.mean,
                *((100 * run.test.std, 100 * run.test.stderr) if run.n > 1 else (None, None)),
                100 * run.val.mean,
                run.seconds,
            ]
            for run in runs
        ],
        headings={"dataset": "data set", "stderr": "std error", "n": "runs"},
    )
