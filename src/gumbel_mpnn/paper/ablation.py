"""Ablation: Gumbel-MPNN of the paper's presets, with and without the regularizer."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.paper.base import (
    PAIRED,
    PAPER_PRESETS,
    PAPER_RUNS,
    STRUCTURE_DATASETS,
    Columns,
    Job,
    differences,
    figures,
    override,
    published,
    spread,
)
from gumbel_mpnn.paper.page import RESULTS, Experiment
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run, RunSpec

WITHOUT = ("rewiring.regularizer_weight=0",)
UNNAMED = "chameleon-unfiltered"
"""Data set for which the paper gives the weight of a regularizer and not its name."""
REGULARIZERS = {"lc": "cora", "pc": "squirrel-unfiltered", "dc": "roman-empire", "mix": "citeseer"}
"""The paper's regularizers, each with a data set where it is used, whose options are taken."""


class Ablation(Experiment):
    """Paired comparison of Gumbel-MPNN with and without the regularizer."""

    name = "ablation"
    title = "Gumbel-MPNN with and without its regularizer"
    percent = (*RESULTS, "without", "without_stderr", "paper_without", "paper_with", "paper_difference")
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
        """Return jobs of both presets, unchanged and with the weight 0; all regularizers where the paper names none."""
        return [
            Job(dataset, "gumbel-mpnn", preset, experiment=PAPER_RUNS, overrides=overrides)
            for preset in PAPER_PRESETS
            for dataset in STRUCTURE_DATASETS
            for overrides in (
                WITHOUT,
                *([_chosen(preset, name) for name in REGULARIZERS] if dataset == UNNAMED else [()]),
            )
        ]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each preset, data set and regularizer, with p-values corrected within a preset."""
        without = {(job.preset, job.dataset): run for job, run in results.items() if job.overrides == WITHOUT}
        rows: list[Row] = []
        for preset in dict.fromkeys(job.preset for job in results):
            with_ = {job: run for job, run in results.items() if job.preset == preset and job.overrides != WITHOUT}
            pairs = {job: (run, without.get((preset, job.dataset))) for job, run in with_.items()}
            paired = differences(pairs)
            rows += [_row(job, *pairs[job], paired[job]) for job in pairs]
        return rows

    def numbers(self) -> list[PaperNumber]:
        """Return the numbers without a regularizer; those with one are also in the main table, and belong to it."""
        return [
            PaperNumber(
                dataset,
                "test %, without regularizer",
                value,
                {"dataset": dataset, "preset": preset},
                "without",
                "gumbel-mpnn",
                error,
                error_column="without_stderr",
                preset=preset,
                accuracy=True,
            )
            for preset in PAPER_PRESETS
            for dataset, values in published("ablation").items()
            for value, error in [values["without"]]
        ]


def _chosen(preset: str, regularizer: str) -> tuple[str, ...]:
    """Return overrides that choose a regularizer, with its options in this family of presets."""
    rewiring = RunSpec.of(REGULARIZERS[regularizer], "gumbel-mpnn", preset=preset).settings.rewiring
    options = {} if rewiring is None else rewiring.own_options("regularizer")
    named = {"rewiring.regularizer": regularizer} | {f"rewiring.regularizer.{name}": options[name] for name in options}
    return tuple(override(name, value) for name, value in named.items())


def _row(job: Job, run: Run | None, without: Run | None, paired: Columns) -> Row:
    paper = published("ablation").get(job.dataset, {})
    (with_, _), (left_out, _) = paper.get("with", [None, None]), paper.get("without", [None, None])
    names = ("regularizer", "weight", "without", "without_stderr", "test", "stderr", "n")
    row: Columns = {
        "dataset": job.dataset,
        "preset": job.preset,
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
