"""Locks on files that the operating system keeps: they end with the process that holds them, however it ends.

Where there is no `fcntl` (Windows) nothing is locked, and a warning says so: one process at a time may write there.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]


def can_lock() -> bool:
    """Whether locks hold anybody off here."""
    return fcntl is not None


class FileLock:
    """An exclusive lock on a file that is there."""

    def __init__(self, path: Path) -> None:
        self.handle = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))

    def take(self, wait: bool) -> bool:
        """Whether the lock is ours now; with `wait`, it is when the call returns."""
        if fcntl is None:
            warnings.warn("files cannot be locked here: let one process at a time work on the runs", stacklevel=2)
            return True
        try:
            fcntl.flock(self.handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Give the lock back; nothing happens the second time."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def is_of(self, path: Path) -> bool:
        """Whether the file that was opened still has this name."""
        try:
            return os.path.samestat(os.fstat(self.handle), path.stat())
        except FileNotFoundError:
            return False


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Only one process at a time is within; `path` is a file that is there meanwhile."""
    while True:
        path.touch()
        try:
            lock = FileLock(path)
        except FileNotFoundError:  # the one before us took it away just now
            continue
        lock.take(wait=True)
        if lock.is_of(path):
            break
        lock.release()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()
