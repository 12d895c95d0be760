"""Files that are there with all their content or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there with all its content or not at all, even after a power cut."""
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
    """An `OSError` within names the file or folder that a person knows of, and no temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def suffix_of(path: str | Path) -> str:
    """The suffix in lower case: `.npz` of `graph.NPZ`."""
    return Path(path).suffix.lower()


def cache_root() -> Path:
    """The user's cache folder, where downloads go."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gumbel-mpnn"
