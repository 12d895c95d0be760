"""Connection to a Ray cluster, and the file by which its machines recognize the folder of runs."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import ray

from gumbel_mpnn.runs.machines import LOCAL
from gumbel_mpnn.runs.workers import interrupted_by_sigterm
from gumbel_mpnn.util.errors import UserError, reason
from gumbel_mpnn.util.locks import FileLock, is_held

CONNECT_SECONDS = 5.0
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How a client of HTTP/2, which Ray speaks, begins: its preface, and settings, of which there are none."""
MARK = "cluster"


@contextmanager
def connection(address: str | None) -> Iterator[None]:
    """Connect to the cluster; a connection that the caller has made before is used and left open."""
    if ray.is_initialized():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        connect(address)
        with interrupted_by_sigterm():
            yield
    finally:
        ray.shutdown()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray has its own


def connect(address: str | None) -> None:
    """Connect to a cluster, or start one."""
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
        with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS) as peer:
            peer.sendall(HELLO)
            peer.recv(1)  # anything, even the end of the connection, is an answer


@contextmanager
def marked(runs: Path) -> Iterator[Path | None]:
    """Create a locked file in the folder of runs, by which other machines recognize it; None if it cannot be locked."""
    runs.mkdir(parents=True, exist_ok=True)
    mark = (runs / f".{MARK}.{os.getpid()}-{os.urandom(4).hex()}").absolute()
    mark.touch()
    lock, locked = FileLock(mark), False
    try:
        with suppress(OSError):  # of a file system without locks
            locked = lock.take(wait=False)
        yield mark if locked else None
    finally:
        mark.unlink(missing_ok=True)
        lock.release()


def sees_lock(mark: Path) -> bool:
    """Whether this machine sees the file, and that the calling process has locked it."""
    try:
        return is_held(mark)
    except OSError:  # it is not there, or on a file system without locks
        return False
