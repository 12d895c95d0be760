"""Checkpoints: safetensors files that are written atomically."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn._util.files import write_atomically


def save_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any] | None = None) -> None:
    """Write tensors and a JSON note to a safetensors file."""
    from safetensors.torch import save

    metadata = {"note": json.dumps(note)} if note is not None else None
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(plain, metadata))


def load_tensors(
    path: Path, remedy: str = "delete it to train this run again"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file of `save_tensors`; `remedy` is the end of the error message if this fails."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            note = json.loads((file.metadata() or {}).get("note", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, note  # noqa: SIM118
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}; {remedy}") from None
