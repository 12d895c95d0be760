"""Temperature of the sampler: constants from 0.05 to 2, and two schedules that decrease during training."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.paper.base import Columns, Job, figures, published
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.chart import Chart
from gumbel_mpnn.runs import Run

DATASETS = ("cora", "citeseer", "actor")
CONSTANT = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
ANNEALED = ((1.0, 0.5), (2.0, 0.1))
PAPERS_TAU = 0.1
"""Temperature that the paper uses everywhere."""


class Temperature(Experiment):
    """Gumbel-MPNN with several temperatures and otherwise tuned settings."""

    name = "temperature"
    title = "The temperature of the sampled graph"
    headings: Mapping[str, str] = {
        "constant": "τ",
        "paper": "paper %",
    }
    charts = tuple(
        Chart(
            x="constant",
            y="test",
            series=("schedule",),
            x_label="temperature τ of the sampler",
            y_label="test accuracy, %",
            title=f"Gumbel-MPNN on {dataset}",
            paper="paper",
            where={"dataset": (dataset,)},
            log_x=True,
        )
        for dataset in DATASETS
    )

    def plan(self) -> list[Job]:
        """Return a job for every schedule on every data set."""
        schedules = (*((tau, tau) for tau in CONSTANT), *ANNEALED)
        return [
            Job(dataset, "gumbel-mpnn", overrides=(f"rewiring.tau={first}", f"rewiring.tau_end={last}"))
            for dataset in DATASETS
            for first, last in schedules
        ]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each schedule; the published result is in the row of the paper's temperature."""
        return [_row(job, run) for job, run in results.items()]


def _row(job: Job, run: Run | None) -> Row:
    first, last = (float(override.partition("=")[2]) for override in job.overrides)
    constant = first if first == last else None
    row: Columns = {
        "dataset": job.dataset,
        "schedule": "constant" if constant else f"from {first:g} to {last:g}",
        "constant": constant,
        **dict.fromkeys(("test", "std", "stderr", "n", "val")),
        "paper": published("accuracy")[job.dataset]["gumbel-mpnn"][0] if constant == PAPERS_TAU else None,
    }
    return row if run is None else row | {**figures(run), "val": 100 * run.val.mean}
