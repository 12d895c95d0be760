"""Node features as the first layer takes them: dense, or sparse if most entries are zero."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gumbel_mpnn._util.sparse_tensors import coalesced
from gumbel_mpnn.graph import SparseLayout

SPARSE_BELOW = {"cpu": 0.25, "cuda": 0.04}
"""Share of non-zeros below which the sparse format is used. On a CPU a random matrix of PubMed's size with 10 %
non-zeros takes 8 ms instead of 35 ms, timed once. The value for CUDA is an estimate, not measured."""


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """A sparse feature matrix [N, F]."""

    layout: SparseLayout
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

    def __getitem__(self, nodes: Tensor) -> SparseFeatures:
        """The features of some nodes, int64 [n], as of a dense matrix."""
        chosen, (_, width) = self.layout.positions_in(nodes), self.shape
        row = torch.arange(len(nodes), device=nodes.device).repeat_interleave(self.layout.rowptr.diff()[nodes])
        layout = SparseLayout.build(row, self.layout.col[chosen].long(), len(nodes), width)
        return SparseFeatures(layout, self.values[..., chosen])

    def to(self, device: torch.device | str) -> SparseFeatures:
        """Copy the features to another device."""
        return SparseFeatures(self.layout.to(device), self.values.to(device))


def as_features(x: Tensor, device: torch.device | str = "cpu") -> Tensor | SparseFeatures:
    """Move `x`, dense or sparse, to `device`, in sparse format if that makes the first layer faster."""
    sparse = None if x.layout is torch.strided else coalesced(x)
    nonzeros = int(torch.count_nonzero(x if sparse is None else sparse.values()))
    if nonzeros >= SPARSE_BELOW.get(torch.device(device).type, 0) * x.numel():
        return (x if sparse is None else sparse.to_dense()).to(device)
    if sparse is None:
        row, col = x.nonzero().T
        values = x[row, col]
    else:
        stored = sparse.values() != 0
        (row, col), values = sparse.indices()[:, stored], sparse.values()[stored]
    return SparseFeatures(SparseLayout.build(row, col, *x.shape), values).to(device)
