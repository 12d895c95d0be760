"""Update the slices that PyG needs to split a `Batch` again after a transform has changed its pairs of nodes."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data


def can_be_taken_apart(data: Data) -> bool:
    """Whether `data` is a batch of several graphs that PyG can split again."""
    return isinstance(data, Batch) and hasattr(data, "_slice_dict")


def renew_pairs(batch: Batch, index: str, about: Iterable[str] = ()) -> None:
    """Update the slices of the pairs `batch[index]` [2, K], which are sorted by their first node.

    The slices of the attributes `about`, which have one value per pair, are updated too.
    """
    first = batch[index][0].contiguous()
    starts = torch.searchsorted(first, batch.ptr.to(first.device)).cpu()
    first_nodes = batch.ptr[:-1].cpu()
    _renew(batch, index, starts, first_nodes)
    for name in about:
        _renew(batch, name, starts, torch.zeros_like(first_nodes))


def renew_numbers(batch: Batch, name: str) -> None:
    """Update the slices of the attribute `name` [B], which has one value per graph."""
    count = batch.ptr.numel() - 1
    _renew(batch, name, torch.arange(count + 1), torch.zeros(count, dtype=torch.int64))


def _renew(batch: Batch, name: str, starts: Tensor, increments: Tensor) -> None:
    # New dictionaries: a transform works on a shallow copy and must not change the original.
    batch._slice_dict = {**batch._slice_dict, name: starts}
    batch._inc_dict = {**batch._inc_dict, name: increments}
