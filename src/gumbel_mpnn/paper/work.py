"""Training of jobs: what is missing of them, with their models if tables need these, and which takes longest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from gumbel_mpnn._util.errors import DivergedError, MissingDataError, UserError
from gumbel_mpnn.data import get_spec
from gumbel_mpnn.paper.base import PAPER_PRESETS, PAPER_SEEDS, QUICK_LENGTH, QUICK_OVERRIDES, QUICK_SPLITS, Job
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.runs import (
    AnySpec,
    BusyError,
    DataReader,
    Monitor,
    Place,
    Run,
    RunSpec,
    describe,
    find_any,
    fit_any,
)
from gumbel_mpnn.runs.estimating import GraphSize, estimate_size
from gumbel_mpnn.runs.machines import OneAtATime, run_at_once
from gumbel_mpnn.training import pick_device
from gumbel_mpnn.training.device import available_bytes

GRAPHS = 24
"""Number of data sets that stay in memory, since jobs in the order of their time change between data sets."""
SPLITS = 10
"""Number of splits that most data sets have."""


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
    share the work, the longest first. A cluster trains many at once. If this experiment, or another one of the request,
    uses trained models, runs are trained again if neither the models nor what is taken from them are stored. If the
    experiment searches for settings, jobs that diverge are left out; otherwise they are an error.
    """
    memory = available_bytes(pick_device(request.device)) // request.workers if request.workers > 1 else None
    reader = reader or DataReader(keep=GRAPHS if request.workers > 1 else 1)
    place = Place(request.runs, device=request.device, memory=memory, monitor=monitor, reader=reader)
    jobs = list(jobs)
    in_order = jobs
    if len(jobs) > 1 and (request.workers > 1 or request.crew is not None):
        in_order = longest_first(jobs, request)
    crew = None if request.crew is None else request.crew.branch()
    if crew is not None:
        watch = None if monitor is None else OneAtATime(monitor)
        place = replace(place.on(crew, len(jobs)), monitor=watch)

    def do(job: Job, wait: bool) -> Run | None:
        job = stored_as(job, experiment)
        spec, here = spec_of(job, request), replace(place, experiment=job.experiment, wait=wait)
        names = {experiment.needed_from(job), *request.from_models.get(job, ())} - {""}
        try:
            needs_models = bool(names) and not _has_stored(find_any(spec, here), names)
            return fit_any(spec, replace(here, models=needs_models))
        except MissingDataError:
            return None

    results, busy = dict[Job, Run | None](), list[Job]()
    ignored = (DivergedError,) if experiment.searches else ()
    if crew is not None:
        results = run_at_once(partial(do, wait=True), in_order, crew, ignored)
        return {job: results[job] for job in jobs if job in results}
    for job in in_order:
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
    place, results = Place(request.runs, reader=DataReader()), dict[Job, Run | None]()
    for job in jobs:
        stored = experiment.needed_from(job)
        spec, here = spec_of(job, request), replace(place, experiment=stored_as(job, experiment).experiment)
        try:
            found = find_any(spec, here)
            if stored and not _has_stored(found, [stored]):
                found = find_any(spec, replace(here, models=True))
        except MissingDataError:
            results[job] = None
        else:
            results |= {} if found is None else {job: found}
    return results


def take_from_models(experiment: Experiment, results: Mapping[Job, Run | None]) -> None:
    """Store what an experiment takes from trained models, unless another process is computing it."""
    for job, run in results.items():
        if experiment.needed_from(job) and run is not None:
            experiment.take(job, run)


def stored_as(job: Job, experiment: Experiment) -> Job:
    """Return the job with the name of the experiment that stores its runs; experiments that share it have the same."""
    return replace(job, experiment=job.experiment or experiment.name)


def longest_first(jobs: Iterable[Job], request: Request) -> list[Job]:
    """Sort jobs by the estimated time of their training; those of unknown size come last."""
    return sorted(jobs, key=partial(estimated_seconds, request=request), reverse=True)


def estimated_seconds(job: Job, request: Request) -> float:
    """Estimate how long all runs of a job take one after another, from the known counts of the data set.

    Nothing is read or searched. The epochs are the most that the settings allow, for `auto` on every rung. 0 if the
    data set is not known.
    """
    try:
        known, spec = get_spec(job.dataset), spec_of(job, request)
        size = GraphSize(known.num_nodes, known.num_edges, known.num_features, known.num_classes)
        rungs = [spec] if isinstance(spec, RunSpec) else [rung for _, rung in spec.rungs.values()]
        return sum(_seconds(rung, size, request.device) for rung in rungs)
    except UserError:
        return 0.0


def _seconds(spec: RunSpec, size: GraphSize, device: str) -> float:
    found = estimate_size(size, spec.settings, device)
    runs = len(spec.seeds) * (SPLITS if spec.splits is None else len(spec.splits))
    return (found.candidate_seconds or 0.0) + runs * spec.settings.train.epochs * found.step_seconds


def _has_stored(run: Run | None, names: Iterable[str]) -> bool:
    return run is not None and all(map(run.has_stored, names))


def spec_of(job: Job, request: Request) -> AnySpec:
    """Describe the runs of a job."""
    return describe(
        job.dataset,
        job.model,
        splits=QUICK_SPLITS if request.quick and request.splits is None and not job.seeds else request.splits,
        seeds=_seeds(job, request),
        preset=job.preset or None,
        overrides=_overrides(job, request),
        transform=job.transform,
        root=request.root,
    )


def _overrides(job: Job, request: Request) -> list[str]:
    quick = [*QUICK_OVERRIDES, *job.overrides, *QUICK_LENGTH]
    return [*(quick if request.quick else job.overrides), *request.overrides]


def _seeds(job: Job, request: Request) -> int:
    if job.seeds and not request.quick:
        return job.seeds
    return min(request.seeds, PAPER_SEEDS) if job.preset in PAPER_PRESETS else request.seeds
