"""An on-disk cache of arrays, keyed by a digest of the inputs they were computed from."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gumbel_mpnn._util.files import cache_root, is_temporary, sweep, write_atomically
from gumbel_mpnn._util.sparse_tensors import dense_if_small

if TYPE_CHECKING:
    from hashlib import _Hash

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
    """Delete what killed processes left, then the least recently used files; those being written count as well."""
    sweep(folder)
    found = [(file.stat(), file) for file in folder.iterdir() if file.suffix == ".npz" or is_temporary(file.name)]
    excess = sum(stat.st_size for stat, _ in found) - MOST_BYTES
    for stat, file in sorted(found, key=lambda each: each[0].st_mtime):
        if is_temporary(file.name):
            continue
        if excess <= 0:
            return
        file.unlink(missing_ok=True)
        excess -= stat.st_size


def add_tensor(digest: _Hash, name: str, value: Tensor) -> None:
    """Update `digest` with the name, dtype, shape and content of a tensor.

    The memory layout does not matter, except that large sparse tensors have another digest than dense ones.
    """
    digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
    plain = dense_if_small(value.detach().cpu())
    if plain.layout is not torch.strided:
        add_tensor(digest, "positions", plain.indices())
        plain = plain.values()
    digest.update(plain.contiguous().flatten().view(torch.uint8).numpy().data)  # numpy has no bfloat16
