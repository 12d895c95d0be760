"""An on-disk cache of arrays, keyed by a digest of the inputs they were computed from."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn.util.files import cache_root, write_atomically

Arrays = Mapping[str, NDArray[Any]]

SWITCH = "GUMBEL_MPNN_CACHE"
"""Environment variable that disables the cache: `off`, `no`, `false` or `0`."""
MOST_BYTES = 2**30
"""Maximum size of a cache folder; the least recently used files are deleted first."""


def place(kind: str, digest: str) -> Path | None:
    """Path in the user's cache folder for arrays of this kind and digest; None if the cache is disabled."""
    if os.environ.get(SWITCH, "").lower() in ("off", "no", "false", "0"):
        return None
    try:
        return cache_root() / kind / f"{digest[:32]}.npz"
    except RuntimeError:  # the home folder of the user is unknown
        return None


def read(path: Path) -> Arrays | None:
    """Read arrays stored by `write`; None if the file is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        os.utime(path)
    except Exception:  # a damaged file can fail in many ways
        return None
    return arrays


def write(path: Path, arrays: Arrays) -> None:
    """Store arrays and trim the folder to `MOST_BYTES`; a cache that cannot be written is not an error."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    try:
        write_atomically(path, content.getvalue())
        _trim(path.parent)
    except OSError:
        pass


def _trim(folder: Path) -> None:
    """Delete the least recently used files."""
    found = [(file.stat(), file) for file in folder.glob("*.npz")]
    excess = sum(stat.st_size for stat, _ in found) - MOST_BYTES
    for stat, file in sorted(found, key=lambda each: each[0].st_mtime):
        if excess <= 0:
            return
        file.unlink(missing_ok=True)
        excess -= stat.st_size
