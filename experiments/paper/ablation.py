"""Ablation: Gumbel-MPNN of the paper's presets, with and without the regularizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.experiment import PAPER_PRESETS, PAPER_RUNS, STRUCTURE_DATASETS, Experiment, Job, Results
from experiments.published import PaperNumber, published
from experiments.rows import NO_DATA, PAIRED, Columns, differences, figures, override, paragraphs, score, spread
from gumbel_mpnn.report import Row, Table
from gumbel_mpnn.runs import Run, RunSpec

WITHOUT = ("rewiring.regularizer=none",)
UNNAMED = "chameleon-unfiltered"
"""Data set for which the paper gives the weight of a regularizer and not its name."""
REGULARIZERS = {"lc": "cora", "pc": "squirrel-unfiltered", "dc": "roman-empire", "mix": "citeseer"}
"""The paper's regularizers, each with a data set where it is used, whose options are taken."""


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
        "paper_without": "paper without %",
        "paper_with": "paper with %",
        "paper_difference": "paper's difference",
    }

    def plan(self) -> list[Job]:
        """Return jobs of both presets, as they are and without regularizer; with each where the paper names none."""
        return [
            Job(dataset, "gumbel-mpnn", preset, PAPER_RUNS, overrides)
            for preset in PAPER_PRESETS
            for dataset in STRUCTURE_DATASETS
            for overrides in (
                WITHOUT,
                *([_chosen(preset, name) for name in REGULARIZERS] if dataset == UNNAMED else [()]),
            )
        ]

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each preset, data set and regularizer, with p-values corrected within a preset."""
        without = {(job.preset, job.dataset): run for job, run in results.items() if job.overrides == WITHOUT}
        rows: list[Row] = []
        for preset in dict.fromkeys(job.preset for job in results):
            pairs = {
                job: (run, without.get((preset, job.dataset)))
                for job, run in results.items()
                if job.preset == preset and job.overrides != WITHOUT
            }
            paired = differences(pairs)
            rows += [_row(job, *pairs[job], paired[job]) for job in pairs]
        return rows

    def shown(self, rows: Sequence[Row]) -> str:
        """Return our results and differences beside the paper's differences."""
        lines = [
            [
                row["dataset"],
                row["preset"],
                f"{row['regularizer']}, {row['weight']}",
                score(row, "without", "without_stderr"),
                score(row),
                score(row, "difference", "", bold=row["verdict"] in ("better", "worse")),
                row["paper_difference"],
            ]
            for row in rows
            if row["test"] is not None
        ]
        names = ["data set", "preset", "regularizer", "without", "with", "with − without", "the paper's"]
        return paragraphs(
            "Test accuracy in percent (ROC-AUC for minesweeper and tolokers) ± standard error. Bold: a significant"
            " difference (paired test, corrected for the rows of a preset).",
            Table(names, lines).render("markdown"),
        )

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
    """Return overrides that choose a regularizer, with its options in this family of presets and the weight given."""
    options, given = (_options_of_regularizer(preset, dataset) for dataset in (REGULARIZERS[regularizer], UNNAMED))
    options["weight"] = given["weight"]
    named = {"rewiring.regularizer": regularizer} | {f"rewiring.regularizer.{name}": options[name] for name in options}
    return tuple(override(name, value) for name, value in named.items())


def _options_of_regularizer(preset: str, dataset: str) -> dict[str, Any]:
    rewiring = RunSpec.of(dataset, "gumbel-mpnn", preset=preset).settings.rewiring
    return {} if rewiring is None else rewiring.options_of("regularizer")


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
        return row | {"verdict": NO_DATA}
    return row | {
        "regularizer": run.settings.rewiring.regularizer,
        "weight": f"{run.settings.rewiring.options_of('regularizer').get('weight', 0):g}",
        "without": 100 * without.test.mean,
        "without_stderr": spread(without.test)[1],
        **figures(run, with_std=False),
        **paired,
    }
