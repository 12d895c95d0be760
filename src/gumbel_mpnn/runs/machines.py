"""Where runs are trained: in this process, in several processes of this machine, or on a Ray cluster, many at once."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from gumbel_mpnn.data import get_spec
from gumbel_mpnn.runs.auto import AutoSpec
from gumbel_mpnn.runs.fitting import Crew, Monitor, Place, Step
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.workers import check_workers, start_processes
from gumbel_mpnn.settings import Settings
from gumbel_mpnn.training import pick_device
from gumbel_mpnn.training.device import available_bytes
from gumbel_mpnn.util.errors import UserError, check_at_least
from gumbel_mpnn.util.locks import can_lock

if TYPE_CHECKING:
    from gumbel_mpnn.runs.entry import AnySpec

LOCAL, RAY = "local", "ray"
STORES = ("auto", "shared", "driver")
MOST_EDGES = 10**6
"""With more edges, every process would need much memory for a graph of its own."""
_ADDRESS = re.compile(r"ray(?:://[^/\s]+|:[^/\s]+)?")
J = TypeVar("J")
R = TypeVar("R")


@dataclass(frozen=True)
class Machines:
    """Where runs are trained; this does not change their results. See docs/cluster.md."""

    on: str = LOCAL
    """`local` for this machine. `ray` for the Ray cluster that `RAY_ADDRESS` names, or else one that is started on this
    machine and ended with the work, `ray:auto` for one that runs on this machine, `ray:HOST:PORT` for the one with this
    address, and `ray://HOST:PORT` for one that is reached through its client server."""
    workers: int = 1
    """With `local`: number of processes that train at once, limited by the number of CPU cores."""
    cpus: float = 1
    """With Ray: CPUs of each task. Its threads are as many, unless `OMP_NUM_THREADS` is set."""
    gpus: float | None = None
    """With Ray: share of a GPU for each task. By default 1 if the cluster has GPUs and `device` is not `cpu`."""
    store: str = "auto"
    """With Ray: `shared` if every machine has the folder of runs and its file locks, so that tasks write to it;
    `driver` if the calling process writes what they return; `auto` to look which of the two it is."""
    retries: int = 3
    """With Ray: how often a task is tried again when its worker dies."""
    patience: float = 120
    """With Ray: seconds after which a cluster without free CPUs or GPUs for a task is an error."""

    def __post_init__(self) -> None:
        if not isinstance(self.on, str) or not (self.on == LOCAL or _ADDRESS.fullmatch(self.on)):
            raise UserError(f"on must be local, ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT, but is {self.on!r}")
        check_at_least(1, workers=self.workers)
        check_at_least(0, retries=self.retries)
        for name, value in (("cpus", self.cpus), ("gpus", self.gpus or 0), ("patience", self.patience)):
            if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= value < float("inf"):
                raise UserError(f"{name} must be a number that is not negative, but is {value!r}")
            if name != "patience" and value > 1 and value != int(value):
                raise UserError(f"{name} above 1 must be a whole number, but is {value!r}")
        if not self.cpus:
            raise UserError("cpus must be above 0: Ray would start all tasks at once")
        if self.store not in STORES:
            raise UserError(f"store must be {', '.join(STORES[:-1])} or {STORES[-1]}, but is {self.store!r}")
        if not self.is_local and self.workers > 1:
            raise UserError(
                "workers are processes of this machine: on a cluster, Ray decides how many tasks run at once, by the"
                " CPUs and GPUs of a task"
            )

    @property
    def is_local(self) -> bool:
        """Whether this machine trains, without Ray."""
        return self.on == LOCAL

    @property
    def address(self) -> str | None:
        """Address for `ray.init`; None for that of `RAY_ADDRESS`, or to start a cluster."""
        if self.on == RAY:
            return None
        return self.on if self.on.startswith("ray://") else self.on.removeprefix("ray:")

    @classmethod
    def of(cls, on: str | Machines) -> Machines:
        """The machines called `on`."""
        return on if isinstance(on, Machines) else cls(on)


@contextmanager
def crew_of(machines: Machines, runs: str | Path, device: str) -> Iterator[Crew | None]:
    """Connect to the cluster until the block ends; there is no crew on this machine."""
    if machines.is_local:
        yield None
        return
    from gumbel_mpnn.runs.cluster.crew import connected

    with connected(machines, runs, device) as crew:
        yield crew


def default_workers(spec: AnySpec, device: str) -> int:
    """Number of processes if the user names none: one, or for `auto` on a CPU, one for each of torch's threads.

    Its rungs are then trained side by side, each by one thread, which takes less time than one rung after another by
    all threads.
    """
    if not isinstance(spec, AutoSpec) or not can_lock() or pick_device(device).type != "cpu":
        return 1
    dataset = spec.plainest.dataset
    edges = get_spec(dataset).num_edges if isinstance(dataset, str) else dataset.num_edges
    return 1 if edges > MOST_EDGES else min(torch.get_num_threads(), len(spec.rungs) // 2)


@contextmanager
def helped(spec: AnySpec, place: Place, machines: Machines) -> Iterator[Place]:
    """Train the runs of `spec` on these machines while the block trains them at the place that it is given."""
    if machines.is_local and machines.workers == 1:
        yield place
        return
    runs = place.runs
    if runs is None:
        raise UserError("several processes need a folder of runs that they share: give it a name with runs=")
    if machines.is_local:
        check_workers(machines.workers)
        count = min(machines.workers, os.cpu_count() or 1)
        memory = available_bytes(pick_device(place.device)) if place.memory is None else place.memory
        place = replace(place, parts=count, memory=memory // count)
        with start_processes(count, _fit, spec, replace(place, monitor=None, reader=None)):
            yield place
    else:
        with crew_of(machines, runs, place.device) as crew:
            yield place.on(crew)


def _fit(_: int, spec: AnySpec, place: Place) -> None:
    from gumbel_mpnn.runs.entry import fit_any

    fit_any(spec, place)


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
