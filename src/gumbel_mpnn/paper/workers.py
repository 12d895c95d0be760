"""Processes that train the jobs of a table together with the calling process.

Each worker starts at another place in the list of jobs. The run store makes sure that no run is trained twice. The
calling process goes through all jobs as well: it finds the runs that the workers finished, and raises their errors.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from multiprocessing.process import BaseProcess
from typing import NoReturn

import torch

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.locks import can_lock
from gumbel_mpnn.paper.base import run_jobs
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.paper.tables import requested_experiment, requested_jobs
from gumbel_mpnn.runs import DataReader


@contextmanager
def start_workers(names: Sequence[str], request: Request) -> Iterator[Request]:
    """Run worker processes on the experiments `names` until the block ends.

    There are never more workers than jobs or CPU cores. The calling process counts as one of them.

    Yields:
        The request with the actual number of workers.
    """
    if request.workers > 1 and not can_lock():
        raise UserError("several workers need file locks, which this system does not have: use one worker")
    # Invalid names are reported here, before a process is started.
    jobs = sum(len(requested_jobs(requested_experiment(name, request), request)) for name in names)
    request = replace(request, workers=max(1, min(request.workers, jobs, os.cpu_count() or 1)))
    spawning = multiprocessing.get_context("spawn")
    places = range(1, request.workers)
    workers = [spawning.Process(target=_assist, args=(names, request, place), daemon=True) for place in places]
    with ExitStack() as stack:
        if workers:
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            stack.enter_context(_interrupted_by_sigterm())
            stack.callback(_end, workers)
            _share_cores(request)
        for worker in workers:
            worker.start()
        yield request


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Turn SIGTERM, as sent by `timeout` or a job scheduler, into a `KeyboardInterrupt`, so that workers are ended.

    Python allows this in the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _end(workers: Sequence[BaseProcess]) -> None:
    """End all workers that were started."""
    started = [worker for worker in workers if worker.pid is not None]
    for worker in started:
        worker.terminate()
    for worker in started:
        worker.join()


def _assist(names: Sequence[str], request: Request, place: int) -> None:
    """Train jobs in a worker process, beginning at its own place in the list."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the calling process ends its workers
    warnings.simplefilter("ignore")
    _share_cores(request)
    caller, reader = multiprocessing.parent_process(), DataReader()
    for name in names:
        experiment = requested_experiment(name, request)
        jobs = requested_jobs(experiment, request)
        first = place * len(jobs) // request.workers
        for job in jobs[first:] + jobs[:first]:
            if caller is not None and not caller.is_alive():
                return
            with suppress(Exception):  # the calling process comes to the same job and reports the error
                done = run_jobs(experiment, [job], request, wait=False, reader=reader)
                if experiment.from_models:
                    experiment.collect(done)  # stores what the table takes from models


def _share_cores(request: Request) -> None:
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // request.workers))
