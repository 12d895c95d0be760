"""Rows of the main table: each model beside the paper's number, the GCN, the best baseline and the best of all."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.paper.base import PAIRED, Columns, Job, differences, figures, published
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.style import MODEL_NAMES
from gumbel_mpnn.runs import Run, find_preset
from gumbel_mpnn.runs.query import compare

BASELINES = ("mlp", "gcn", "sage", "gat", "drop-edge", "sdrf")
BACKBONE = "gcn"


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
    """Return the baseline with the highest mean test result."""
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
