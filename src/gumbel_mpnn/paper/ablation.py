"""Ablation: Gumbel-MPNN with the paper's settings, with and without the regularizer."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.paper.base import (
    PAIRED,
    PAPER_RUNS,
    STRUCTURE_DATASETS,
    Columns,
    Job,
    differences,
    figures,
    published,
    spread,
)
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

WITHOUT = ("rewiring.regularizer_weight=0",)


class Ablation(Experiment):
    """Paired comparison of Gumbel-MPNN with and without the regularizer."""

    name = "ablation"
    title = "Gumbel-MPNN with and without its regularizer"
    headings: Mapping[str, str] = {
        "weight": "its weight",
        "without": "without %",
        "without_stderr": "std error",
        "test": "with %",
        "difference": "with − without",
        "p": "corrected p",
        "paper_without": "paper without %",
        "paper_with": "paper with %",
        "paper_difference": "paper's difference",
    }

    def plan(self) -> list[Job]:
        """Return jobs with the paper's preset, unchanged and with the weight of the regularizer set to 0."""
        return [
            Job(dataset, "gumbel-mpnn", "paper", experiment=PAPER_RUNS, overrides=overrides)
            for dataset in STRUCTURE_DATASETS
            for overrides in ((), WITHOUT)
        ]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each data set."""
        without = {job.dataset: run for job, run in results.items() if job.overrides}
        with_ = {job.dataset: run for job, run in results.items() if not job.overrides}
        paired = differences({dataset: (run, without.get(dataset)) for dataset, run in with_.items()})
        return [_row(dataset, run, without.get(dataset), paired[dataset]) for dataset, run in with_.items()]

    def numbers(self) -> list[PaperNumber]:
        """Return the numbers of both columns of the paper's table."""
        columns = {"without": ("without", "without_stderr"), "with": ("test", "stderr")}
        return [
            PaperNumber(
                dataset,
                f"test %, {which} regularizer",
                value,
                {"dataset": dataset},
                columns[which][0],
                "gumbel-mpnn",
                error,
                error_column=columns[which][1],
                preset="paper",
                accuracy=True,
            )
            for dataset, values in published("ablation").items()
            for which, (value, error) in values.items()
        ]


def _row(dataset: str, run: Run | None, without: Run | None, paired: Columns) -> Row:
    paper = published("ablation").get(dataset, {})
    (with_, _), (left_out, _) = paper.get("with", [None, None]), paper.get("without", [None, None])
    names = ("regularizer", "weight", "without", "without_stderr", "test", "stderr", "n")
    row: Columns = {
        "dataset": dataset,
        **dict.fromkeys((*names, *PAIRED)),
        "paper_without": left_out,
        "paper_with": with_,
        "paper_difference": None if with_ is None or left_out is None else with_ - left_out,
    }
    if run is None or without is None or run.settings.rewiring is None:
        return row | {"verdict": "no data"}
    values = figures(run)
    return row | {
        "regularizer": run.settings.rewiring.regularizer,
        "weight": f"{run.settings.rewiring.regularizer_weight:g}",
        "without": 100 * without.test.mean,
        "without_stderr": spread(without.test)[1],
        **{name: values[name] for name in ("test", "stderr", "n")},
        **paired,
    }
