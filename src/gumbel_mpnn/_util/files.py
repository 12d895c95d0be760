"""Atomic writes, and the paths of files and folders."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gumbel_mpnn._util.errors import UserError


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically: it exists with all of its content or not at all, even after a power failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file", str(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with naming(path):
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


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


def cache_root() -> Path:
    """Cache folder of the user, which also holds downloads."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gumbel-mpnn"
