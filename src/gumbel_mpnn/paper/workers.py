"""Processes and clusters that train the jobs of tables together with the calling process.

Each process starts at another place in the list of jobs. The run store makes sure that no run is trained twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from gumbel_mpnn.paper.base import run_jobs
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.paper.tables import requested_experiment, requested_jobs
from gumbel_mpnn.runs import DataReader
from gumbel_mpnn.runs.machines import crew_of
from gumbel_mpnn.runs.processes import caller_is_alive, check_workers, start_processes


@contextmanager
def start_workers(names: Sequence[str], request: Request) -> Iterator[Request]:
    """Train the jobs of the experiments `names` on the machines of the request until the block ends.

    On this machine there are never more workers than jobs or CPU cores. The calling process counts as one of them.

    Yields:
        The request with the actual number of workers, or with the cluster.
    """
    check_workers(request.workers)
    # Invalid names are reported here, before a process is started.
    jobs = sum(len(requested_jobs(requested_experiment(name, request), request)) for name in names)
    if not request.machines.is_local:
        if not jobs:
            yield request
            return
        with crew_of(request.machines, request.runs, request.device) as crew:
            yield replace(request, crew=crew)
        return
    workers = max(1, min(request.workers, jobs, os.cpu_count() or 1))
    request = replace(request, workers=workers)
    with start_processes(workers, assist, names, request):
        yield request


def assist(place: int, names: Sequence[str], request: Request) -> None:
    """Train jobs in a worker process, beginning at its own place in the list."""
    reader = DataReader()
    for name in names:
        experiment = requested_experiment(name, request)
        jobs = requested_jobs(experiment, request)
        first = place * len(jobs) // request.workers
        for job in jobs[first:] + jobs[:first]:
            if not caller_is_alive():
                return
            with suppress(Exception):  # the calling process comes to the same job and reports the error
                done = run_jobs(experiment, [job], request, wait=False, reader=reader)
                if experiment.from_models:
                    experiment.collect(done)  # stores what the table takes from models
