"""Paired comparison of Gumbel-MPNN with its backbone, with all and with few labels."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.paper.base import PAIRED, Columns, Job, differences, figures, published
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

DATASETS = ("cora", "citeseer", "pubmed", "squirrel", "chameleon", "actor", "minesweeper", "tolokers")
FEW_LABELS = ("cora", "citeseer")


class Rewiring(Experiment):
    """The effect of rewiring on a GCN."""

    name = "rewiring"
    title = "Gumbel-MPNN against its backbone"
    headings: Mapping[str, str] = {
        "backbone": "GCN %",
        "test": "Gumbel-MPNN %",
        "p": "corrected p",
        "paper": "paper's Gumbel-MPNN %",
    }

    def plan(self) -> list[Job]:
        """Return jobs for the GCN, shared with `backbones`, and for Gumbel-MPNN on every data set."""
        full = [
            (Job(dataset, "gcn", experiment="backbones"), Job(dataset, "gumbel-mpnn", experiment=self.name))
            for dataset in DATASETS
        ]
        few = [
            (
                Job(dataset, "gcn", "few-labels", experiment=self.name),
                Job(dataset, "gumbel-mpnn", "few-labels", experiment=self.name),
            )
            for dataset in FEW_LABELS
        ]
        return [job for pair in full + few for job in pair]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each data set and number of labels, with p-values corrected for the number of rows."""
        jobs = {_key(job): job for job in results}
        backbones = {_key(job): run for job, run in results.items() if job.model == "gcn"}
        rewired = {_key(job): run for job, run in results.items() if job.model == "gumbel-mpnn"}
        paired = differences({key: (rewired.get(key), backbones.get(key)) for key in jobs})
        return [_row(job, rewired.get(key), backbones.get(key), paired[key]) for key, job in jobs.items()]


def _key(job: Job) -> str:
    return f"{job.preset}/{job.dataset}"


def _row(job: Job, run: Run | None, backbone: Run | None, paired: Columns) -> Row:
    row: Columns = {
        "dataset": job.dataset,
        "labels": "few" if job.preset == "few-labels" else "full",
        **dict.fromkeys(("backbone", "test", "stderr", "n", *PAIRED)),
        "paper": published("accuracy")[job.dataset]["gumbel-mpnn"][0] if job.preset == "tuned" else None,
    }
    if run is None and backbone is None:
        return row | {"verdict": "no data"}
    if backbone is not None:
        row["backbone"] = 100 * backbone.test.mean
    if run is not None:
        values = figures(run)
        row |= {name: values[name] for name in ("test", "stderr", "n")}
    return row | paired
