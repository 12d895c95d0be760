"""Runs as tasks of a Ray cluster: the only module that uses Ray, imported if a cluster is asked for.

A task trains one group of replicas of a setting. Ray decides where and when, and starts it again if its worker dies.
Tasks share a store in one of two ways:

- `shared`: the folder of runs is on a disk that every machine has. A task claims its group with file locks, as every
  process does, and writes to the store.
- `driver`: the calling process claims the groups. A task trains in a temporary folder and returns the files, which the
  calling process writes.

The graph travels with the tasks, so that the machines need no files of the user.
"""

from __future__ import annotations

import copy
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch_geometric.data import Data

from gumbel_mpnn._util import checksums
from gumbel_mpnn._util.errors import DivergedError, UserError, reason
from gumbel_mpnn._util.files import sweep
from gumbel_mpnn._util.locks import FileLock
from gumbel_mpnn._util.numbers import counted
from gumbel_mpnn._util.scratch import ScratchFolder
from gumbel_mpnn._version import __version__
from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.config.plugins import VARIABLE as PLUGINS
from gumbel_mpnn.config.plugins import load_plugins
from gumbel_mpnn.runs.fitting import Place, share_of, train_here, wait_for_others, write_facts_of
from gumbel_mpnn.runs.machines import LOCAL, Machines
from gumbel_mpnn.runs.processes import interrupted_by_sigterm
from gumbel_mpnn.runs.spec import Workload
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.runs.work_queue import WorkQueue, even_groups
from gumbel_mpnn.training import pick_device
from gumbel_mpnn.training.device import available_bytes

# Ray reads these when it is imported: no reports of usage, no messages of dead workers on standard output, and an end
# of the retries of tasks that Ray kills for want of memory.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".*")
os.environ.setdefault("RAY_task_oom_retries", "3")
try:
    import ray
    from ray.exceptions import GetTimeoutError, RayError, RayTaskError
except ImportError:
    raise UserError('a cluster needs Ray, which is not installed: pip install "gumbel-mpnn[cluster]"') from None

CONNECT_SECONDS = 5.0
POLL_SECONDS = 0.5
CHECK_SECONDS = 10.0
"""Time between two looks at whether the cluster still has a machine for the tasks."""
PASSED_ON = (PLUGINS, "GUMBEL_MPNN_DATA", "GUMBEL_MPNN_CACHE", "OMP_NUM_THREADS")
"""Environment variables that tasks get from the calling process."""
TOKEN = "cluster"

T = TypeVar("T")
Files = dict[str, tuple[str, dict[str, bytes]]]
"""Checksum and files of each run, by its name."""


class _StoppedError(Exception):
    """The work was stopped by another thread."""


@dataclass(frozen=True)
class _Group:
    """What a task must know, besides the graph."""

    settings: Settings
    data_hash: str
    replicas: list[Replica]
    place: Place
    """Where and how it trains; without a folder, the task returns the files of its runs."""
    token: Path | None
    """File that exists as long as the calling process lives, if the folder of runs is on a shared disk."""
    shares: _Shares


@dataclass(frozen=True)
class _Shares:
    """Threads and memory of a task."""

    threads: int
    gpus: float
    """Share of a GPU and its memory."""

    def use(self, device: str) -> int:
        """Use as many threads in this process, with the plugins of the user; returns the bytes that it may use."""
        load_plugins()
        torch.set_num_threads(self.threads)
        where = pick_device(device)
        share = self.gpus if where.type == "cuda" else self.threads / (os.cpu_count() or 1)
        return int(available_bytes(where) * min(1.0, share))


@contextmanager
def connected(machines: Machines, runs: str | Path, device: str) -> Iterator[RayCrew]:
    """Connect to a cluster, whose tasks train until the block ends."""
    with ExitStack() as stack:
        stack.enter_context(_connection(machines.address))
        token = stack.enter_context(_token(Path(runs)))
        yield RayCrew(machines, token, device)


class RayCrew:
    """Trains groups of replicas as tasks of the connected Ray cluster.

    Args:
        machines: Shares of a task, and where its runs are written.
        token: Locked file in the folder of runs; None if files cannot be locked there.
        device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
    """

    def __init__(self, machines: Machines, token: Path | None, device: str) -> None:
        self.machines, self.device = machines, device
        self.cpus, self.gpus = machines.cpus, _gpus(machines, device)
        self._stopped = threading.Event()
        threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
        self._shares = _Shares(int(threads) if threads.isdigit() else max(1, int(self.cpus)), self.gpus)
        self._variables = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
        self._look_for_room()
        self.slots = max(1, sum(map(self._tasks_on, _nodes())))
        self._token = self._seen_everywhere(token) if machines.store != "driver" else None
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
        return self._token is not None

    def call(self, what: str, work: Callable[[int], None], device: str, times: int, watch: Callable[[], None]) -> None:
        """Call `work` with the bytes that it may use in several tasks, and `watch` from time to time until they end.

        Args:
            what: What the tasks do, for messages.
            work: Function of the package, or a `partial` of one.
            device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
            times: Number of tasks.
            watch: Called in this process.
        """
        tasks = {self._remote(_call).remote(work, self._shares, device): None for _ in range(times)}
        for _ in self._as_they_end(tasks, what, watch):
            pass

    def train(self, workload: Workload, missing: Sequence[Replica], folder: SettingFolder, place: Place) -> None:
        """Train the missing replicas; each group is a task."""
        queue, size = WorkQueue(folder), share_of(missing, place.parts)
        work = _Group(
            settings=workload.settings,
            data_hash=workload.data_hash,
            replicas=[],
            place=Place(None, place.experiment, place.device, place.memory, models=place.models),
            token=self._token,
            shares=self._shares,
        )
        submit = partial(self._submit, ray.put(workload.data), work)
        if self._token is None:
            self._train_for_driver(submit, workload, missing, queue, size, place)
        else:
            here = replace(work.place, runs=Path(place.runs or "").absolute())
            self._train_on_shared_disk(partial(submit, place=here), workload, missing, queue, size, place)

    def _train_on_shared_disk(
        self, submit: Any, workload: Workload, missing: Sequence[Replica], queue: WorkQueue, size: int, place: Place
    ) -> None:
        """Submit the groups; their tasks claim them and write to the store."""
        groups = queue.begun(missing)
        begun = {replica for group in groups for replica in group}
        groups += even_groups([replica for replica in missing if replica not in begun], size)
        _begin(workload, missing, len(groups), place)
        for group, _ in self._as_they_end({submit(group): group for group in groups}, _what(workload)):
            _report(group, workload, queue.folder, place)

    def _train_for_driver(
        self, submit: Any, workload: Workload, missing: Sequence[Replica], queue: WorkQueue, size: int, place: Place
    ) -> None:
        """Claim the groups, submit them, and write what their tasks return."""
        folder = queue.folder
        _begin(workload, missing, len(queue.plan(missing, size).free), place)
        while any(not folder.is_finished(replica) for replica in missing):
            with ExitStack() as held:
                tasks = {}
                while (claim := queue.next(missing, size)) is not None:
                    held.enter_context(claim)
                    tasks[submit(claim.group)] = claim
                if not tasks:
                    wait_for_others(queue, missing, size, workload.settings, place)
                try:
                    for claim, files in self._as_they_end(tasks, _what(workload)):
                        write_facts_of(workload, queue)
                        _write(folder, files)
                        claim.close()
                        _report(claim.group, workload, folder, place)
                except DivergedError as error:
                    diverged = [claim for claim in tasks.values() if {*error.runs} & {*map(str, claim.group)}]
                    diverged[0].give_up(error.runs)
                    raise

    def _submit(self, data: Any, work: _Group, group: list[Replica], place: Place | None = None) -> Any:
        return self._remote(_train_group).remote(data, replace(work, replicas=group, place=place or work.place))

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
            raise _cause(error) from error
        except RayError as error:
            raise UserError(
                f"a task of {what} was tried {counted(1 + self.machines.retries, 'time')}, and its worker died each"
                f" time ({reason(error)}): does it have enough memory? Finished runs are safe: repeat the command to"
                " continue"
            ) from error

    def _look_for_room(self) -> None:
        """Raise a `UserError` if no task can begin in time, or if a worker lacks this package."""
        first = self._remote(_versions).remote()
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
        if found != _versions():
            theirs, ours = (", ".join(" ".join(pair) for pair in each.items()) for each in (found, _versions()))
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

    def _seen_everywhere(self, token: Path | None) -> Path | None:
        """Return the token if every machine that can run tasks sees it and the lock on it."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        blind = "the calling process" if token is None else ""
        if token is not None:
            looks = {
                node["NodeManagerHostname"]: self._remote(
                    _sees_lock,
                    num_cpus=0,
                    num_gpus=0,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
                ).remote(token)
                for node in ray.nodes()
                if node["Alive"] and self._tasks_on(node["Resources"])
            }
            try:
                seen = ray.get(list(looks.values()), timeout=self.machines.patience)
            except (RayError, GetTimeoutError) as error:
                raise UserError(f"a machine of the cluster does not answer: {_last_line(error)}") from error
            blind = next((name for name, sees in zip(looks, seen, strict=True) if not sees), "")
        if blind and self.machines.store == "shared":
            raise UserError(
                f"the folder of runs, or file locks in it, cannot be used on {blind}: name a folder on a disk that"
                " every machine has, or let the calling process write the runs (--store driver)"
            )
        return None if blind else token


def _train_group(data: Data, work: _Group) -> Files | None:
    """Train one group in a process of the cluster; returns the files of its runs if it has no shared folder."""
    place, memory = work.place, work.shares.use(work.place.device)
    place = replace(place, memory=memory if place.memory is None else place.memory)
    workload = Workload(work.settings, data, work.data_hash, work.replicas)
    if place.runs is not None:
        if work.token is not None and not work.token.exists():
            raise UserError(
                f"{socket.gethostname()} does not have the folder {place.runs}, or the calling process has ended: let"
                " the calling process write the runs (--store driver)"
            )
        train_here(workload, place.folder(workload, place.runs), place)
        return None
    with ScratchFolder() as runs:
        folder = place.folder(workload, runs)
        train_here(workload, folder, place)
        found = {replica: folder.files(replica) for replica in work.replicas}
        return {str(replica): (checksums.digest(files.items()), files) for replica, files in found.items()}


def _call(work: Callable[[int], None], shares: _Shares, device: str) -> None:
    """Work in a process of the cluster."""
    work(shares.use(device))


def _what(workload: Workload) -> str:
    return f"{workload.settings.model} on {workload.settings.dataset}"


def _write(folder: SettingFolder, found: Files) -> None:
    """Write the files that a task returned, unless another process has written the run."""
    for name, (digest, files) in found.items():
        replica = Replica.parse(name)
        checksums.check(digest, checksums.digest(files.items()))
        if not folder.is_finished(replica):
            folder.write_files(replica, files)


def _begin(workload: Workload, missing: Sequence[Replica], groups: int, place: Place) -> None:
    total = len(workload.replicas)
    if place.monitor is not None:
        place.monitor.begin(workload.settings, total, total - len(missing), groups, 0)


def _report(group: Iterable[Replica], workload: Workload, folder: SettingFolder, place: Place) -> None:
    """Tell the monitor that a group is finished."""
    if place.monitor is not None:
        values, epochs = [folder.record(replica).val_or_nan for replica in group], workload.settings.train.epochs
        place.monitor.group(len(values), epochs)
        place.monitor.progress(epochs, sum(values) / len(values))


def _versions() -> dict[str, str]:
    """Versions that must be the same on all machines."""
    return {"gumbel-mpnn": __version__, "torch": version("torch").partition("+")[0]}


def _sees_lock(token: Path) -> bool:
    """Whether this machine sees the file, and that the calling process has locked it."""
    try:
        lock = FileLock(token)
    except OSError:
        return False
    try:
        return not lock.take(wait=False)
    except OSError:  # a file system without locks
        return False
    finally:
        lock.release()


@contextmanager
def _token(runs: Path) -> Iterator[Path | None]:
    """Create a locked file in the folder of runs, by which other machines recognize it; None if it cannot be locked."""
    runs.mkdir(parents=True, exist_ok=True)
    sweep(runs, TOKEN)  # of killed processes
    token = (runs / f".{TOKEN}.{os.getpid()}-{os.urandom(4).hex()}").absolute()
    token.touch()
    lock = FileLock(token)
    try:
        try:
            locked = lock.take(wait=False)
        except OSError:
            locked = False
        yield token if locked else None
    finally:
        token.unlink(missing_ok=True)
        lock.release()


@contextmanager
def _connection(address: str | None) -> Iterator[None]:
    """Connect to the cluster; a connection that the caller has made before is used and left open."""
    if ray.is_initialized():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        _connect(address)
        with interrupted_by_sigterm():
            yield
    finally:
        ray.shutdown()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray has its own


def _connect(address: str | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    # Not the cluster that happens to run here: it may be that of another command, and end with it.
    named = address or os.environ.get("RAY_ADDRESS") or LOCAL
    try:
        _check_reachable(os.environ.get("RAY_ADDRESS", named) if named == "auto" else named)
        ray.init(named, **quiet, **({"include_dashboard": False} if named == LOCAL else {}))
    except ImportError as error:
        raise UserError(
            f'{named} needs the Ray client, which is not installed ({reason(error)}): pip install "ray[client]"'
        ) from None
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise UserError(
            f"cannot connect to the Ray cluster {named!r}: {reason(error)}; is it running, and if it asks for a token,"
            " is RAY_AUTH_MODE=token set?"
        ) from error


def _check_reachable(address: str) -> None:
    """Raise an `OSError` if nobody answers at HOST:PORT, for which Ray would wait for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


def _nodes() -> list[dict[str, float]]:
    """Resources of the machines that are alive."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _gpus(machines: Machines, device: str) -> float:
    """Share of a GPU for each task."""
    if machines.gpus is not None:
        gpus = machines.gpus
    else:
        gpus = 1 if device != "cpu" and any(node.get("GPU", 0) >= 1 for node in _nodes()) else 0
    if device.startswith("cuda") and not gpus:
        raise UserError("tasks on a GPU need a share of one, but the cluster has none or the share is 0")
    return gpus


def _cause(error: RayTaskError) -> Exception:
    """The error of the task itself."""
    return error.cause if isinstance(error.cause, Exception) else error


def _last_line(error: Exception) -> str:
    """Last line of an error of Ray, which begins with a traceback."""
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__
