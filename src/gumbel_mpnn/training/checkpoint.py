"""Checkpoints: safetensors files that are written atomically, with a checksum."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gumbel_mpnn.util.errors import unreadable
from gumbel_mpnn.util.files import check_digest, digest, write_atomically

ABOUT = "about"
"""The one entry of the metadata of a file: a note and a checksum over it and the tensors."""


def save_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any] | None = None) -> None:
    """Write tensors and a JSON note to a safetensors file; the same content gives the same bytes."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(note or {})
    # A single entry: safetensors writes several in any order.
    write_atomically(path, save(plain, {ABOUT: json.dumps([text, digest(_parts(plain, text))])}))


def load_tensors(
    path: Path, remedy: str = "delete it to train this run again"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file of `save_tensors`; `remedy` is the end of the error message if this fails."""
    from safetensors import SafetensorError, safe_open

    try:
        with path.open("rb"):  # safetensors does not tell a file that may not be opened from a damaged one
            pass
        with safe_open(path, "pt") as file:
            text, checksum = json.loads((file.metadata() or {}).get(ABOUT, "[]"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        check_digest(checksum, digest(_parts(tensors, text)))
        return tensors, json.loads(text)
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError, AttributeError) as error:
        raise unreadable(str(path), error, remedy) from None


def note_of(path: Path) -> dict[str, Any]:
    """Note of a file of `save_tensors`, without its tensors; raises a `ValueError` if it is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            return dict(json.loads(json.loads(file.metadata()[ABOUT])[0]))
    except (SafetensorError, OSError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _parts(tensors: Mapping[str, Tensor], note: str) -> Iterator[tuple[str, bytes | memoryview]]:
    yield "note", note.encode()
    for name in sorted(tensors):
        tensor = tensors[name]
        # numpy has no bfloat16
        yield f"{name} {tensor.dtype} {list(tensor.shape)}", tensor.flatten().view(torch.uint8).numpy().data
