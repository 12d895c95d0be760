"""Processes that train: those of this machine, or tasks of a Ray cluster, both as futures of `concurrent.futures`.

The calling process hands out the work and alone writes what comes back. What is sent is pickled here and not by torch,
which would send tensors through shared memory, of which containers have little.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import torch

from gumbel_mpnn._version import __version__
from gumbel_mpnn.settings.registry import PLUGINS, load_plugins
from gumbel_mpnn.util.errors import UserError, check_at_least, reason

LOCAL, RAY, CLIENT = "local", "ray", "ray://"
CONNECT_SECONDS, START_SECONDS = 5.0, 120.0
PASSED_ON = (PLUGINS, "GUMBEL_MPNN_DATA", "OMP_NUM_THREADS")
"""Environment variables that tasks of a cluster get from the calling process."""
_reports: Any = None
"""In a process of this machine: the queue by which it tells the calling process how far it is."""


class LostError(Exception):
    """The process that did some work died."""


def tell(*report: Any) -> None:
    """Report to the calling process, if it can be reached."""
    if _reports is not None:
        _reports.put(pickle.dumps(report))


class Processes:
    """Processes of this machine, which share its cores."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._start()

    def _start(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        # The processes end when nobody holds the other end of this pipe any more, even if this process was killed.
        self._reader, self._alive = spawning.Pipe(duplex=False)
        self._queue = spawning.SimpleQueue()
        arguments = (self._reader, self._queue, max(1, torch.get_num_threads() // self.count))
        self._pool = ProcessPoolExecutor(self.count, spawning, _begin, arguments)
        for _ in range(self.count):  # they import torch while the calling process reads the data
            self._pool.submit(os.getpid)

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function of a module in one of the processes; those that a dead one took with it are replaced."""
        call = pickle.dumps((work, arguments))
        try:
            return self._pool.submit(_answer, call)
        except BrokenExecutor:
            self.end()
            self._start()
            return self._pool.submit(_answer, call)

    def result(self, future: Future[Any]) -> Any:
        """What a call returned, or its error; a `LostError` if its process died."""
        try:
            return pickle.loads(future.result())  # noqa: S301  # from a process of this machine
        except BrokenExecutor as error:
            raise LostError(reason(error)) from error

    def share(self, value: Any) -> bytes:
        """The pickled value, which is sent with every call."""
        return pickle.dumps(value)

    def reports(self) -> Iterator[Any]:
        """What the processes have told since the last call."""
        while not self._queue.empty():
            yield pickle.loads(self._queue.get())  # noqa: S301

    def end(self) -> None:
        """End the processes, whatever they do."""
        self._alive.close()
        self._pool.shutdown(cancel_futures=True)
        self._reader.close()


def _begin(alive: Connection, reports: Any, threads: int) -> None:
    """Prepare a process of this machine."""
    global _reports
    _reports = reports
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the calling process ends its workers
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
    warnings.simplefilter("ignore")  # the calling process has shown them
    torch.set_num_threads(threads)
    load_plugins()


def _end_with(alive: Connection) -> None:
    alive.poll(None)
    os._exit(1)


def _answer(call: bytes) -> bytes:
    work, arguments = pickle.loads(call)  # noqa: S301
    return pickle.dumps(work(*arguments))


class Tasks:
    """Tasks of the connected Ray cluster; each has a CPU, or a GPU."""

    def __init__(self, device: str) -> None:
        import ray

        self._ray = ray
        resources = ray.cluster_resources()
        gpus = 0 if device == "cpu" else int(resources.get("GPU", 0))
        if device.startswith("cuda") and not gpus:
            raise UserError(f"the device is {device}, but the cluster has no GPU")
        self.count = max(1, gpus or int(resources.get("CPU", 0)))
        self._options = {"num_cpus": 0 if gpus else 1, "num_gpus": 1 if gpus else 0, "max_retries": 0}
        try:
            found = self.submit(_version).result(START_SECONDS)
        except TimeoutError:
            raise UserError(
                f"no task began on the cluster within {START_SECONDS:g} s: wait until others need it no more"
            ) from None
        except Exception as error:  # among them those of importing this package
            last = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
            found = f"an error ({last})"
        if found != __version__:
            raise UserError(f"every machine of the cluster needs gumbel-mpnn {__version__}, but a task found {found}")

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function of a module in a task."""
        future: Future[Any] = self._ray.remote(_do).options(**self._options).remote(work, *arguments).future()
        return future

    def result(self, future: Future[Any]) -> Any:
        """What a call returned, or its error; a `LostError` if its process or machine died."""
        try:
            return future.result()
        except self._ray.exceptions.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, Exception) else error) from error  # that of the task itself
        except self._ray.exceptions.RayError as error:
            raise LostError(reason(error)) from error

    def share(self, value: Any) -> Any:
        """A reference to the pickled value, which is sent to every machine once."""
        return self._ray.put(pickle.dumps(value))

    def reports(self) -> Iterator[Any]:
        """Nothing: tasks are followed by their ends."""
        return iter(())


Workers = Processes | Tasks


@contextmanager
def workers(count: int = 1, on: str = LOCAL, device: str = "auto") -> Iterator[Workers]:
    """Processes that work until the block ends.

    Args:
        count: Number of processes of this machine.
        on: `local`, `ray` for the cluster that `RAY_ADDRESS` names or one that is started here, or `ray://HOST:PORT`
            for one that is reached through its client server.
        device: Device of the work: tasks of a cluster get a GPU each if it has some, unless this is `cpu`.
    """
    check_at_least(1, workers=count)
    if not isinstance(on, str) or (on not in (LOCAL, RAY) and not on.startswith(CLIENT)):
        raise UserError(f"on must be local, ray or ray://HOST:PORT, but is {on!r}")
    if on == LOCAL:
        processes = Processes(min(count, os.cpu_count() or 1))
        try:
            yield processes
        finally:
            processes.end()
    elif count > 1:
        raise UserError("workers are processes of this machine: on a cluster, Ray decides how many tasks run at once")
    else:
        with _connected(on):
            yield Tasks(device)


def _do(work: Callable[..., Any], *arguments: Any) -> Any:
    threads = os.environ.get("OMP_NUM_THREADS", "")
    torch.set_num_threads(int(threads) if threads.isdigit() else 1)
    load_plugins()
    return work(*arguments)


def _version() -> str:
    return __version__


@contextmanager
def _connected(address: str) -> Iterator[None]:
    """Connect to a cluster, or start one; a connection that the caller has made before is used and left open."""
    # Ray reads these when it is imported: no reports of usage, and no other `print`, with which numba compiles nothing.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_TQDM_PATCH_PRINT", "0")
    try:
        import ray
    except ImportError:
        raise UserError('a cluster needs Ray, which is not installed: pip install "gumbel-mpnn[cluster]"') from None
    if ray.is_initialized():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _connect(ray, address)
        yield
    finally:
        ray.shutdown()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray has its own


def _connect(ray: Any, address: str) -> None:
    # Not the cluster that happens to run here: it may be that of another command, and end with it.
    named = address if address.startswith(CLIENT) else os.environ.get("RAY_ADDRESS") or LOCAL
    variables = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if named == LOCAL:  # only this machine reaches it
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        host, colon, port = named.removeprefix(CLIENT).rpartition(":")
        if colon and port.isdigit():  # Ray would wait for minutes if nobody listens there
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        ray.init(named, runtime_env={"env_vars": variables}, **options)
    except (ConnectionError, ImportError, RuntimeError, OSError, ValueError) as error:
        raise UserError(f"cannot connect to the Ray cluster {named!r}: {reason(error)}; is it running?") from error
