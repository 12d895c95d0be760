"""The one writer of files, and the paths of files and folders."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.locks import can_lock, is_same_file, take_lock

_STREAMS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
_TEMPORARY = re.compile(r"\..+\.\d+-[0-9a-f]{8}")
"""Name of a file that is being written."""


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically: it exists with all of its content or not at all, even after a power failure.

    What is there is never replaced by something else. A symbolic link leads to its target. A device, a pipe, a
    descriptor such as `/dev/stdout`, and `-` for standard output are written to. An existing file keeps its mode and
    owner; if the owner cannot be kept, the file is overwritten in place, which is not atomic.
    """
    if (descriptor := _descriptor(path)) is not None:
        with naming(path):
            _write_to(descriptor, content)
        return
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    target.parent.mkdir(parents=True, exist_ok=True)
    with naming(path):
        before = target.stat() if target.exists() else None
        if before is not None and stat.S_ISDIR(before.st_mode):
            raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file")
        if before is not None and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if before is not None and not stat.S_ISREG(before.st_mode):
            with target.open("wb") as file:
                file.write(content)
        else:
            sweep(target.parent, target.name)
            _replace(target, content, before)


def is_stream(path: Path) -> bool:
    """Whether `path` is standard output, a descriptor, a device or a pipe, and not a file with a name of its own."""
    return _descriptor(path) is not None or (path.exists() and not path.is_file() and not path.is_dir())


def is_standard_output(path: Path | None) -> bool:
    """Whether `path` is `-` or another name of standard output."""
    return path is not None and _descriptor(path) == _STREAMS["-"]


def sweep(folder: Path, name: str = "") -> None:
    """Delete files in `folder` that a killed process has not finished; only those that should become `name`, if given.

    A file that is being written is locked. Where locks do not work, nothing is deleted.
    """
    try:
        found = [path for path in folder.iterdir() if is_temporary(path.name, name)]
    except OSError:
        return
    for path in found:
        with suppress(OSError), path.open("r+b") as file:
            if take_lock(file.fileno(), wait=False):
                path.unlink()


def is_temporary(file: str, name: str = "") -> bool:
    """Whether a file of this name is one that is being written, to become `name` if this is given."""
    return _TEMPORARY.fullmatch(file) is not None and (not name or file.rpartition(".")[0] == f".{name}")


def _descriptor(path: Path) -> int | None:
    match = _DESCRIPTOR.fullmatch(str(path))
    return int(match[1]) if match else _STREAMS.get(str(path))


def _write_to(descriptor: int, content: bytes) -> None:
    stream = {1: sys.stdout, 2: sys.stderr}.get(descriptor)
    if stream is not None and hasattr(stream, "buffer"):
        stream.flush()
        stream.buffer.write(content)
        stream.flush()
        return
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)


def _replace(target: Path, content: bytes, before: os.stat_result | None) -> None:
    temporary, file = _new_file(target)
    try:
        with file:
            if before is not None and not _made_alike(file.fileno(), before):
                temporary.unlink()
                _overwrite(target, content)
                return
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if can_lock():  # while the lock is held, since a file without a lock may be swept
                temporary.replace(target)
        if not can_lock():  # Windows cannot move an open file
            temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _new_file(target: Path) -> tuple[Path, BinaryIO]:
    """Create a locked file next to `target`."""
    while True:
        temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}")
        file = temporary.open("xb")
        with suppress(OSError):  # of a file system without locks
            take_lock(file.fileno(), wait=True)
        if is_same_file(file.fileno(), temporary):
            return temporary, file
        file.close()  # another process swept it before it was locked


def _made_alike(handle: int, before: os.stat_result) -> bool:
    """Give a file the mode and owner of the one that it replaces; returns whether this was possible."""
    if not hasattr(os, "fchown"):
        return True
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except PermissionError:
            return False
    os.fchmod(handle, stat.S_IMODE(before.st_mode))
    return True


def _overwrite(target: Path, content: bytes) -> None:
    with target.open("r+b") as file:
        file.write(content)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make every `OSError` raised inside name `path`, which the user knows, and not a temporary file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def check_writable(folder: Path) -> None:
    """Raise a `UserError` if no file can be written in `folder`, or in the folder in which it would be created."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        raise UserError(f"nothing can be written to the folder {folder}: {existing} is a file")
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise UserError(
            f"nothing can be written to the folder {folder} ({error.strerror}): name another one, or change its"
            " permissions"
        ) from None


def suffix_of(path: str | Path) -> str:
    """Suffix of a path in lower case: `.npz` for `graph.NPZ`."""
    return Path(path).suffix.lower()


def config_root() -> Path:
    """Configuration folder of the user, which holds presets of their own."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "gumbel-mpnn"


def cache_root() -> Path:
    """Cache folder of the user, which also holds downloads."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gumbel-mpnn"
