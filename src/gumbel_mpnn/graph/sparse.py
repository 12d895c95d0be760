"""Two differentiable products over one fixed sparsity pattern, each the other's gradient.

With S the pattern (a set of positions `(row, col)`), both work on a leading batch axis B:

    matmul(layout, values, x)[b, i]      = Σ_{(i, j) in S} values[b, ij] · x[b, j]
    sampled_product(layout, a, c)[b, ij] = a[b, i] · c[b, j]            for (i, j) in S

The gradient of the first for `values` is the second, and the gradients of the second are the first. Neither
direction builds an array of size |S| × width: the patterns are held as CSR both ways, sorted once.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

INT32_MAX = 2**31 - 1


@dataclass(frozen=True, eq=False)
class SparseLayout:
    """Positions of the non-zeros of a `num_rows` × `num_cols` matrix, row by row and column by column."""

    rowptr: Tensor
    """int32 [num_rows + 1], where each row begins in `col`."""
    col: Tensor
    """int32 [nnz]."""
    colptr: Tensor
    """int32 [num_cols + 1], the same for the transposed matrix."""
    row_by_col: Tensor
    """int32 [nnz], rows in the order of the transposed matrix."""
    to_transposed: Tensor
    """int64 [nnz]: `values[to_transposed]` are the values in the order of the transposed matrix."""
    _tiles: dict[int, SparseLayout] = field(default_factory=dict, repr=False)

    @classmethod
    def build(cls, row: Tensor, col: Tensor, num_rows: int, num_cols: int) -> SparseLayout:
        """Layout of positions that are sorted by `(row, col)` and occur once each."""
        to_transposed = torch.argsort(col * num_rows + row)
        return cls(
            rowptr=_offsets(row, num_rows),
            col=col.int(),
            colptr=_offsets(col, num_cols),
            row_by_col=row[to_transposed].int(),
            to_transposed=to_transposed,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.rowptr.numel() - 1, self.colptr.numel() - 1

    @property
    def nnz(self) -> int:
        """Number of positions."""
        return self.col.numel()

    @cached_property
    def row(self) -> Tensor:
        """int32 [nnz], the row of each position."""
        rows = torch.arange(self.shape[0], device=self.rowptr.device, dtype=torch.int32)
        return torch.repeat_interleave(rows, self.rowptr.diff(), output_size=self.nnz)

    def tiled(self, batch: int) -> SparseLayout:
        """`batch` copies along the diagonal, so that one product serves all of them."""
        if batch == 1:
            return self
        if batch not in self._tiles:
            self._tiles.clear()
            self._tiles[batch] = self._tile(batch)
        return self._tiles[batch]

    def _tile(self, batch: int) -> SparseLayout:
        (rows, cols), nnz = self.shape, self.nnz
        if batch * max(nnz, rows, cols) > INT32_MAX:
            raise ValueError(f"{batch} copies of {nnz} positions exceed 32-bit indices; use fewer replicas at once")
        return SparseLayout(
            rowptr=_tile_offsets(self.rowptr, batch),
            col=_tile_indices(self.col, batch, cols),
            colptr=_tile_offsets(self.colptr, batch),
            row_by_col=_tile_indices(self.row_by_col, batch, rows),
            to_transposed=_tile_indices(self.to_transposed, batch, nnz),
        )

    def to(self, device: torch.device | str) -> SparseLayout:
        """The same layout on another device."""
        if self.rowptr.device == torch.device(device):
            return self
        return SparseLayout(
            rowptr=self.rowptr.to(device),
            col=self.col.to(device),
            colptr=self.colptr.to(device),
            row_by_col=self.row_by_col.to(device),
            to_transposed=self.to_transposed.to(device),
        )


def matmul(layout: SparseLayout, values: Tensor, x: Tensor) -> Tensor:
    """Sparse matrix times dense: values [B, nnz] or [nnz], x [B, cols, D] → [B, rows, D]."""
    values, x, dtype = _computable(values, x)
    out: Tensor = _Matmul.apply(values.expand(x.shape[0], -1), x, layout)  # type: ignore[no-untyped-call]
    return out.to(dtype)


def sampled_product(layout: SparseLayout, a: Tensor, b: Tensor) -> Tensor:
    """Dot products at the layout's positions: a [B, rows, D], b [B, cols, D] → [B, nnz]."""
    a, b, dtype = _computable(a, b)
    out: Tensor = _SampledProduct.apply(a, b, layout)  # type: ignore[no-untyped-call]
    return out.to(dtype)


def _computable(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, torch.dtype]:
    """Both as one type that can be computed with, and the type of the result.

    Torch's sparse products on a CPU know no 16-bit floats: those are computed in 32 bits, which is more exact besides.
    """
    dtype = torch.promote_types(a.dtype, b.dtype)
    wide = dtype if a.is_cuda else torch.promote_types(dtype, torch.float32)
    return a.to(wide), b.to(wide), dtype


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, x: Tensor, layout: SparseLayout) -> Tensor:
        ctx.layout = layout
        ctx.save_for_backward(values, x if ctx.needs_input_grad[0] else None)
        return _multiply(layout, values, x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        values, x = ctx.saved_tensors
        needs_values, needs_x, _ = ctx.needs_input_grad
        grad_values = _sample(ctx.layout, grad, x) if needs_values else None
        grad_x = _multiply_transposed(ctx.layout, values, grad) if needs_x else None
        return grad_values, grad_x, None


class _SampledProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, layout: SparseLayout) -> Tensor:
        ctx.layout = layout
        ctx.save_for_backward(a, b)
        return _sample(layout, a, b)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        a, b = ctx.saved_tensors
        needs_a, needs_b, _ = ctx.needs_input_grad
        grad_a = _multiply(ctx.layout, grad, b) if needs_a else None
        grad_b = _multiply_transposed(ctx.layout, grad, a) if needs_b else None
        return grad_a, grad_b, None


def _multiply(layout: SparseLayout, values: Tensor, x: Tensor) -> Tensor:
    if kernels := _gpu_kernels(x):
        return kernels.csr_product(layout.rowptr, layout.col, values, x)  # type: ignore[no-any-return]
    tiles, (rows, cols) = layout.tiled(x.shape[0]), layout.shape
    return _csr_product(tiles.rowptr, tiles.col, values, x, rows, cols)


def _multiply_transposed(layout: SparseLayout, values: Tensor, x: Tensor) -> Tensor:
    if kernels := _gpu_kernels(x):
        order = layout.to_transposed
        return kernels.csr_product(layout.colptr, layout.row_by_col, values, x, order)  # type: ignore[no-any-return]
    tiles, (rows, cols) = layout.tiled(x.shape[0]), layout.shape
    return _csr_product(tiles.colptr, tiles.row_by_col, values[:, layout.to_transposed], x, cols, rows)


def _csr_product(rowptr: Tensor, col: Tensor, values: Tensor, x: Tensor, rows: int, cols: int) -> Tensor:
    batch, _, width = x.shape
    if col.numel() == 0 or width == 0:
        return x.new_zeros(batch, rows, width)
    matrix = _csr(rowptr, col, values.reshape(-1), batch * rows, batch * cols)
    with torch.autocast(x.device.type, enabled=False):
        return (matrix @ x.reshape(batch * cols, width)).view(batch, rows, width)


def _sample(layout: SparseLayout, a: Tensor, b: Tensor) -> Tensor:
    batch, width = a.shape[0], a.shape[2]
    if layout.nnz == 0 or width == 0:
        return a.new_zeros(batch, layout.nnz)
    if kernels := _gpu_kernels(a):
        return kernels.sampled_product(layout.row, layout.col, a, b)  # type: ignore[no-any-return]
    tiles, (rows, cols) = layout.tiled(batch), layout.shape
    pattern = _csr(tiles.rowptr, tiles.col, a.new_zeros(tiles.nnz), batch * rows, batch * cols)
    left, right = a.reshape(batch * rows, width), b.reshape(batch * cols, width)
    sampled: Tensor = torch.sparse.sampled_addmm(pattern, left, right.t(), beta=0.0)
    return sampled.values().view(batch, layout.nnz)


def _gpu_kernels(x: Tensor) -> ModuleType | None:
    """Our own kernels where `x` lies on a GPU that Triton serves; None where torch's products must do."""
    return _import_kernels() if x.is_cuda else None


@cache
def _import_kernels() -> ModuleType | None:
    try:
        from gumbel_mpnn.graph import triton_kernels
    except ImportError:
        return None
    return triton_kernels


def _csr(rowptr: Tensor, col: Tensor, values: Tensor, rows: int, cols: int) -> Tensor:
    return torch.sparse_csr_tensor(rowptr, col, values, (rows, cols), check_invariants=False)


def _offsets(indices: Tensor, size: int) -> Tensor:
    counts = torch.bincount(indices, minlength=size)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()


def _tile_indices(indices: Tensor, batch: int, step: int) -> Tensor:
    starts = torch.arange(batch, device=indices.device, dtype=indices.dtype) * step
    return (indices + starts[:, None]).view(-1)


def _tile_offsets(offsets: Tensor, batch: int) -> Tensor:
    begins = _tile_indices(offsets[:-1], batch, int(offsets[-1]))
    return torch.cat([begins, offsets[-1:] * batch])


def _swallow_beta_warning() -> None:
    """Torch says once per process that CSR tensors are in beta; our users need not read it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _csr(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), 1, 1)


_swallow_beta_warning()
