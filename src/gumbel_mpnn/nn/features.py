"""Node features as the first layer takes them: dense, or sparse if most entries are zero."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gumbel_mpnn.graph import SparseLayout

SPARSE_BELOW = {"cpu": 0.25, "cuda": 0.04}
"""Share of non-zeros below which the sparse format is used. On a CPU a random matrix of PubMed's size with 10 %
non-zeros takes 8 ms instead of 35 ms, timed once. The value for CUDA is an estimate, not measured."""


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """A sparse feature matrix [N, F]."""

    layout: SparseLayout
    """Positions of the non-zeros."""
    values: Tensor
    """Values of the non-zeros, [nnz] or [R, nnz]."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of nodes and features, N and F."""
        return self.layout.shape

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the features."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Device of the features."""
        return self.values.device

    def to(self, device: torch.device | str) -> SparseFeatures:
        """Copy the features to another device."""
        return SparseFeatures(self.layout.to(device), self.values.to(device))


def as_features(x: Tensor, device: torch.device | str = "cpu") -> Tensor | SparseFeatures:
    """Move `x` to `device`, in sparse format if that makes the first layer faster."""
    if int(torch.count_nonzero(x)) >= SPARSE_BELOW.get(torch.device(device).type, 0) * x.numel():
        return x.to(device)
    row, col = x.nonzero().T
    return SparseFeatures(SparseLayout.build(row, col, *x.shape), x[row, col]).to(device)
