"""Search for settings with the same budget for every model, chosen on validation."""

from __future__ import annotations

import math
import random
import statistics
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from experiments.experiment import PLAIN, TUNED_DATASETS, Experiment, Job, Results
from experiments.paper.accuracy import MODELS
from experiments.rows import NO_DATA, Columns, grid, override, paragraphs, score
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run, RunSpec, Summary, flat

TRIALS, TRIALS_OF_LARGE = 16, 8
LARGE = ("pubmed", "minesweeper", "tolokers")
START = "the start"
START_FILE = Path(__file__).with_name("start.toml")
"""Settings file of the initial settings of models whose tuned preset is the best draw."""
SPACES: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "plain": {
        "data.features": ["raw", "row-normalized"],
        "model.hidden_channels": [64, 256, 512],
        "model.num_layers": [1, 2, 3, 5],
        "model.dropout": [0.2, 0.5, 0.8],
        "model.norm": ["none", "layer", "batch"],
        "model.residual": [True, False],
        "train.lr": [0.001, 0.005, 0.01],
        "train.weight_decay": [0.0, 0.0005, 0.005],
    },
    "drop-edge": {
        "model.edge_dropout": [0.05, 0.1, 0.15, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8],
        "model.per_layer": [True, False],
    },
    "sdrf": {
        "model.iterations": [10, 30, 200, 500, 1000],
        "model.tau": [1.0, 10.0, 100.0],
        "model.removal_bound": [0.5, 5.0, 50.0],
    },
    "gumbel-mpnn": {
        "rewiring.candidates": ["none", "two_hop", "local", "global"],
        "rewiring.scorer": ["bilinear", "class-space", "mixed"],
        "rewiring.keep": [0.5, 0.8, 0.95, 0.99],
        "rewiring.prior": [0.0, 1.0, 10.0],
    },
}
"""Search spaces: plain models have one, and models based on a GCN have their own settings."""
FIGURES = ("diverged", "start", "middle", "best", "gain", "gain_stderr", "n")


class Budget(Experiment):
    """The initial settings of each model and random draws from its space, equally many for all models on a data set.

    Plain models draw width, depth and training settings from the same space, with the same draws. Models that are based
    on a GCN use its tuned preset and draw only their own settings. The best draw is chosen if its validation result
    exceeds that of the initial settings by more than the standard error of the paired difference. It then becomes the
    tuned preset, and the initial settings are stored in `start.toml`.
    """

    name = "budget"
    title = "One budget for every model: settings tried, and what validation chose"
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
        return [job for dataset in TUNED_DATASETS for model in MODELS for job in _trials(dataset, model)]

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each model and data set; trials that are missing in `results` diverged."""
        found: dict[tuple[str, str], dict[Job, Run | None]] = {}
        for job, run in results.items():
            found.setdefault((job.dataset, job.model), {})[job] = run
        return [_row(dataset, model, runs) for (dataset, model), runs in found.items()]

    def shown(self, rows: Sequence[Row]) -> str:
        """Return the gain of the best draw in each case; bold where it was chosen."""
        return paragraphs(
            f"Validation results of the best of {TRIALS - 1} random draws less those of the initial settings"
            f" ({TRIALS_OF_LARGE - 1} on {', '.join(LARGE)}), in points ± standard error. Bold: the draw was chosen.",
            grid(
                rows,
                ("dataset",),
                "model",
                lambda row: score(row, "gain", "gain_stderr", bold=row["chosen"] not in (START, NO_DATA)),
            ),
        )


def draws(model: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the settings of a model's space in random order, each once."""
    space = SPACES["plain" if model in PLAIN else model]
    total = math.prod(map(len, space.values()))
    for number in random.Random(seed).sample(range(total), total):
        chosen = {}
        for name, values in space.items():
            number, place = divmod(number, len(values))
            chosen[name] = values[place]
        yield chosen


def _trials(dataset: str, model: str) -> list[Job]:
    count = TRIALS_OF_LARGE if dataset in LARGE else TRIALS
    changed = tomllib.loads(START_FILE.read_text(encoding="utf-8"))
    start = str(START_FILE) if model in changed.get(dataset, {}) else "tuned"
    known = flat(RunSpec.of(dataset, model, preset=start).settings.to_dict())
    drawn = draws(model, seed=TUNED_DATASETS.index(dataset))
    others = islice((chosen for chosen in drawn if not chosen.items() <= known.items()), count - 1)
    overrides = [tuple(override(name, value) for name, value in chosen.items()) for chosen in others]
    return [Job(dataset, model, start), *(Job(dataset, model, overrides=each) for each in overrides)]


def _row(dataset: str, model: str, runs: Results) -> Row:
    start, *drawn = tried = _trials(dataset, model)
    row: Columns = {"dataset": dataset, "model": model, "tried": len(tried), **dict.fromkeys(FIGURES)}
    done = {job: run for job, run in runs.items() if run is not None}
    if not done:
        return row | {"chosen": NO_DATA}
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
