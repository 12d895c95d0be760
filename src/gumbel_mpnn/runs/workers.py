"""Processes of this machine that train the same runs as the calling process.

The run store makes sure that no run is trained twice. The calling process does all of the work as well: it finds the
runs that the others finished, and raises their errors.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.process import BaseProcess
from pickle import PicklingError
from typing import Any

import torch

from gumbel_mpnn.util.errors import UserError, reason
from gumbel_mpnn.util.locks import can_lock


def check_workers(count: int) -> None:
    """Raise a `UserError` if several processes cannot share a store here."""
    if count > 1 and not can_lock():
        raise UserError("several workers need file locks, which this system does not have: use one worker")


@contextmanager
def start_processes(count: int, work: Callable[..., None], *arguments: Any) -> Iterator[list[BaseProcess]]:
    """Call `work(place, *arguments)` in `count - 1` processes until the block ends; their places are 1, 2, and so on.

    The calling process counts as one of them. They share the CPU cores. The block is given the processes.
    """
    spawning = multiprocessing.get_context("spawn")
    workers: list[BaseProcess] = [
        spawning.Process(target=_assist, args=(work, place, count, arguments), daemon=True) for place in range(1, count)
    ]
    with ExitStack() as stack:
        if workers:
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            stack.enter_context(interrupted_by_sigterm())
            stack.callback(_end, workers)
            share_cores(count)
        for worker in workers:
            _start(worker)
        yield workers


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Turn SIGTERM into a `KeyboardInterrupt` in the block, so that training writes a checkpoint and workers are ended.

    It is sent by `timeout`, by job schedulers, and by a process to its workers. Python allows this in the main thread
    only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def share_cores(count: int) -> None:
    """Use a share of the CPU cores, and no more threads than before."""
    torch.set_num_threads(max(1, min(torch.get_num_threads(), (os.cpu_count() or 1) // count)))


def _start(worker: BaseProcess) -> None:
    """Start a worker; raises a `UserError` if a function of the user cannot be sent to it."""
    try:
        worker.start()
    except (PicklingError, AttributeError, TypeError) as error:
        raise UserError(
            f"several workers need a transform that can be sent to other processes ({reason(error)}): define it as a"
            " function of a module, or use one worker"
        ) from error


def _assist(work: Callable[..., None], place: int, count: int, arguments: Sequence[Any]) -> None:
    """Work in a process of its own; the calling process comes to the same errors and reports them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the calling process ends its workers
    sys.unraisablehook = _interrupt_again
    with suppress(Exception, KeyboardInterrupt), interrupted_by_sigterm():
        threading.Thread(target=_end_with_caller, daemon=True).start()
        warnings.simplefilter("ignore")
        share_cores(count)
        work(place, *arguments)


def _interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """Repeat a SIGTERM whose `KeyboardInterrupt` came where Python ignores errors, such as in a weak reference."""
    if lost.exc_type is KeyboardInterrupt:  # a little later, since an error in here is ignored as well
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM)).start()
    else:
        sys.__unraisablehook__(lost)


def _end_with_caller() -> None:
    """Wait until the calling process has ended, even if it was killed, and then end this one as it would have."""
    caller = multiprocessing.parent_process()
    if caller is not None:
        caller.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _end(workers: Sequence[BaseProcess]) -> None:
    started = [worker for worker in workers if worker.pid is not None]
    for worker in started:
        worker.terminate()
    for worker in started:
        worker.join()
