"""Sparse tensors of torch, which are made dense if they are small."""

from __future__ import annotations

import torch
from torch import Tensor

MOST_DENSE = 2**24
"""Entries up to which a sparse tensor is made dense, 64 MiB of float32."""


def dense_if_small(value: Tensor) -> Tensor:
    """Return a tensor as dense, or as coalesced COO if it is sparse and has more than `MOST_DENSE` entries."""
    if value.layout is torch.strided:
        return value
    return value.to_dense() if value.numel() <= MOST_DENSE else coalesced(value)


def coalesced(value: Tensor) -> Tensor:
    """Return a sparse tensor in COO format, with every position once and in order."""
    out: Tensor = value.to_sparse_coo().coalesce()
    return out
