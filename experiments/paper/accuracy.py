"""The paper's main table: seven models with three presets, compared with the paper, the GCN and the best baseline.

The preset `tuned` has two more models, the controls of Gumbel-MPNN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.experiment import (
    PAPER_DATASETS,
    PAPER_PRESETS,
    PAPER_RUNS,
    PLAIN,
    TUNED_DATASETS,
    UNFILTERED,
    Experiment,
    Job,
    Results,
)
from experiments.published import POINTS, PaperNumber, published
from experiments.rows import NO_DATA, PAIRED, Columns, differences, figures, grid, paragraphs, score
from gumbel_mpnn import compare
from gumbel_mpnn.report import Cell, Row, Table
from gumbel_mpnn.runs import Run, find_preset

BASELINES = (*PLAIN, "drop-edge", "sdrf")
BACKBONE = "gcn"
MODELS = (*BASELINES, "gumbel-mpnn")
CONTROLS = ("frozen", "random")
"""Controls of Gumbel-MPNN, in the tuned line only: they show what it reaches if no edge is learned."""
TUNED = "tuned"
PRESETS = (TUNED, *PAPER_PRESETS)
PUBLISHED = "published"
KEPT_WITH = {
    **dict.fromkeys(PLAIN, "backbones"),
    **dict.fromkeys(("gumbel-mpnn", *CONTROLS), "rewiring"),
}
"""Experiments with which the tuned runs of these models are shared."""
CHOOSING, TESTING = "plain models, which chose the readings", "other models, which test them"
"""The plain models, whose results decide how the paper is read, and all others."""


class Accuracy(Experiment):
    """All models on all data sets of the main table; Squirrel and Chameleon are the filtered graphs."""

    name = "accuracy"
    title = "Test accuracy of seven models on twelve data sets"
    datasets: tuple[str, ...] = PAPER_DATASETS
    headings: Mapping[str, str] = {
        "tried": "settings tried",
        "paper": "paper %",
        "paper_pm": "paper ±",
        "to_paper": "ours − paper",
        "difference": "ours − GCN",
        "top": "against the best",
        "baseline": "best baseline",
        "baseline_difference": "ours − best baseline",
        "baseline_low": "95 % from",
        "baseline_high": "to",
        "baseline_p": "corrected p",
        "baseline_over": "tested over",
        "baseline_verdict": "verdict",
    }

    def plan(self) -> list[Job]:
        """Return a job for every model with every preset on every data set; runs are shared with other experiments."""
        return [
            Job(dataset, model, preset, KEPT_WITH.get(model, "accuracy") if preset == TUNED else PAPER_RUNS)
            for dataset in self.datasets
            for preset in PRESETS
            for model in (*MODELS, *(CONTROLS if preset == TUNED else ()))
        ]

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each data set, preset and model; models are compared with those of the same preset."""
        rows: dict[Job, Row] = {}
        for preset in dict.fromkeys(job.preset for job in results):
            rows |= _rows_of({job: run for job, run in results.items() if job.preset == preset})
        return [rows[job] for job in results]

    def numbers(self) -> list[PaperNumber]:
        """Return the number in every cell of the paper's table, once for each preset."""
        return [
            PaperNumber(
                dataset,
                "test %",
                value,
                {"dataset": dataset, "model": model, "preset": preset},
                "test",
                model,
                error,
                error_column="stderr",
                preset=preset,
                accuracy=True,
            )
            for dataset in self.datasets
            for preset in PRESETS
            for model, (value, error) in published("accuracy")[dataset].items()
        ]

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a grid of data sets and presets by models, with the paper's numbers, and how many of ours are near."""
        lines: list[Row] = []
        for dataset in dict.fromkeys(row["dataset"] for row in rows if row["test"] is not None):
            mine = [row for row in rows if row["dataset"] == dataset]
            papers = {row["model"]: {**row, "test": row["paper"], "stderr": row["paper_pm"], "top": ""} for row in mine}
            lines += [*mine, *({**row, "preset": PUBLISHED} for row in papers.values())]
        return paragraphs(
            "Test accuracy in percent (ROC-AUC for minesweeper, tolokers and questions) ± standard error. Three lines"
            " are ours, `published` is the paper's. Frozen and Random are controls: Gumbel-MPNN with the same settings"
            " whose edges are not learned. Bold: not significantly different from the best of the line (paired test).",
            grid(lines, ("dataset", "preset"), "model", lambda row: score(row, bold=row["top"] in ("best", "same"))),
            _near_the_paper(rows),
        )


class AccuracyUnfiltered(Accuracy):
    """All models of the main table on the unfiltered Squirrel and Chameleon, which contain duplicate nodes."""

    name = "accuracy-unfiltered"
    title = "Test accuracy on the unfiltered Squirrel and Chameleon"
    datasets = UNFILTERED


class Backbones(Experiment):
    """MLP, GCN, GraphSAGE and GAT with tuned presets, without rewiring."""

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
        return [Job(dataset, model) for dataset in TUNED_DATASETS for model in PLAIN]

    def collect(self, results: Results) -> list[Row]:
        """Return our result and the paper's, one row for each model and data set."""
        best: dict[str, float] = {}
        for job, run in results.items():
            if run is not None:
                best[job.dataset] = max(best.get(job.dataset, 0.0), run.val.mean)
        return [self._row(job, run, best) for job, run in results.items()]

    def _row(self, job: Job, run: Run | None, best: Mapping[str, float]) -> Row:
        paper, error = published("accuracy").get(job.dataset, {}).get(job.model, (None, None))
        row: Columns = {
            "dataset": job.dataset,
            "model": job.model,
            **dict.fromkeys(("test", "std", "stderr", "n", "val")),
            "paper": paper,
            "paper_pm": error,
            "difference": None,
            "best": NO_DATA,
        }
        if run is None:
            return row
        return row | {
            **figures(run),
            "val": 100 * run.val.mean,
            "difference": None if paper is None else 100 * run.test.mean - paper,
            "best": "by val" if run.val.mean == best[job.dataset] else "",
        }

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a grid of data sets by models, each result above the paper's."""
        papers = [{**row, "test": row["paper"], "stderr": row["paper_pm"], "best": "", "by": PUBLISHED} for row in rows]
        order = list(dict.fromkeys(row["dataset"] for row in rows))
        lines = sorted([*({**row, "by": "ours"} for row in rows), *papers], key=lambda row: order.index(row["dataset"]))
        return paragraphs(
            "Test accuracy in percent (ROC-AUC for minesweeper and tolokers) ± standard error. Bold: the best"
            " validation result of the data set.",
            grid(lines, ("dataset", "by"), "model", lambda row: score(row, bold=row["best"] == "by val")),
        )


def _near_the_paper(rows: Sequence[Row]) -> str:
    """Return a table of the numbers near the paper's, for models that chose the readings and for the others."""
    within: dict[tuple[str, str], list[bool]] = {}
    for row in rows:
        if row["preset"] in PAPER_PRESETS and row["test"] is not None and row["paper"] is not None:
            key = str(row["preset"]), CHOOSING if row["model"] in PLAIN else TESTING
            within.setdefault(key, []).append(abs(float(row["to_paper"] or 0)) <= POINTS)
    if not within:
        return ""
    lines: list[list[Cell]] = [[*key, len(each), sum(each)] for key, each in within.items()]
    return paragraphs(
        f"Our numbers within {POINTS:g} points of the paper's. The readings are those that bring the plain models near"
        " it ([readings-training](readings-training.md)), so that the other models test them:",
        Table(["preset", "models", "numbers", f"within {POINTS:g} points"], lines).render("markdown"),
    )


def _rows_of(results: Results) -> dict[Job, Row]:
    """Return the rows of jobs with the same preset."""
    paper = published("accuracy")
    found: dict[str, dict[str, Run | None]] = {}
    for job, run in results.items():
        found.setdefault(job.dataset, {})[job.model] = run
    to_backbone = _paired(found, dict.fromkeys(found, BACKBONE))
    best = {dataset: _best_baseline(runs) for dataset, runs in found.items()}
    to_best = _paired(found, best)
    return {
        job: _row(job, run, found[job.dataset], paper.get(job.dataset, {}).get(job.model, [None, None]))
        | ({} if run is None else to_backbone[job.model][job.dataset])
        | {"baseline": None if run is None else best[job.dataset]}
        | {f"baseline_{name}": value for name, value in to_best[job.model][job.dataset].items()}
        for job, run in results.items()
    }


def _best_baseline(runs: Mapping[str, Run | None]) -> str | None:
    done = {model: run.test.mean for model in BASELINES if (run := runs.get(model)) is not None}
    return max(done, key=done.__getitem__, default=None)


def _paired(
    found: Mapping[str, Mapping[str, Run | None]], others: Mapping[str, str | None]
) -> dict[str, dict[str, Columns]]:
    """Compare every model with the model that `others` names for each data set: model → data set → columns."""
    return {
        model: differences(
            {
                dataset: (runs.get(model), None if other in (None, model) else runs.get(other))
                for dataset, runs in found.items()
                for other in [others[dataset]]
            }
        )
        for model in dict.fromkeys(model for runs in found.values() for model in runs)
    }


def _row(job: Job, run: Run | None, others: Mapping[str, Run | None], paper: list[float | None]) -> Columns:
    names = ("test", "std", "stderr", "n", "val", "epochs", "tried", "paper", "paper_pm", "to_paper", *PAIRED, "top")
    row: Columns = {"dataset": job.dataset, "preset": job.preset, "model": job.model, **dict.fromkeys(names)}
    row |= {"paper": paper[0], "paper_pm": paper[1]}
    if run is None:
        return row | {"verdict": NO_DATA, "top": ""}
    row |= {**figures(run), "val": 100 * run.val.mean, "epochs": run.settings.train.epochs}
    row |= {"tried": _settings_tried(job), "top": _top(run, others)}
    if paper[0] is not None:
        row["to_paper"] = 100 * run.test.mean - paper[0]
    return row


def _top(run: Run, others: Mapping[str, Run | None]) -> str:
    """Return `best`, or `same` if the best model is not significantly better, else `worse`."""
    best = max((other for other in others.values() if other is not None), key=lambda other: other.test.mean)
    if best is run:
        return "best"
    return "worse" if compare(best.records, run.records).outcome == "better" else "same"


def _settings_tried(job: Job) -> int | None:
    """Return from how many settings a preset was chosen; None if it was not searched for this model."""
    preset = find_preset(job.preset, job.dataset, job.model)
    return preset.tried if preset is not None and preset.model == job.model else None
