"""Processes that train beside this one.

They do jobs of the same tables, each from another place in the list, and show nothing; the store sees to it that no run
is trained twice. This process goes through all jobs too: it finds what they did, and meets again whatever failed there.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from multiprocessing.process import BaseProcess
from typing import NoReturn

import torch

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.locks import can_lock
from gumbel_mpnn.paper.reproduction import Request, train_jobs
from gumbel_mpnn.runs import DataReader


@contextmanager
def workers_beside(names: Sequence[str], request: Request) -> Iterator[Request]:
    """All workers but this one are at work on the experiments of these names until the block ends.

    There are never more than jobs, or than cores; the request that is given out has as many workers as there are.
    """
    if request.workers > 1 and not can_lock():
        raise UserError("files cannot be locked here, so only one process may write runs: leave out --workers")
    # What is asked for in vain is told here, before there is anybody else.
    jobs = sum(len(request.jobs(request.experiment(name))) for name in names)
    request = replace(request, workers=max(1, min(request.workers, jobs, os.cpu_count() or 1)))
    spawning = multiprocessing.get_context("spawn")
    places = range(1, request.workers)
    workers = [spawning.Process(target=_assist, args=(names, request, place), daemon=True) for place in places]
    with ExitStack() as stack:
        if workers:
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            stack.callback(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
            stack.callback(_end, workers)
            signal.signal(signal.SIGTERM, _interrupt)
            _share_cores(request)
        for worker in workers:
            worker.start()
        yield request


def _end(workers: Sequence[BaseProcess]) -> None:
    """Those that were started, however far."""
    started = [worker for worker in workers if worker.pid is not None]
    for worker in started:
        worker.terminate()
    for worker in started:
        worker.join()


def _interrupt(*_: object) -> NoReturn:
    """Told to end, as by `timeout` or a scheduler of jobs: not before the workers are ended too."""
    raise KeyboardInterrupt


def _assist(names: Sequence[str], request: Request, place: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started us ends us
    warnings.simplefilter("ignore")
    _share_cores(request)
    starter, reader = multiprocessing.parent_process(), DataReader()
    for name in names:
        experiment = request.experiment(name)
        jobs = request.jobs(experiment)
        first = place * len(jobs) // request.workers
        for job in jobs[first:] + jobs[:first]:
            if starter is not None and not starter.is_alive():
                return
            with suppress(Exception):  # told by the one who started us, who comes to the same job
                done = train_jobs(experiment, [job], request, wait=False, reader=reader)
                if experiment.from_models:
                    experiment.collect(done)  # what it takes from models is then kept, and nobody makes it again


def _share_cores(request: Request) -> None:
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // request.workers))
