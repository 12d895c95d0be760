"""Runs many small computations over torch's threads, each of them on one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch

LITTLE = 2_000_000
"""Multiplications that are done before another thread wakes up."""


def one_thread_each(compute: Callable[..., None], jobs: Sequence[tuple[Any, ...]], work: int) -> None:
    """Call `compute(*job)` for every job, without gradients, in several threads at once.

    `compute` writes its result into one of its arguments. `work` is the number of multiplications of all calls; a
    little work is not shared.
    """
    threads = torch.get_num_threads()
    waiting = iter(jobs)  # all threads take from it; `next` is atomic
    inference = torch.is_inference_mode_enabled()

    def work_on() -> None:
        with torch.inference_mode() if inference else torch.no_grad():  # each thread has its own mode
            for job in waiting:
                compute(*job)

    if threads == 1:
        return work_on()
    helpers = min(threads, len(jobs)) - 1 if work > LITTLE else 0
    helping = [_helpers(threads - 1).submit(work_on) for _ in range(helpers)]
    try:
        torch.set_num_threads(1)
        work_on()
    finally:
        torch.set_num_threads(threads)
        for helper in helping:
            if not helper.cancel():  # it has begun
                helper.result()


@cache
def _helpers(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "gumbel-mpnn", initializer=_take_one_thread)


def _take_one_thread() -> None:
    torch.get_num_threads()  # sets the number of this thread to that of the process when it is first called
    torch.set_num_threads(1)
