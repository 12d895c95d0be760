"""The state of a training group on disk: one safetensors file, whole or not there."""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from gumbel_mpnn.errors import DataError


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there with all its content or not at all, even after a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file", str(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def save_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any] | None = None) -> None:
    """Tensors and a JSON note in one safetensors file."""
    from safetensors.torch import save

    metadata = {"note": json.dumps(note)} if note is not None else None
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(plain, metadata))


def load_tensors(
    path: Path, remedy: str = "delete it to train this run again"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and note as `save_tensors` wrote them; `remedy` ends the message where they cannot be read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            note = json.loads((file.metadata() or {}).get("note", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, note  # noqa: SIM118
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}; {remedy}") from None
