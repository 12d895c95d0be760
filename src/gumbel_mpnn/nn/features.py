"""Node features as the first layer sees them: dense, or sparse where most entries are zero."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gumbel_mpnn.graph import SparseLayout

SPARSE_BELOW = {"cpu": 0.25, "cuda": 0.04}
"""Share of non-zeros under which the sparse form is used. CPU: 8 ms against 35 for a random matrix of PubMed's size at
10 %, timed once; CUDA: an estimate from bytes and operations, not measured."""


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """A feature matrix [N, F] by its non-zeros."""

    layout: SparseLayout
    values: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """N and F."""
        return self.layout.shape

    @property
    def dtype(self) -> torch.dtype:
        """Number format of the features."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Where the features lie."""
        return self.values.device

    def to(self, device: torch.device | str) -> SparseFeatures:
        """The same features on another device."""
        return SparseFeatures(self.layout.to(device), self.values.to(device))


def as_features(x: Tensor, device: torch.device | str = "cpu") -> Tensor | SparseFeatures:
    """`x` on `device`, in its sparse form where that makes the first layer faster there."""
    if int(torch.count_nonzero(x)) >= SPARSE_BELOW.get(torch.device(device).type, 0) * x.numel():
        return x.to(device)
    row, col = x.nonzero().T
    return SparseFeatures(SparseLayout.build(row, col, *x.shape), x[row, col]).to(device)
