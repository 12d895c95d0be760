"""Main table of the paper: seven models with three presets on twelve data sets, compared with the paper and the GCN.

The preset `tuned` has two more models, the controls of Gumbel-MPNN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gumbel_mpnn.paper.backbones import CHOOSING, TESTING
from gumbel_mpnn.paper.backbones import MODELS as PLAIN
from gumbel_mpnn.paper.base import (
    PAIRED,
    PAPER_DATASETS,
    PAPER_PRESETS,
    PAPER_RUNS,
    UNFILTERED,
    Columns,
    Job,
    differences,
    figures,
    published,
)
from gumbel_mpnn.paper.page import RESULTS, Experiment
from gumbel_mpnn.paper.paper_numbers import POINTS, PaperNumber
from gumbel_mpnn.report import Row, Table
from gumbel_mpnn.report.grid import Grid
from gumbel_mpnn.report.style import MODEL_NAMES
from gumbel_mpnn.runs import Run, find_preset
from gumbel_mpnn.runs.query import compare

BASELINES = ("mlp", "gcn", "sage", "gat", "drop-edge", "sdrf")
BACKBONE = "gcn"
MODELS = (*BASELINES, "gumbel-mpnn")
CONTROLS = ("frozen", "random")
"""Controls of Gumbel-MPNN, in the tuned line only: they show what it reaches if no edge is learned."""
TUNED = "tuned"
PRESETS = (TUNED, *PAPER_PRESETS)
KEPT_WITH = {
    **dict.fromkeys(PLAIN, "backbones"),
    **dict.fromkeys(("gumbel-mpnn", *CONTROLS), "rewiring"),
}
"""Experiments with which the tuned runs of these models are shared."""
NEAR = (
    f"Our numbers within {POINTS:g} points of the paper's, counted apart: readings of the paper, such as the number of"
    " epochs ([readings-training](readings-training.md)), are those that bring the plain models near it, so the other"
    " models test them."
)
BUDGET = (
    "Settings tried: number of settings that each model tried in a search with equal budgets and epochs, from which the"
    " setting was chosen on validation (`gumbel-mpnn reproduce budget`; a dash: no such search). The tuned presets name"
    " these sources of the chosen settings:"
)


class Accuracy(Experiment):
    """All models on all data sets of the main table; Squirrel and Chameleon are the filtered graphs."""

    name = "accuracy"
    title = "Test accuracy of seven models on twelve data sets"
    datasets: tuple[str, ...] = PAPER_DATASETS
    percent = (*RESULTS, "baseline_difference", "baseline_low", "baseline_high")
    headings: Mapping[str, str] = {
        "tried": "settings tried",
        "paper": "paper %",
        "paper_pm": "paper ±",
        "to_paper": "ours − paper",
        "difference": "ours − GCN",
        "p": "corrected p",
        "top": "against the best",
        "baseline": "best baseline",
        "baseline_difference": "ours − best baseline",
        "baseline_low": "95 % from",
        "baseline_high": "to",
        "baseline_p": "corrected p",
        "baseline_over": "tested over",
        "baseline_verdict": "verdict",
    }
    grid = Grid(
        down=("dataset", "preset"),
        across="model",
        value="test",
        error="stderr",
        bold="top",
        bold_for=("best", "same"),
        caption="Test accuracy in percent (ROC-AUC for minesweeper, tolokers and questions) ± standard error. Three"
        " lines are ours: the presets `tuned`, `paper` and `literal`. The line `published` has the paper's numbers."
        " Frozen and Random are controls: Gumbel-MPNN with the same settings whose edges are not learned."
        " Bold: not significantly different from the best of the line (paired test).",
        published=("paper", "paper_pm"),
    )

    def plan(self) -> list[Job]:
        """Return a job for every model with every preset on every data set; runs are shared with other experiments."""
        return [
            Job(dataset, model, preset, KEPT_WITH.get(model, "accuracy") if preset == TUNED else PAPER_RUNS)
            for dataset in self.datasets
            for preset in PRESETS
            for model in (*MODELS, *(CONTROLS if preset == TUNED else ()))
        ]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each data set, preset and model; models are compared with those of the same preset."""
        presets = dict.fromkeys(job.preset for job in results)
        rows: dict[Job, Row] = {}
        for preset in presets:
            rows |= rows_of({job: run for job, run in results.items() if job.preset == preset})
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

    def remarks(self, results: Mapping[Job, Run | None], rows: Sequence[Row]) -> str:
        """Return how many numbers are near the paper's, and the sources of the tuned settings of all models."""
        return "\n\n".join(filter(None, [self._near(results), _sources(results)]))

    def _near(self, results: Mapping[Job, Run | None]) -> str:
        """Return a table of the numbers near the paper's, for models that chose the readings and for the others."""
        within: dict[tuple[str, str], list[bool]] = {}
        for number in self.numbers():
            run = results.get(Job(number.dataset, number.model, number.preset, PAPER_RUNS))
            if run is not None and number.preset in PAPER_PRESETS:
                key = number.preset, CHOOSING if number.model in PLAIN else TESTING
                within.setdefault(key, []).append(number.within(100 * run.test.mean))
        lines: list[list[str | int | float | None]] = [[*key, len(each), sum(each)] for key, each in within.items()]
        table = Table(["preset", "models", "numbers", f"within {POINTS:g} points"], lines)
        return f"{NEAR}\n\n{table.render('markdown')}" if lines else ""


class AccuracyUnfiltered(Accuracy):
    """All models of the main table on the unfiltered Squirrel and Chameleon, which contain duplicate nodes."""

    name = "accuracy-unfiltered"
    title = "Test accuracy on the unfiltered Squirrel and Chameleon"
    datasets = UNFILTERED


def _sources(results: Mapping[Job, Run | None]) -> str:
    """Return a list of the sources of the tuned settings."""
    sources: dict[str, dict[str, list[str]]] = {}
    for job, run in results.items():
        if run is not None and job.preset == TUNED:
            sources.setdefault(origin(job)[0], {}).setdefault(job.model, []).append(job.dataset)
    lines = [
        f"- {source}: " + "; ".join(f"{model} on {', '.join(names)}" for model, names in models.items())
        for source, models in sources.items()
    ]
    return "\n".join([BUDGET, "", *lines]) if lines else ""


def rows_of(results: Mapping[Job, Run | None]) -> dict[Job, Row]:
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
        return row | {"verdict": "no data", "top": ""}
    row |= {**figures(run), "val": 100 * run.val.mean, "epochs": run.settings.train.epochs}
    row |= {"tried": origin(job)[1], "top": _top(run, others)}
    if paper[0] is not None:
        row["to_paper"] = 100 * run.test.mean - paper[0]
    return row


def _top(run: Run, others: Mapping[str, Run | None]) -> str:
    """Return `best`, or `same` if the best model is not significantly better, else `worse`."""
    best = max((other for other in others.values() if other is not None), key=lambda other: other.test.mean)
    if best is run:
        return "best"
    return "worse" if compare(best.records, run.records).outcome == "better" else "same"


def origin(job: Job) -> tuple[str, int | None]:
    """Return the source of a preset and the number of settings it was chosen from."""
    preset = find_preset(job.preset, job.dataset, job.model)
    if preset is None:
        return "no preset: the package's defaults", None
    if preset.model != job.model:
        return f"the {MODEL_NAMES[preset.model]}'s preset, not searched for this model", None
    return preset.source, preset.tried
