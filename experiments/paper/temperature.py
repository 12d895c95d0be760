"""Temperature of the sampler: constants from 0.1 to 2, and a schedule that decreases during training."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from torch_geometric.data import Data

from experiments.charts import Chart
from experiments.experiment import PAPER_RUNS, Experiment, Job, Results
from experiments.published import published
from experiments.rows import Columns, figures, override
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run
from gumbel_mpnn.util import none_if_nan

DATASETS = ("cora", "citeseer", "pubmed", "chameleon-unfiltered")
SCHEDULES = ((0.1, 0.1), (0.5, 0.5), (1.0, 1.0), (2.0, 2.0), (1.0, 0.5))
"""Temperatures at the beginning and at the end of training."""
PAPERS_TAU = 0.1
"""Temperature that the paper uses everywhere."""
EDGE = 0.5
"""Probability from which on a pair is an edge of the learned graph."""


class Temperature(Experiment):
    """Gumbel-MPNN with several temperatures and otherwise the paper's settings, with which the graph moves."""

    name = "temperature"
    title = "The temperature of the sampled graph"
    headings: Mapping[str, str] = {
        "constant": "τ",
        "kept": "given edges kept %",
        "added": "candidates added %",
        "paper": "paper %",
    }
    measured = f"moved-{EDGE}"
    charts = tuple(
        Chart(
            "constant",
            "temperature τ of the sampler",
            f"Gumbel-MPNN on {dataset}",
            series=("schedule",),
            paper="paper",
            where={"dataset": (dataset,)},
            log_x=True,
        )
        for dataset in DATASETS
    )

    def plan(self) -> list[Job]:
        """Return a job for every schedule on every data set; the paper's temperature is that of its preset."""
        return [
            Job(
                dataset,
                "gumbel-mpnn",
                "paper",
                PAPER_RUNS,
                (override("rewiring.tau", first), override("rewiring.tau_end", last)),
            )
            for dataset in DATASETS
            for first, last in SCHEDULES
        ]

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each schedule; the published result is in the row of the paper's temperature."""
        return [
            _row(job) | ({} if run is None else {**figures(run), "val": 100 * run.val.mean, **self.kept(run)})
            for job, run in results.items()
        ]

    def measure(self, run: Run) -> Columns:
        """Return the percentages of given edges and of candidates that are in the learned graph, mean over runs."""
        each = [_shares(graph) for graph in run.graphs(threshold=0.0)]
        kept, added = (fmean(shares) for shares in zip(*each, strict=True))
        return {"kept": none_if_nan(kept), "added": none_if_nan(added)}


def _row(job: Job) -> Columns:
    """Return the row of a job without results."""
    first, last = (float(override.partition("=")[2]) for override in job.overrides)
    constant = first if first == last else None
    return {
        "dataset": job.dataset,
        "schedule": "constant" if constant else f"from {first:g} to {last:g}",
        "constant": constant,
        **dict.fromkeys(("test", "std", "stderr", "n", "val", "kept", "added")),
        "paper": published("accuracy")[job.dataset]["gumbel-mpnn"][0] if constant == PAPERS_TAU else None,
    }


def _shares(pairs: Data) -> tuple[float, float]:
    """Return the percentages of given edges and of candidates that are likely; NaN if there are none of them."""
    likely, given = 100.0 * (pairs.edge_probability >= EDGE), pairs.edge_origin
    return float(likely[given].mean()), float(likely[~given].mean())
