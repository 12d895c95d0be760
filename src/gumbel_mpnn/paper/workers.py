"""Processes, or a cluster, that train the jobs of tables together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from gumbel_mpnn.paper.base import Job
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.paper.tables import requested_experiment, requested_jobs
from gumbel_mpnn.paper.work import GRAPHS, longest_first, run_jobs, stored_as, take_from_models
from gumbel_mpnn.runs import DataReader
from gumbel_mpnn.runs.machines import crew_of
from gumbel_mpnn.runs.workers import check_workers, start_processes


@contextmanager
def start_workers(names: Sequence[str], request: Request) -> Iterator[Request]:
    """Train the jobs of the experiments `names` on the machines of the request until the block ends.

    On this machine there are never more workers than jobs or CPU cores; the calling process counts as one of them. The
    run store makes sure that no run is trained twice. The block is given the request with the actual number of workers,
    or with the cluster, and with what all these experiments take from models.
    """
    check_workers(request.workers)
    shared = shared_jobs(names, request)  # invalid names are reported here, before a process is started
    if not request.machines.is_local:
        if not shared:
            yield request
            return
        with crew_of(request.machines, request.runs, request.device) as crew:
            yield replace(request, crew=crew, from_models=_names_by_job(shared))
        return
    workers = max(1, min(request.workers, len(shared), os.cpu_count() or 1))
    request = replace(request, workers=workers)
    with start_processes(workers, assist, names, request):
        yield replace(request, from_models=_names_by_job(shared))


def assist(place: int, names: Sequence[str], request: Request) -> None:
    """Train the jobs of all experiments in a worker process, the longest first, and take from models what they need.

    Workers begin at different jobs, since it takes a while until a process holds its first one.
    """
    shared, reader = shared_jobs(names, request), DataReader(keep=GRAPHS)
    request = replace(request, from_models=_names_by_job(shared))
    jobs = longest_first(shared, request)
    for job in jobs[place:] + jobs[:place]:
        with suppress(Exception):  # the calling process comes to the same job and reports the error
            done = run_jobs(shared[job][0], [job], request, wait=False, reader=reader)
            for experiment in shared[job]:
                take_from_models(experiment, done)


def shared_jobs(names: Sequence[str], request: Request) -> dict[Job, list[Experiment]]:
    """Return the jobs of the experiments `names`, each once, with the experiments that share it."""
    shared: dict[Job, list[Experiment]] = {}
    for name in names:
        experiment = requested_experiment(name, request)
        for job in dict.fromkeys(requested_jobs(experiment, request)):
            shared.setdefault(stored_as(job, experiment), []).append(experiment)
    return shared


def _names_by_job(shared: Mapping[Job, Sequence[Experiment]]) -> dict[Job, tuple[str, ...]]:
    return {job: tuple(filter(None, (each.needed_from(job) for each in sharing))) for job, sharing in shared.items()}
