"""Work that a cluster does at the same time, each piece followed by a thread of the calling process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from typing import Any, TypeVar

from gumbel_mpnn.config import Settings
from gumbel_mpnn.runs.fitting import Crew, Monitor, Step
from gumbel_mpnn.runs.run import Run

J = TypeVar("J")
R = TypeVar("R")


def run_at_once(
    do: Callable[[J], R], jobs: Sequence[J], crew: Crew, ignored: tuple[type[Exception], ...] = ()
) -> dict[J, R]:
    """Call `do` for as many jobs at once as the crew has tasks; jobs that raise an ignored error are left out.

    At the first other error, the work of the crew is stopped.
    """
    results = dict[J, R]()
    pool = ThreadPoolExecutor(max(1, min(len(jobs), crew.slots)))
    try:
        futures = {pool.submit(do, job): job for job in jobs}
        for future in as_completed(futures):
            with suppress(*ignored):
                results[futures[future]] = future.result()
    except BaseException:
        crew.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return {job: results[job] for job in jobs if job in results}


class OneAtATime:
    """Passes the reports of several threads on to a monitor, setting by setting, when the runs of one are finished."""

    def __init__(self, monitor: Monitor) -> None:
        self.monitor, self.lock, self.here = monitor, threading.Lock(), threading.local()

    def rung(self, step: Step) -> None:
        """Remember the step of `auto`."""
        self.here.step = step

    def begin(self, settings: Settings, replicas: int, finished: int, groups: int, bytes_needed: int) -> None:
        """Remember the setting."""
        self.here.begun = (settings, replicas, finished, groups, bytes_needed)

    def end(self, run: Run) -> None:
        """Report the setting from its beginning to its end."""
        with self.lock:
            if (step := self.here.__dict__.pop("step", None)) is not None:
                self.monitor.rung(step)
            self.monitor.begin(*self.here.begun)
            self.monitor.end(run)

    def _ignore(self, *_: Any, **__: Any) -> None:
        """What is reported on the way is not passed on."""

    prepare = group = resume = progress = wait = _ignore
