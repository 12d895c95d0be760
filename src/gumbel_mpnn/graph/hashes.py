"""Hashes of the rows of tensors, equal on every device."""

from __future__ import annotations

import torch
from torch import Tensor

from gumbel_mpnn._util.sparse_tensors import dense_if_small

ENTRIES_AT_ONCE = 2**23
"""Feature entries that are hashed at a time, which limits memory."""


def row_hash(values: Tensor) -> Tensor:
    """Hash of every row of `values` [N, ...], int64 [N]; equal rows have equal hashes on every device."""
    values = dense_if_small(values.detach())
    if values.layout is not torch.strided:
        row, column = values.indices()
        hashes = torch.zeros(len(values), dtype=torch.int64, device=values.device)
        return hashes.index_add_(0, row, _bits(values.values()) * (mixed(column + 1) | 1))
    values = torch.view_as_real(values.resolve_conj()) if values.is_complex() else values
    values = values.reshape(len(values), -1) if len(values) else values.new_zeros(0, 1)
    factor = mixed(torch.arange(1, values.shape[1] + 1, device=values.device)) | 1
    step = max(ENTRIES_AT_ONCE // max(values.shape[1], 1), 1)
    parts = [(_bits(rows) * factor).sum(1) for rows in values.split(step)]
    return torch.cat(parts) if parts else factor.new_zeros(0)


def _bits(values: Tensor) -> Tensor:
    """Convert values to int64: integers by value, floats by their bits."""
    if not values.is_floating_point():
        return values.long()
    values = values if values.dtype == torch.float64 else values.float()
    bits = (values + 0.0).contiguous()  # turns −0 into 0
    return bits.view(torch.int64) if bits.dtype == torch.float64 else bits.view(torch.int32).long()


def mixed(value: Tensor) -> Tensor:
    """Pseudorandom permutation of the 64-bit integers (the last step of SplitMix64)."""
    value = (value ^ ((value >> 30) & (2**34 - 1))) * -0x40A7B892E31B1A47
    value = (value ^ ((value >> 27) & (2**37 - 1))) * -0x6B2FB644ECCEEE15
    return value ^ ((value >> 31) & (2**33 - 1))
