"""Parts that the experiments share: jobs, columns of their rows, and the published numbers."""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

from gumbel_mpnn._util.errors import DivergedError, MissingDataError
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.table import Fixed
from gumbel_mpnn.runs import (
    AnySpec,
    BusyError,
    DataReader,
    Monitor,
    Place,
    Run,
    RunSpec,
    Transform,
    describe,
    find_any,
    fit_any,
)
from gumbel_mpnn.runs.machines import OneAtATime, run_at_once
from gumbel_mpnn.runs.query import Paired, Summary, compare, corrected, flat
from gumbel_mpnn.training import pick_device
from gumbel_mpnn.training.device import available_bytes

if TYPE_CHECKING:
    from gumbel_mpnn.paper.page import Experiment

Columns = dict[str, str | int | float | None]
K = TypeVar("K", bound=Hashable)
PAPER_DATASETS = (
    "cora",
    "citeseer",
    "pubmed",
    "ogbn-arxiv",
    "squirrel",
    "chameleon",
    "actor",
    "roman-empire",
    "questions",
    "minesweeper",
    "tolokers",
    "amazon-ratings",
)
"""Data sets of the main table."""
UNFILTERED = ("squirrel-unfiltered", "chameleon-unfiltered")
STRUCTURE_DATASETS = tuple(name + "-unfiltered" * (name in ("squirrel", "chameleon")) for name in PAPER_DATASETS)
"""Data sets of the paper's structure tables and ablation, with the unfiltered Squirrel and Chameleon."""
PAPER_PRESETS = ("paper", "literal")
"""Families of presets with the paper's model: with its readings calibrated, and as printed."""
PAPER_RUNS = "paper"
"""Experiment that stores the runs of both families, so that settings which they share are trained once."""
PAPER_SEEDS = 1
"""Seeds per split for these families, even if more are requested, to save time."""
PAIRED = ("difference", "low", "high", "p", "over", "verdict")
"""Columns of a paired difference."""


@dataclass(frozen=True)
class Job:
    """One setting of an experiment: a model, its preset and a data set."""

    dataset: str
    model: str
    preset: str = "tuned"
    """Family of presets; empty for none."""
    experiment: str = ""
    """Experiment whose folder stores the runs; experiments that share runs use the same name. Its own by default."""
    overrides: tuple[str, ...] = ()
    """Settings that override the preset, such as `model.num_layers=4`."""
    transform: Transform | None = None
    """Applied to the data before training."""
    seeds: int = 0
    """Number of seeds per split, for data sets with one split; 0 for the number that is requested."""


def override(name: str, value: object) -> str:
    """Format an entry of `Job.overrides` from the name of a setting, such as `model.num_layers`, and its value."""
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def beneath(dataset: str, preset: str = "paper", model: str = "gcn") -> tuple[str, ...]:
    """Return overrides for a GCN, or another `model`, with the settings of Gumbel-MPNN of the same preset.

    Settings of rewiring, and options that only the other model has, are left as they are.
    """
    plain, rewired = (
        flat(RunSpec.of(dataset, name, preset=preset).settings.to_dict()) for name in (model, "gumbel-mpnn")
    )
    different = (name for name, value in plain.items() if rewired.get(name, value) != value and name != "model.name")
    return tuple(override(name, rewired[name]) for name in different)


QUICK_DATASETS = (
    "cora",
    "chameleon",
    "chameleon-unfiltered",
    "leaf-count",
    "tree-neighbors-match",
    "bottleneck",
    "bottleneck-10",
)
QUICK_SPLITS = (0, 1)
QUICK_OVERRIDES = ("train.epochs=5", "train.lr=0.02", "model.hidden_channels=8")
"""Options of `quick`: small data sets, two splits, few epochs and narrow models."""


def run_jobs(
    experiment: Experiment,
    jobs: Iterable[Job],
    request: Request,
    *,
    monitor: Monitor | None = None,
    wait: bool = True,
    reader: DataReader | None = None,
) -> dict[Job, Run | None]:
    """Train what is missing of the jobs of an experiment; the run of a job without data files is None.

    Jobs that another process is training are left to the end, or left out unless `wait`, so that several processes can
    share the work. A cluster trains many at once. If the experiment uses trained models, runs are trained again if
    neither the models nor what it takes from them are stored. If it searches for settings, jobs that diverge are left
    out; otherwise they are an error.
    """
    memory = available_bytes(pick_device(request.device)) // request.workers if request.workers > 1 else None
    place = Place(request.runs, device=request.device, memory=memory, monitor=monitor, reader=reader or DataReader())
    jobs, stored = list(jobs), experiment.from_models
    crew = None if request.crew is None else request.crew.branch()
    if crew is not None:
        watch = None if monitor is None else OneAtATime(monitor)
        place = replace(place.on(crew, len(jobs)), monitor=watch)

    def do(job: Job, wait: bool) -> Run | None:
        spec, here = _spec(job, request), replace(place, experiment=job.experiment or experiment.name, wait=wait)
        try:
            needs_models = bool(stored) and not _has_stored(find_any(spec, here), stored)
            return fit_any(spec, replace(here, models=needs_models))
        except MissingDataError:
            return None

    results, busy = dict[Job, Run | None](), list[Job]()
    ignored = (DivergedError,) if experiment.searches else ()
    if crew is not None:
        return run_at_once(partial(do, wait=True), jobs, crew, ignored)
    for job in jobs:
        try:
            results[job] = do(job, wait=False)
        except BusyError:
            busy.append(job)
        except ignored:
            pass
    for job in busy if wait else ():
        with suppress(*ignored):
            results[job] = do(job, wait=True)
    return {job: results[job] for job in jobs if job in results}


def find_jobs(experiment: Experiment, jobs: Iterable[Job], request: Request) -> dict[Job, Run | None]:
    """Return what `run_jobs` would return, without training; jobs that are not finished are left out.

    A job counts as finished if its records are stored and, for an experiment that uses trained models, also the models
    or what the experiment takes from them.
    """
    place, stored = Place(request.runs, reader=DataReader()), experiment.from_models
    results = dict[Job, Run | None]()
    for job in jobs:
        spec, here = _spec(job, request), replace(place, experiment=job.experiment or experiment.name)
        try:
            found = find_any(spec, here)
            if stored and not _has_stored(found, stored):
                found = find_any(spec, replace(here, models=True))
        except MissingDataError:
            results[job] = None
        else:
            results |= {} if found is None else {job: found}
    return results


def _has_stored(run: Run | None, name: str) -> bool:
    return run is not None and run.has_stored(name)


def _spec(job: Job, request: Request) -> AnySpec:
    return describe(
        job.dataset,
        job.model,
        splits=QUICK_SPLITS if request.quick and request.splits is None and not job.seeds else request.splits,
        seeds=_seeds(job, request),
        preset=job.preset or None,
        overrides=[*(QUICK_OVERRIDES if request.quick else ()), *job.overrides, *request.overrides],
        transform=job.transform,
        root=request.root,
    )


def _seeds(job: Job, request: Request) -> int:
    if job.seeds and not request.quick:
        return job.seeds
    return min(request.seeds, PAPER_SEEDS) if job.preset in PAPER_PRESETS else request.seeds


def quick_jobs(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs on small data sets, or all jobs if there are none."""
    jobs = list(jobs)
    return [job for job in jobs if job.dataset in QUICK_DATASETS] or jobs


def quickened(job: Job) -> Job:
    """Return the job without its own values of the settings of `quick`, so that it has few epochs too."""
    set_by_quick = tuple(f"{each.partition('=')[0]}=" for each in QUICK_OVERRIDES)
    return replace(job, overrides=tuple(each for each in job.overrides if not each.startswith(set_by_quick)))


def figures(run: Run) -> Row:
    """Return the mean test result in percent, its standard deviation and standard error, and the number of runs."""
    std, stderr = spread(run.test)
    return {"test": 100 * run.test.mean, "std": std, "stderr": stderr, "n": run.n}


def spread(summary: Summary) -> tuple[float | None, float | None]:
    """Return standard deviation and standard error in percent; both are None for a single run."""
    return (100 * summary.std, 100 * summary.stderr) if summary.n > 1 else (None, None)


def difference(run: Run, other: Run | None) -> Columns:
    """Return the paired difference of two runs in percent, with interval, p-value and verdict.

    All columns are None if there is no `other` run.
    """
    return _columns(None if other is None else compare(run.records, other.records))


def differences(pairs: Mapping[K, tuple[Run | None, Run | None]]) -> dict[K, Columns]:
    """Return the paired difference for each key, such as a data set; p-values and verdicts are corrected."""
    compared = corrected(
        {
            key: compare(run.records, other.records)
            for key, (run, other) in pairs.items()
            if run is not None and other is not None
        }
    )
    return {key: _columns(compared.get(key)) for key in pairs}


def _columns(paired: Paired | None) -> Columns:
    if paired is None:
        return dict.fromkeys(PAIRED)
    shares = {"difference": paired.mean, "low": paired.low, "high": paired.high}
    percent = {name: None if share is None else 100 * share for name, share in shares.items()}
    return {**percent, "p": paired.p, "over": paired.over, "verdict": paired.verdict}


def published(table: str) -> dict[str, dict[str, Any]]:
    """Read the published numbers of one table, as data set → row or column → number.

    Accuracies are pairs [value, ±] in percent. Numbers are shown with as many decimals as the paper prints.
    """
    file = resources.files(__package__) / "published" / f"{table}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"), parse_float=Fixed.parse)
