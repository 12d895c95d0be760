"""What PyG has to know of a batch to take it apart again, kept right where a transform changes its pairs of nodes."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data


def can_be_taken_apart(data: Data) -> bool:
    """Whether `data` was put together from several graphs and knows where each begins."""
    return isinstance(data, Batch) and hasattr(data, "_slice_dict")


def renew_pairs(batch: Batch, index: str, about: Iterable[str] = ()) -> None:
    """Say where the pairs `index` [2, K] of each graph begin; they are sorted by their first node.

    `about` names what goes with them, a value for each pair.
    """
    first = batch[index][0].contiguous()
    starts = torch.searchsorted(first, batch.ptr.to(first.device)).cpu()
    first_nodes = batch.ptr[:-1].cpu()
    _renew(batch, index, starts, first_nodes)
    for name in about:
        _renew(batch, name, starts, torch.zeros_like(first_nodes))


def renew_numbers(batch: Batch, name: str) -> None:
    """Say that `name` [B] holds a number for each graph."""
    count = batch.ptr.numel() - 1
    _renew(batch, name, torch.arange(count + 1), torch.zeros(count, dtype=torch.int64))


def _renew(batch: Batch, name: str, starts: Tensor, increments: Tensor) -> None:
    # New dictionaries: a transform works on a shallow copy, and the original keeps its own.
    batch._slice_dict = {**batch._slice_dict, name: starts}
    batch._inc_dict = {**batch._inc_dict, name: increments}
