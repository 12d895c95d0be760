"""Two differentiable products over one fixed sparsity pattern; each is the gradient of the other.

Let S be the pattern, a set of positions `(row, col)`. Both products have a leading batch axis B:

    matmul(layout, values, x)[b, i]      = Σ_{(i, j) in S} values[b, ij] · x[b, j]
    sampled_product(layout, a, c)[b, ij] = a[b, i] · c[b, j]            for (i, j) in S

The gradient of the first with respect to `values` is the second, and the gradients of the second are of the form of the
first. No array of size |S| × width is built: the pattern is stored as CSR and CSC, sorted once.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn._util.no_double_backward import first_order
from gumbel_mpnn.graph import kernels as backend
from gumbel_mpnn.graph.layout import Blocks, SparseLayout

WIDE, MOSTLY = 16, 0.75
"""On a CPU, values of 0 are left out of products of at least this width if at most this share is not 0. Most pairs of a
drawn graph are candidates that are no edges."""


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
    """Convert both to a common dtype that the products support, and return the dtype of the result.

    Torch's sparse products on a CPU do not support 16-bit floats: these are computed in 32 bits.
    """
    dtype = torch.promote_types(a.dtype, b.dtype)
    wide = dtype if a.is_cuda else torch.promote_types(dtype, torch.float32)
    return a.to(wide), b.to(wide), dtype


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, x: Tensor, layout: SparseLayout) -> Tensor:
        ctx.layout = layout
        ctx.save_for_backward(values, x if ctx.needs_input_grad[0] else None)
        return multiply(layout, values, x)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        values, x = ctx.saved_tensors
        needs_values, needs_x, _ = ctx.needs_input_grad
        if needs_values and needs_x and (kernels := backend.gpu_kernels(grad)):
            both = kernels.walk(ctx.layout.by_col, grad, values=values, own=x)
            return both.samples, both.sums, None
        grad_values = sample(ctx.layout, grad, x) if needs_values else None
        grad_x = multiply_transposed(ctx.layout, values, grad) if needs_x else None
        return grad_values, grad_x, None


class _SampledProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, layout: SparseLayout) -> Tensor:
        ctx.layout = layout
        ctx.save_for_backward(a, b)
        return sample(layout, a, b)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        a, b = ctx.saved_tensors
        needs_a, needs_b, _ = ctx.needs_input_grad
        grad_a = multiply(ctx.layout, grad, b) if needs_a else None
        grad_b = multiply_transposed(ctx.layout, grad, a) if needs_b else None
        return grad_a, grad_b, None


def multiply(layout: SparseLayout, values: Tensor, x: Tensor) -> Tensor:
    """`matmul` without a gradient, for values [B, nnz] and x of the same dtype."""
    if kernels := backend.gpu_kernels(x):
        return kernels.walk(layout.by_row, x, values=values).sums  # type: ignore[no-any-return]
    tiles, (rows, cols) = layout.tiled(x.shape[0]), layout.shape
    return _csr_product(tiles.rowptr, tiles.col, values, x, rows, cols)


def multiply_transposed(layout: SparseLayout, values: Tensor, x: Tensor) -> Tensor:
    """Transposed version of `multiply`: values [B, nnz], x [B, rows, D] → [B, cols, D]."""
    if kernels := backend.gpu_kernels(x):
        return kernels.walk(layout.by_col, x, values=values).sums  # type: ignore[no-any-return]
    if layout.blocks is not None:
        return torch.stack([_block_product(layout, layout.blocks, *one) for one in zip(values, x, strict=True)])
    tiles, (rows, cols) = layout.tiled(x.shape[0]), layout.shape
    return _csr_product(tiles.colptr, tiles.row_by_col, values.index_select(1, layout.to_transposed), x, cols, rows)


def _block_product(layout: SparseLayout, blocks: Blocks, values: Tensor, x: Tensor) -> Tensor:
    """`multiply_transposed` of values [nnz] and x [rows, D], block after block: [cols, D]."""
    (rows, cols), ordered = layout.shape, values.index_select(0, blocks.order)
    parts = _csr_product(blocks.offsets, blocks.row, ordered[None], x[None], blocks.count * cols, rows)
    total: Tensor
    total, *others = parts[0].split(cols)
    for part in others:  # not `sum`, which adds in an order that depends on the width
        total += part
    return total


def _csr_product(rowptr: Tensor, col: Tensor, values: Tensor, x: Tensor, rows: int, cols: int) -> Tensor:
    batch, _, width = x.shape
    if col.numel() == 0 or width == 0:
        return x.new_zeros(batch, rows, width)
    values = values.reshape(-1)
    if width >= WIDE:
        rowptr, col, values = _without_zeros(rowptr, col, values)
    matrix = _csr(rowptr, col, values, batch * rows, batch * cols)
    out = x.new_empty(batch * rows, width)
    with torch.autocast(x.device.type, enabled=False):
        # Not `matrix @ x`, which takes 2.7 times as long: it allocates zeros, copies them and adds the product.
        torch.addmm(out, matrix, x.reshape(batch * cols, width), beta=0, out=out)
    return out.view(batch, rows, width)


def _without_zeros(rowptr: Tensor, col: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same matrix without values of 0, if there are many.

    Products keep their bits: rows are summed in order, and 0 adds nothing.
    """
    stays = values != 0
    if int(stays.count_nonzero()) > MOSTLY * values.numel():
        return rowptr, col, values
    place = stays.nonzero().squeeze(1)
    before = F.pad(stays.cumsum(0, dtype=torch.int32), (1, 0))
    return before.index_select(0, rowptr), col.index_select(0, place), values.index_select(0, place)


def sample(layout: SparseLayout, a: Tensor, b: Tensor) -> Tensor:
    """`sampled_product` without a gradient, for a and b of the same dtype."""
    batch, width = a.shape[0], a.shape[2]
    if layout.nnz == 0 or width == 0:
        return a.new_zeros(batch, layout.nnz)
    if kernels := backend.gpu_kernels(a):
        return kernels.walk(layout.by_row, b, own=a).samples  # type: ignore[no-any-return]
    tiles, (rows, cols) = layout.tiled(batch), layout.shape
    values = a.new_zeros(tiles.nnz)
    matrix = _csr(tiles.rowptr, tiles.col, values, batch * rows, batch * cols)
    left, right = a.reshape(batch * rows, width), b.reshape(batch * cols, width)
    torch.sparse.sampled_addmm(matrix, left, right.t(), beta=0.0, out=matrix)
    return values.view(batch, layout.nnz)  # not `matrix.values()`, on which torch.compile fails


def row_products(a: Tensor, b: Tensor) -> Tensor:
    """Dot product of every row of a [B, N, D] with the same row of b, [B, N], without their products [B, N, D]."""
    rows, width = a.shape[0] * a.shape[1], a.shape[2]
    values = a.new_zeros(rows)
    if rows and width:
        diagonal = torch.arange(rows + 1, dtype=torch.int32, device=a.device)
        matrix = _csr(diagonal, diagonal[:-1], values, rows, rows)
        torch.sparse.sampled_addmm(matrix, a.reshape(rows, width), b.reshape(rows, width).t(), beta=0.0, out=matrix)
    return values.view(a.shape[:2])


def _csr(rowptr: Tensor, col: Tensor, values: Tensor, rows: int, cols: int) -> Tensor:
    return torch.sparse_csr_tensor(rowptr, col, values, (rows, cols), check_invariants=False)


def _swallow_beta_warning() -> None:
    """Suppress the warning, issued once per process, that torch's CSR tensors are in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _csr(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), 1, 1)


_swallow_beta_warning()
