"""Plain models with tuned presets on the data sets of the paper."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.paper.base import Columns, Job, figures, published
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

MODELS = ("mlp", "gcn", "sage", "gat")
CHOOSING, TESTING = "plain models, which chose the readings", "other models, which test them"
"""The plain models, whose results decide how the paper is read, and all others."""
DATASETS = (
    "cora",
    "citeseer",
    "pubmed",
    "squirrel",
    "chameleon",
    "squirrel-unfiltered",
    "chameleon-unfiltered",
    "actor",
    "minesweeper",
    "tolokers",
)


class Backbones(Experiment):
    """MLP, GCN, GraphSAGE and GAT without rewiring."""

    name = "backbones"
    title = "Plain models"
    headings: Mapping[str, str] = {
        "paper": "paper %",
        "paper_pm": "paper ±",
        "difference": "ours − paper",
        "best": "best here",
    }

    def plan(self) -> list[Job]:
        """Return a job for every model on every data set."""
        return [Job(dataset, model) for dataset in DATASETS for model in MODELS]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return our result and the paper's, one row for each model and data set."""
        paper = published("accuracy")
        best: dict[str, float] = {}
        for job, run in results.items():
            if run is not None:
                best[job.dataset] = max(best.get(job.dataset, 0.0), run.val.mean)
        return [self._row(job, run, paper, best) for job, run in results.items()]

    def _row(
        self,
        job: Job,
        run: Run | None,
        paper: Mapping[str, Mapping[str, list[float]]],
        best: Mapping[str, float],
    ) -> Row:
        value, spread = paper.get(job.dataset, {}).get(job.model, [None, None])
        row: Columns = {
            "dataset": job.dataset,
            "model": job.model,
            **dict.fromkeys(("test", "std", "stderr", "n", "val")),
            "paper": value,
            "paper_pm": spread,
            "difference": None,
            "best": "no data",
        }
        if run is None:
            return row
        return row | {
            **figures(run),
            "val": 100 * run.val.mean,
            "difference": None if value is None else 100 * run.test.mean - value,
            "best": "by val" if run.val.mean == best[job.dataset] else "",
        }
