"""Search for settings with the same budget for every model, chosen on validation."""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Mapping
from importlib import resources
from itertools import islice

from gumbel_mpnn.config.presets import read_preset
from gumbel_mpnn.config.spaces import Space
from gumbel_mpnn.paper.accuracy import KEPT_WITH, MODELS
from gumbel_mpnn.paper.backbones import DATASETS
from gumbel_mpnn.paper.base import Columns, Job, override
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run, RunSpec
from gumbel_mpnn.runs.query import Summary, flat

TRIALS, TRIALS_OF_LARGE = 16, 8
LARGE = ("pubmed", "minesweeper", "tolokers")
START = "the start"
FIGURES = ("diverged", "start", "middle", "best", "gain", "gain_stderr", "n")


class Budget(Experiment):
    """The initial settings of each model and random draws from its space, equally many for all models on a data set.

    Plain models draw width, depth and training settings from the same space, with the same draws. Models that are based
    on a GCN use its tuned preset and draw only their own settings. The best draw is chosen if its validation result
    exceeds that of the initial settings by more than the standard error of the paired difference. It then becomes the
    tuned preset, and the initial settings are stored in the family `start`.
    """

    name = "budget"
    title = "One budget for every model: settings tried, and what validation chose"
    percent = ("start", "middle", "best", "gain", "gain_stderr")
    headings: Mapping[str, str] = {
        "tried": "settings tried",
        "diverged": "of these diverged",
        "start": "start's val %",
        "middle": "median val %",
        "best": "best draw's val %",
        "gain": "best draw − start",
        "gain_stderr": "std error",
        "n": "runs of each",
    }
    searches = True

    def plan(self) -> list[Job]:
        """Return all trials of every model on every data set."""
        return [job for dataset in DATASETS for model in MODELS for job in _trials(dataset, model)]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each model and data set; trials that are missing in `results` diverged."""
        found: dict[tuple[str, str], dict[Job, Run | None]] = {}
        for job, run in results.items():
            found.setdefault((job.dataset, job.model), {})[job] = run
        return [_row(dataset, model, runs) for (dataset, model), runs in found.items()]


def space_of(model: str) -> Space:
    """Return the search space of a model, which is that of the published table and not the default of `tune`."""
    name = "plain" if KEPT_WITH.get(model) == "backbones" else model
    file = resources.files(__package__) / "spaces" / f"{name}.toml"
    return Space.of(tomllib.loads(file.read_text(encoding="utf-8")))


def _trials(dataset: str, model: str) -> list[Job]:
    count = TRIALS_OF_LARGE if dataset in LARGE else TRIALS
    start = "tuned" if read_preset("start", dataset, model) is None else "start"
    known = flat(RunSpec.of(dataset, model, preset=start).settings.to_dict())
    drawn = space_of(model).draws(seed=DATASETS.index(dataset))
    others = islice((chosen for chosen in drawn if not chosen.items() <= known.items()), count - 1)
    overrides = [tuple(override(name, value) for name, value in chosen.items()) for chosen in others]
    return [Job(dataset, model, start), *(Job(dataset, model, overrides=each) for each in overrides)]


def _row(dataset: str, model: str, runs: Mapping[Job, Run | None]) -> Row:
    start, *drawn = tried = _trials(dataset, model)
    row: Columns = {"dataset": dataset, "model": model, "tried": len(tried), **dict.fromkeys(FIGURES)}
    done = {job: run for job, run in runs.items() if run is not None}
    if not done:
        return row | {"chosen": "no data"}
    val = {job: 100 * run.val.mean for job, run in done.items()}
    best = max((job for job in drawn if job in done), key=val.__getitem__, default=start)
    gain = _gain(done[best], done.get(start))
    error = gain.stderr if gain.n > 1 else None
    better = start not in done or (error is not None and gain.mean > error)
    return row | {
        "diverged": len(tried) - len(done),
        "start": val.get(start),
        "middle": statistics.median(val.values()),
        "best": val[best],
        "gain": gain.mean,
        "gain_stderr": error,
        "n": done[best].n,
        "chosen": ", ".join(best.overrides) if better else START,
    }


def _gain(draw: Run, start: Run | None) -> Summary:
    """Return the paired validation gain of a draw over the start in percent; a start that diverged counts as 0."""
    before = {} if start is None else {record.replica: record.val_or_nan for record in start.records}
    return Summary.of(100 * (record.val_or_nan - before.get(record.replica, 0.0)) for record in draw.records)
