"""Checkpoints: safetensors files that are written atomically, with a checksum."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gumbel_mpnn.util.errors import unreadable
from gumbel_mpnn.util.files import CHECKSUM, check_digest, digest, write_atomically


def save_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any] | None = None) -> None:
    """Write tensors and a JSON note to a safetensors file."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = {"note": json.dumps(note)} if note is not None else {}
    metadata[CHECKSUM] = digest(_parts(plain, metadata))
    write_atomically(path, save(plain, metadata))


def load_tensors(
    path: Path, remedy: str = "delete it to train this run again"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file of `save_tensors`; `remedy` is the end of the error message if this fails."""
    from safetensors import SafetensorError, safe_open

    try:
        with path.open("rb"):  # safetensors does not tell a file that may not be opened from a damaged one
            pass
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        check_digest(metadata.pop(CHECKSUM, None), digest(_parts(tensors, metadata)))
        return tensors, json.loads(metadata.get("note", "{}"))
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError) as error:
        raise unreadable(str(path), error, remedy) from None


def note_of(path: Path) -> dict[str, Any]:
    """Note of a file of `save_tensors`, without its tensors; raises a `ValueError` if it is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            return dict(json.loads((file.metadata() or {}).get("note", "{}")))
    except (SafetensorError, OSError) as error:
        raise ValueError(str(error)) from None


def _parts(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Iterator[tuple[str, bytes | memoryview]]:
    yield "note", metadata.get("note", "").encode()
    for name in sorted(tensors):
        tensor = tensors[name]
        # numpy has no bfloat16
        yield f"{name} {tensor.dtype} {list(tensor.shape)}", tensor.flatten().view(torch.uint8).numpy().data
