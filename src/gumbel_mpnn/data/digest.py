"""Content of tensors as part of a hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from hashlib import _Hash


def add_tensor(digest: _Hash, name: str, value: Tensor) -> None:
    """Let `digest` depend on the name, type, shape and content of a tensor, not on how it lies in memory."""
    digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
    plain = value.detach().cpu()
    plain = plain if plain.layout is torch.strided else plain.to_dense()
    digest.update(plain.contiguous().flatten().view(torch.uint8).numpy().data)  # numpy knows no bfloat16
