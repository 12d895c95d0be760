"""Gumbel-MPNN against its own backbone, run by run, on full and on few labels."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.experiments.base import Job, Row, published
from gumbel_mpnn.runs import Run, compare

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
        """One row for each data set and number of labels."""
        paper = published("accuracy")
        backbones = {(job.dataset, job.preset): run for job, run in results.items() if job.model == "gcn"}
        return [
            self._row(job, run, backbones.get((job.dataset, job.preset)), paper)
            for job, run in results.items()
            if job.model == "gumbel-mpnn"
        ]

    def _row(
        self, job: Job, run: Run | None, backbone: Run | None, paper: Mapping[str, Mapping[str, list[float]]]
    ) -> Row:
        row: dict[str, str | int | float | None] = {
            "dataset": job.dataset,
            "labels": "few" if job.preset == "few-labels" else "full",
            **dict.fromkeys(("backbone", "test", "stderr", "n", "difference", "low", "high", "verdict")),
            "paper": paper[job.dataset]["gumbel-mpnn"][0] if job.preset == "tuned" else None,
        }
        if run is None or backbone is None:
            return row | {"verdict": "no data"}
        paired = compare(run.records, backbone.records)
        return row | {
            "backbone": 100 * backbone.test.mean,
            "test": 100 * run.test.mean,
            "stderr": 100 * run.test.stderr,
            "n": paired.n,
            "difference": 100 * paired.mean,
            "low": 100 * paired.low,
            "high": 100 * paired.high,
            "verdict": paired.verdict,
        }
