"""Training of jobs: what of them is missing, with their models where a table measures these."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gumbel_mpnn as gm
from experiments.attacked import after
from experiments.experiment import LADDERS, PAPER_PRESETS, Experiment, Job
from gumbel_mpnn.runs import Run
from gumbel_mpnn.util import DivergedError, MissingDataError, UserError, unknown_name

SEEDS, QUICK_SEEDS = 3, 1
PAPER_SEEDS = 1
"""Seeds per split for the paper's presets, even if more are requested, to save time."""
QUICK_SPLITS = (0, 1)
QUICK_OVERRIDES = ("train.lr=0.02", "model.hidden_channels=8")
"""Settings of the small version, unless a job has settings of its own."""
QUICK_LENGTH = ("train.epochs=5",)
"""Length of training in the small version, which no job exceeds."""
KINDS = ("dataset", "model", "preset", "setting")
"""What jobs are selected by."""


@dataclass(frozen=True)
class Options:
    """What is trained of a table, and where; the options of the command."""

    only: tuple[str, ...] = ()
    """Data sets, models, presets or settings of the data to select; all by default."""
    splits: tuple[int, ...] | None = None
    seeds: int = SEEDS
    quick: bool = False
    """Whether to make a small version that shows that everything works: few epochs, two splits, small data sets."""
    overrides: tuple[str, ...] = ()
    runs: Path = Path("runs")
    device: str = "auto"
    workers: int = 1
    on: str = "local"
    quiet: bool = False

    @property
    def is_full(self) -> bool:
        """Whether the rows and settings are those of the whole table."""
        return not (self.only or self.quick or self.overrides)


def selected_jobs(experiment: Experiment, options: Options) -> list[Job]:
    """Return the jobs of an experiment that the options select.

    Names of one kind (data sets, models, presets, or settings of the data) select among that kind; a kind that is not
    named is not restricted.
    """
    splits = options.splits or (QUICK_SPLITS if options.quick else None)
    jobs = _named_jobs(experiment, options)
    return [job for job in jobs if splits is None or job.split is None or job.split in splits]


def _named_jobs(experiment: Experiment, options: Options) -> list[Job]:
    if not options.only:
        return experiment.quick_plan() if options.quick else experiment.plan()
    jobs, only = experiment.plan(), set(options.only)
    known = [{getattr(job, kind) for job in jobs} for kind in KINDS]
    for name in options.only:
        if not any(name in names for names in known):
            raise unknown_name("data set, model, preset or setting in this table", name, set().union(*known))
    wanted = [names & only or names for names in known]
    chosen = [
        job for job in jobs if all(getattr(job, kind) in names for kind, names in zip(KINDS, wanted, strict=True))
    ]
    if not chosen:
        raise UserError(
            f"{experiment.name} has no row with all of {', '.join(options.only)}: name a data set, model, preset"
            " and setting that stand together in a row"
        )
    return chosen


def train(experiment: Experiment, jobs: Iterable[Job], options: Options) -> dict[Job, Run | None]:
    """Train what is missing of the jobs of an experiment; the run of a job without data files is None.

    If the experiment searches for settings, jobs that diverge are left out; otherwise they are an error. Several
    workers first fill the folder of runs, in which this process then finds all of them.
    """
    jobs = list(dict.fromkeys(jobs))
    if options.workers > 1:
        with ProcessPoolExecutor(min(options.workers, len(jobs)), get_context("spawn")) as pool:
            for future in as_completed([pool.submit(_fill, experiment, job, options) for job in jobs]):
                future.result()
    results: dict[Job, Run | None] = {}
    for job in jobs:
        with suppress(*_passed_over(experiment)):
            results[job] = _fit(experiment, job, options)
    return results


def _passed_over(experiment: Experiment) -> tuple[type[Exception], ...]:
    return (DivergedError,) if experiment.searches else ()


def _fill(experiment: Experiment, job: Job, options: Options) -> None:
    """Train a job in a worker, and measure its models."""
    with suppress(*_passed_over(experiment)):
        run = _fit(experiment, job, options)
        if run is not None and experiment.measures(job):
            experiment.kept(run)


def _fit(experiment: Experiment, job: Job, options: Options) -> Run | None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "there is no .* preset for")
        try:
            return gm.fit(
                after(job.dataset, job.attack),
                "auto" if job.model in LADDERS else job.model,
                **spec_of(job, options),
                runs=options.runs,
                experiment=job.experiment or experiment.name,
                device=options.device,
                progress=False if options.quiet else None,
                on=options.on,
            )
        except MissingDataError:
            return None


def spec_of(job: Job, options: Options) -> dict[str, Any]:
    """Return the arguments of `gm.fit` that say which runs a job has."""
    overrides, splits = job.overrides, options.splits if job.split is None else (job.split,)
    if options.quick:
        overrides = (*QUICK_OVERRIDES, *overrides, *QUICK_LENGTH)
        splits = QUICK_SPLITS if splits is None and not job.seeds else splits
    seeds = options.seeds
    if job.seeds and not options.quick:
        seeds = job.seeds
    elif job.preset in PAPER_PRESETS:
        seeds = min(seeds, PAPER_SEEDS)
    return {
        "splits": splits,
        "seeds": seeds,
        "preset": job.preset or None,
        "overrides": (*overrides, *LADDERS.get(job.model, ()), *options.overrides),
        "transform": job.transform,
    }
