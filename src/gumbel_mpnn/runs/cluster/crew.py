"""The crew of a Ray cluster: divides runs into tasks, and follows them."""

from __future__ import annotations

import copy
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from gumbel_mpnn._version import __version__
from gumbel_mpnn.runs.cluster.board import Board, Follower
from gumbel_mpnn.runs.cluster.connection import connection, marked, sees_lock
from gumbel_mpnn.runs.cluster.task import Files, Group, Shares, call, train_group, versions
from gumbel_mpnn.runs.fitting import Place, share_of, wait_for_others, write_facts_of
from gumbel_mpnn.runs.machines import Machines
from gumbel_mpnn.runs.spec import Workload
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.runs.work_queue import WorkQueue, even_groups
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.settings.plugins import VARIABLE as PLUGINS
from gumbel_mpnn.util.errors import DamagedError, DivergedError, UserError, counted, reason
from gumbel_mpnn.util.files import digest

POLL_SECONDS = 0.5
CHECK_SECONDS = 10.0
"""Time between two looks at whether the cluster still has a machine for the tasks."""
PASSED_ON = (PLUGINS, "GUMBEL_MPNN_DATA", "GUMBEL_MPNN_CACHE", "OMP_NUM_THREADS")
"""Environment variables that tasks get from the calling process."""

T = TypeVar("T")


class _StoppedError(Exception):
    """The work was stopped by another thread."""


@contextmanager
def connected(machines: Machines, runs: str | Path, device: str) -> Iterator[RayCrew]:
    """Connect to a cluster, whose tasks train until the block ends."""
    with ExitStack() as stack:
        stack.enter_context(connection(machines.address))
        mark = stack.enter_context(marked(Path(runs)))
        yield RayCrew(machines, mark, device)


class RayCrew:
    """Trains groups of replicas as tasks of the connected Ray cluster.

    `mark` is a locked file in the folder of runs; None if files cannot be locked there.
    """

    def __init__(self, machines: Machines, mark: Path | None, device: str) -> None:
        self.machines, self.device = machines, device
        self.cpus, self.gpus = machines.cpus, _gpus(machines, device)
        self._stopped, self._lock, self._boards = threading.Event(), threading.Lock(), list[Any]()
        threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
        self._shares = Shares(int(threads) if threads.isdigit() else max(1, int(self.cpus)), self.gpus)
        self._variables = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
        self._look_for_room()
        self.slots = max(1, sum(map(self._tasks_on, _nodes())))
        self._mark = self._seen_everywhere(mark) if machines.store != "driver" else None
        """None if the calling process writes the runs."""

    def branch(self) -> RayCrew:
        """Return the same crew, whose work can be stopped separately."""
        branch = copy.copy(self)
        branch._stopped = threading.Event()
        return branch

    def stop(self) -> None:
        """Let `train` end in all threads, and cancel its tasks."""
        self._stopped.set()

    @property
    def shares_disk(self) -> bool:
        """Whether tasks can write to the folder of runs."""
        return self._mark is not None

    def call(self, what: str, work: Callable[[int], None], device: str, times: int, watch: Callable[[], None]) -> None:
        """Call `work` with the bytes that it may use in several tasks, and `watch` from time to time until they end.

        `work` is a function of the package, or a `partial` of one; messages call it `what`. `watch` is called in this
        process.
        """
        sent = ray.put(work)
        tasks = {self._remote(call).remote(sent, self._shares, device): None for _ in range(times)}
        for _ in self._as_they_end(tasks, what, watch):
            pass

    def train(self, workload: Workload, missing: Sequence[Replica], folder: SettingFolder, place: Place) -> None:
        """Train the missing replicas; each group is a task."""
        queue, size, runs = WorkQueue(folder), share_of(missing, place.parts), None
        if self.shares_disk:
            runs = Path(place.runs or "").absolute()
            groups = queue.begun(missing)
            begun = {replica for group in groups for replica in group}
            groups += even_groups([replica for replica in missing if replica not in begun], size)
        else:
            groups = queue.plan(missing, size).free
        follower = self._follow(workload, missing, len(groups), place)
        work = Group(
            settings=workload.settings,
            data_hash=workload.data_hash,
            replicas=[],
            place=Place(runs, place.experiment, place.device, place.memory, models=place.models),
            mark=self._mark,
            shares=self._shares,
        )
        submit = partial(self._submit, ray.put(workload.data), work, follower)
        try:
            if self.shares_disk:
                self._train_on_shared_disk(submit, workload, groups, folder, follower)
            else:
                self._train_for_driver(submit, workload, missing, queue, size, place, follower)
        finally:
            if follower is not None:
                follower.close()

    def _follow(self, workload: Workload, missing: Sequence[Replica], groups: int, place: Place) -> Follower | None:
        monitor, settings, total = place.monitor, workload.settings, len(workload.replicas)
        if monitor is None:
            return None
        monitor.begin(settings, total, total - len(missing), groups, 0)
        return Follower(monitor, self._board(), settings.train.epochs, groups, len(missing))

    def _board(self) -> Any:
        with self._lock:
            if not self._boards:
                self._boards.append(ray.remote(Board).options(num_cpus=0).remote())
            return self._boards[0]

    def _train_on_shared_disk(
        self,
        submit: Any,
        workload: Workload,
        groups: Sequence[list[Replica]],
        folder: SettingFolder,
        follower: Follower | None,
    ) -> None:
        """Submit the groups; their tasks claim them and write to the store."""
        tasks = {submit(number, group): (number, group) for number, group in enumerate(groups)}
        for (number, group), _ in self._as_they_end(tasks, _what(workload), follower):
            _report(number, group, folder, follower)

    def _train_for_driver(
        self,
        submit: Any,
        workload: Workload,
        missing: Sequence[Replica],
        queue: WorkQueue,
        size: int,
        place: Place,
        follower: Follower | None,
    ) -> None:
        """Claim the groups, submit them, and write what their tasks return."""
        folder, numbers = queue.folder, itertools.count()
        while any(not folder.is_finished(replica) for replica in missing):
            with ExitStack() as held:
                tasks = {}
                while (claim := queue.next(missing, size)) is not None:
                    held.enter_context(claim)
                    number = next(numbers)
                    tasks[submit(number, claim.group)] = (number, claim)
                if not tasks:
                    wait_for_others(queue, missing, size, workload.settings, place)
                try:
                    for (number, claim), files in self._as_they_end(tasks, _what(workload), follower):
                        write_facts_of(workload, queue)
                        _write(folder, files)
                        claim.close()
                        _report(number, claim.group, folder, follower)
                except DivergedError as error:
                    for _, claim in tasks.values():
                        if {*error.runs} & {*map(str, claim.group)}:
                            claim.give_up(error.runs)
                    raise

    def _submit(self, data: Any, work: Group, follower: Follower | None, number: int, group: list[Replica]) -> Any:
        place = replace(work.place, monitor=None if follower is None else follower.reporter(number))
        return self._remote(train_group).remote(data, replace(work, replicas=group, place=place))

    def _remote(self, function: Any, **options: Any) -> Any:
        """Return the function as a Ray task with the shares of a task."""
        shares = {"num_cpus": self.cpus, "num_gpus": self.gpus, "max_retries": self.machines.retries}
        return ray.remote(function).options(**{**shares, "runtime_env": {"env_vars": self._variables}, **options})

    def _as_they_end(
        self, tasks: Mapping[Any, T], what: str, watch: Callable[[], None] | None = None
    ) -> Iterator[tuple[T, Any]]:
        """Yield the tasks that ended, each with its result. If one fails, the others are cancelled."""
        left, checked, roomy = list(tasks), time.monotonic(), time.monotonic()
        try:
            while left:
                done, left = ray.wait(left, timeout=POLL_SECONDS)
                if self._stopped.is_set():
                    raise _StoppedError
                if watch is not None:
                    watch()
                for task in done:
                    yield tasks[task], self._result(task, what)
                if time.monotonic() - checked > CHECK_SECONDS:
                    checked = time.monotonic()
                    roomy = checked if any(map(self._tasks_on, _nodes())) else roomy
                    if checked - roomy > self.machines.patience:
                        raise self._no_room()
        finally:
            for task in left:
                with suppress(Exception):
                    ray.cancel(task, force=True)

    def _result(self, task: Any, what: str) -> Any:
        try:
            return ray.get(task)
        except RayTaskError as error:
            raise (error.cause if isinstance(error.cause, Exception) else error) from error  # that of the task itself
        except RayError as error:
            raise UserError(
                f"a task of {what} was tried {counted(1 + self.machines.retries, 'time')}, and its worker died each"
                f" time ({reason(error)}): does it have enough memory? Finished runs are safe: repeat the command to"
                " continue"
            ) from error

    def _look_for_room(self) -> None:
        """Raise a `UserError` if no task can begin in time, or if a worker lacks this package."""
        first = self._remote(versions).remote()
        try:
            found = ray.get(first, timeout=self.machines.patience)
        except GetTimeoutError:
            ray.cancel(first, force=True)
            raise self._no_room() from None
        except (RayError, ValueError) as error:
            raise UserError(
                f"no task can begin on the cluster ({_last_line(error)}): every machine needs gumbel-mpnn"
                f" {__version__} in the Python that Ray runs"
            ) from error
        if found != versions():
            theirs, ours = (", ".join(" ".join(pair) for pair in each.items()) for each in (found, versions()))
            raise UserError(f"the cluster has {theirs}, but this process {ours}: install the same versions")

    def _no_room(self) -> UserError:
        largest = max(_nodes(), key=lambda node: (node.get("GPU", 0), node.get("CPU", 0)), default={})
        return UserError(
            f"no machine of the cluster had {self.cpus:g} CPU and {self.gpus:g} GPU free for a task within"
            f" {self.machines.patience:g} s (the largest has {largest.get('CPU', 0):g} CPU and"
            f" {largest.get('GPU', 0):g} GPU): ask for less of them, or wait until others need them no more"
        )

    def _tasks_on(self, node: Mapping[str, float]) -> int:
        """Number of tasks that a machine with these resources can run at once."""
        wanted = {"CPU": self.cpus, "GPU": self.gpus}
        return int(min(node.get(kind, 0) / amount for kind, amount in wanted.items() if amount))

    def _seen_everywhere(self, mark: Path | None) -> Path | None:
        """Return the mark if every machine that can run tasks sees it and the lock on it."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        blind = "the calling process" if mark is None else ""
        if mark is not None:
            nodes = [node for node in ray.nodes() if node["Alive"] and self._tasks_on(node["Resources"])]
            there = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
            look = partial(self._remote, sees_lock, num_cpus=0, num_gpus=0)
            try:
                looks = [look(scheduling_strategy=strategy).remote(mark) for strategy in there]
                seen = ray.get(looks, timeout=self.machines.patience)
            except (RayError, GetTimeoutError) as error:
                raise UserError(f"a machine of the cluster does not answer: {_last_line(error)}") from error
            names = [node["NodeManagerHostname"] for node in nodes]
            blind = next((name for name, sees in zip(names, seen, strict=True) if not sees), "")
        if blind and self.machines.store == "shared":
            raise UserError(
                f"the folder of runs, or file locks in it, cannot be used on {blind}: name a folder on a disk that"
                " every machine has, or let the calling process write the runs (--store driver)"
            )
        return None if blind else mark


def _what(workload: Workload) -> str:
    return f"{workload.settings.model} on {workload.settings.dataset}"


def _write(folder: SettingFolder, found: Files) -> None:
    """Write the files that a task returned, unless another process has written the run."""
    for name, (sent, files) in found.items():
        replica = Replica.parse(name)
        if digest(files.items()) != sent:
            raise DamagedError(f"the files of {name} were damaged on their way from the cluster: repeat the command")
        if not folder.is_finished(replica):
            folder.write_files(replica, files)


def _report(number: int, group: Sequence[Replica], folder: SettingFolder, follower: Follower | None) -> None:
    if follower is not None:
        follower.ended(number, sum(folder.record(replica).val_or_nan for replica in group) / len(group))


def _nodes() -> list[dict[str, float]]:
    """Resources of the machines that are alive."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _gpus(machines: Machines, device: str) -> float:
    if machines.gpus is not None:
        gpus = machines.gpus
    else:
        gpus = 1 if device != "cpu" and any(node.get("GPU", 0) >= 1 for node in _nodes()) else 0
    if device.startswith("cuda") and not gpus:
        raise UserError("tasks on a GPU need a share of one, but the cluster has none or the share is 0")
    return gpus


def _last_line(error: Exception) -> str:
    """Last line of an error of Ray, which begins with a traceback."""
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__
