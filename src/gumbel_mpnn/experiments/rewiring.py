"""Gumbel-MPNN against its own backbone, run by run, on full and on few labels."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.experiments.base import Job, Row, published
from gumbel_mpnn.runs import Paired, Run, compare, corrected

DATASETS = ("cora", "citeseer", "pubmed", "squirrel", "chameleon", "actor", "minesweeper", "tolokers")
FEW_LABELS = ("cora", "citeseer")


class Rewiring:
    """What rewiring adds to the model it is put around."""

    name = "rewiring"
    title = "Gumbel-MPNN against its backbone"
    headings: Mapping[str, str] = {
        "dataset": "data set",
        "backbone": "GCN %",
        "test": "Gumbel-MPNN %",
        "stderr": "std error",
        "n": "runs",
        "difference": "difference",
        "low": "95 % from",
        "high": "to",
        "p": "corrected p",
        "paper": "paper's Gumbel-MPNN %",
    }

    def plan(self) -> list[Job]:
        """The backbone, as in the table of plain models, and the rewired model, with its preset, on every data set."""
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
        """One row for each data set and number of labels, the p-values corrected for how many rows there are."""
        backbones = {(job.dataset, job.preset): run for job, run in results.items() if job.model == "gcn"}
        rewired = {job: run for job, run in results.items() if job.model == "gumbel-mpnn"}
        there = {
            job: (run, backbone)
            for job, run in rewired.items()
            if run is not None and (backbone := backbones.get((job.dataset, job.preset))) is not None
        }
        paired = corrected({job: compare(run.records, backbone.records) for job, (run, backbone) in there.items()})
        return [
            {**_head(job), **(_figures(*there[job], paired[job]) if job in there else {"verdict": "no data"})}
            for job in rewired
        ]


def _head(job: Job) -> dict[str, str | int | float | None]:
    """The columns in their order, with what is known without a run."""
    return {
        "dataset": job.dataset,
        "labels": "few" if job.preset == "few-labels" else "full",
        **dict.fromkeys(("backbone", "test", "stderr", "n", "difference", "low", "high", "p", "verdict")),
        "paper": published("accuracy")[job.dataset]["gumbel-mpnn"][0] if job.preset == "tuned" else None,
    }


def _figures(run: Run, backbone: Run, paired: Paired) -> Row:
    return {
        "backbone": 100 * backbone.test.mean,
        "test": 100 * run.test.mean,
        "stderr": 100 * run.test.stderr,
        "n": paired.n,
        "difference": 100 * paired.mean,
        "low": 100 * paired.low,
        "high": 100 * paired.high,
        "p": paired.p,
        "verdict": paired.verdict,
    }
