"""Arrays kept on disk under the content they were made from, so that nothing slow is done twice."""

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

from gumbel_mpnn._util.files import cache_root, write_atomically

if TYPE_CHECKING:
    from hashlib import _Hash

Arrays = Mapping[str, NDArray[Any]]

SWITCH = "GUMBEL_MPNN_CACHE"
"""Environment variable that switches the cache off: `off`, `no`, `false` or `0`."""
MOST_BYTES = 2**30
"""What a folder may hold; the files that were not used for longest go first."""


def place(kind: str, digest: str) -> Path | None:
    """The file in the user's cache folder for arrays of this kind and content; None where nothing is kept."""
    if os.environ.get(SWITCH, "").lower() in ("off", "no", "false", "0"):
        return None
    try:
        return cache_root() / kind / f"{digest[:32]}.npz"
    except RuntimeError:  # nobody has told the user's home
        return None


def read(path: Path) -> Arrays | None:
    """The arrays as `write` wrote them, or None where there are none or the file is damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        os.utime(path)
    except Exception:  # there are as many kinds as places where a damaged file can fail
        return None
    return arrays


def write(path: Path, arrays: Arrays) -> None:
    """Keep the arrays, and the folder within its bounds; a cache that cannot be written to is no error."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    try:
        write_atomically(path, content.getvalue())
        _trim(path.parent)
    except OSError:
        pass


def _trim(folder: Path) -> None:
    files = sorted(((file.stat(), file) for file in folder.glob("*.npz")), key=lambda found: found[0].st_mtime)
    excess = sum(stat.st_size for stat, _ in files) - MOST_BYTES
    for stat, file in files:
        if excess <= 0:
            return
        file.unlink(missing_ok=True)
        excess -= stat.st_size


def add_tensor(digest: _Hash, name: str, value: Tensor) -> None:
    """Let `digest` depend on the name, type, shape and content of a tensor, not on how it lies in memory."""
    digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
    plain = value.detach().cpu()
    plain = plain if plain.layout is torch.strided else plain.to_dense()
    digest.update(plain.contiguous().flatten().view(torch.uint8).numpy().data)  # numpy knows no bfloat16
