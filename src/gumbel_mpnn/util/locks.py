"""File locks of the operating system, which are released when the process that holds them ends for any reason.

Without `fcntl` (Windows) nothing is locked and a warning is issued: only one process at a time may write there.
"""

# Not the package filelock: it creates missing files, some versions truncate the locked file, which holds JSON here, or
# delete it, and it waits by polling.

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
    """Whether locks work on this platform."""
    return fcntl is not None


def take_lock(handle: int, wait: bool) -> bool:
    """Lock an open file and return whether this succeeded; false if it is held, or on a platform without locks.

    On a file system without locks, an `OSError` is raised.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def is_same_file(handle: int, path: Path) -> bool:
    """Whether `path` is still the file that was opened."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


class FileLock:
    """An exclusive lock on an existing file, whose content it does not touch."""

    def __init__(self, path: Path) -> None:
        self.handle = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))

    def take(self, wait: bool) -> bool:
        """Try to take the lock and return whether it succeeded; with `wait`, block until it does."""
        if fcntl is None:
            warnings.warn("files cannot be locked on this platform: run one process at a time", stacklevel=2)
            return True
        return take_lock(self.handle, wait)

    def release(self) -> None:
        """Release the lock; a second call has no effect."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


def is_held(path: Path) -> bool:
    """Whether another process, or another part of this one, holds the lock of an existing file."""
    lock = FileLock(path)
    try:
        return not lock.take(wait=False)
    finally:
        lock.release()


@contextmanager
def alone(path: Path, wait: bool = True) -> Iterator[bool]:
    """Admit one process at a time; the lock file `path` is created on entry and deleted on exit.

    The block is given whether it is admitted, which without `wait` is false if another process is.
    """
    while True:
        path.touch()
        try:
            lock = FileLock(path)
        except FileNotFoundError:  # the previous holder deleted it just now
            continue
        admitted = lock.take(wait)
        if not admitted or is_same_file(lock.handle, path):
            break
        lock.release()
    try:
        yield admitted
    finally:
        if admitted:
            path.unlink(missing_ok=True)
        lock.release()
