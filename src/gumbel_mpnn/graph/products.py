"""Differentiable products with the arcs of a graph, in which only the weights change from step to step.

Let S be a sparsity pattern, a set of positions `(row, col)`. Two products have a leading batch axis B:

    matmul(layout, values, x)[b, i]      = Σ_{(i, j) in S} values[b, ij] · x[b, j]
    sampled_product(layout, a, c)[b, ij] = a[b, i] · c[b, j]            for (i, j) in S

Their gradients are of the same two forms. No array of size |S| × width is built: the pattern is stored as CSR and CSC,
sorted once. The product of a graph convolution and GAT's attention are built on them.
"""

from __future__ import annotations

import warnings
from functools import reduce
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn.graph.kernels import gpu_kernels
from gumbel_mpnn.graph.layout import Side, SparseLayout
from gumbel_mpnn.util.tensors import first_order

WIDE, MOSTLY = 16, 0.75
"""On a CPU, values of 0 are left out of products of at least this width if at most this share is not 0. Most pairs of a
drawn graph are candidates that are no edges."""
SAFE_EXPONENT = 60.0
"""Upper bound for exponents: an arc of weight 0 may exceed the largest score by far, and 0 · ∞ would give NaN."""


def matmul(layout: SparseLayout, values: Tensor, x: Tensor) -> Tensor:
    """Sparse matrix times dense: values [B, nnz] or [nnz], x [B, cols, D] → [B, rows, D]."""
    dtype, values, x = _computable(values, x)
    out: Tensor = _Matmul.apply(values.expand(x.shape[0], -1), x, layout)  # type: ignore[no-untyped-call]
    return out.to(dtype)


def sampled_product(layout: SparseLayout, a: Tensor, b: Tensor) -> Tensor:
    """Dot products at the layout's positions: a [B, rows, D], b [B, cols, D] → [B, nnz]."""
    dtype, a, b = _computable(a, b)
    out: Tensor = _SampledProduct.apply(a, b, layout)  # type: ignore[no-untyped-call]
    return out.to(dtype)


def _computable(*tensors: Tensor) -> tuple[Any, ...]:
    """The common dtype of tensors, and the tensors in it, or in 32 bits on a CPU, whose products need as many."""
    dtype = reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
    wide = dtype if tensors[0].is_cuda else torch.promote_types(dtype, torch.float32)
    return dtype, *(tensor.to(wide) for tensor in tensors)


def symmetric_product(layout: SparseLayout, values: Tensor, root: Tensor, x: Tensor) -> Tensor:
    """root_i · (Σ_j values_ij · root_j · x_j + root_i · x_i) for every node i, [B, N, D].

    The layout is a square pattern without its diagonal, with weights [B, nnz] or [1, nnz]. `root` [B, N] or [1, N] are
    positive factors of the nodes. On a GPU, x [B, N, D] may have 16 bits while weights and factors have 32.
    """
    dtype = x.dtype
    if _kernels(x) is None:
        dtype, values, root, x = _computable(values, root, x)
    values, root = values.expand(len(x), -1), root.expand(len(x), -1)
    out: Tensor = _Symmetric.apply(values, root, x, layout)  # type: ignore[no-untyped-call]
    return out.to(dtype)


def attention(
    layout: SparseLayout, weight: Tensor, target: Tensor, source: Tensor, negative_slope: float
) -> tuple[Tensor, Tensor]:
    """Attention coefficients of all arcs [B, A] and of the nodes themselves [B, N]; those of one target sum to 1.

    The score of an arc is the leaky ReLU of the sum of `target` [B, N] at its target and `source` [B, N] at its source.
    Coefficients are multiplied by the weights of the arcs [B', A] before normalization; each row of weights is used for
    B / B' consecutive rows of scores. Rows of the layout are targets.
    """
    if target.dtype == torch.float32 and (kernels := gpu_kernels(target.device, "graph.kernels.attention")):
        shares: tuple[Tensor, Tensor] = _Attention.apply(  # type: ignore[no-untyped-call]
            weight.contiguous(), target.contiguous(), source.contiguous(), layout, negative_slope, kernels
        )
        return shares
    one = torch.ones_like(target)
    scores = sampled_product(layout, torch.stack([target, one], -1), torch.stack([one, source], -1))
    scores, own = F.leaky_relu(scores, negative_slope), F.leaky_relu(target + source, negative_slope)
    weight = weight.repeat_interleave(len(scores) // len(weight), dim=0)
    rows, present = layout.row.long(), scores.detach().masked_fill(weight == 0, -torch.inf)
    top = own.detach().scatter_reduce(1, rows.expand_as(present), present, "amax")
    share = weight * (scores - top.index_select(1, rows)).clamp(max=SAFE_EXPONENT).exp()
    own_share = (own - top).exp()
    total = matmul(layout, share, share.new_ones(*own.shape, 1)).squeeze(-1) + own_share
    return share / total.index_select(1, rows), own_share / total


def averages(layout: SparseLayout, share: Tensor, own_share: Tensor, x: Tensor) -> Tensor:
    """Σ_j share_ij · x_j + own_share_i · x_i for every node i and every head, [B, N, D].

    `share` [B, H, A] and `own_share` [B, H, N] are coefficients of the arcs and of the nodes themselves; the features x
    [B, N, D] are the concatenation of H heads. Rows of the layout are targets.
    """
    batch, heads, nodes = own_share.shape
    kernels = _kernels(x)
    if kernels is not None and share.dtype == x.dtype and x.shape[2] <= heads * kernels.WIDEST:
        out: Tensor = _Averages.apply(share, own_share, x, layout, kernels)  # type: ignore[no-untyped-call]
        return out
    width = x.shape[2] // heads
    by_head = x.view(batch, nodes, heads, width).transpose(1, 2).reshape(batch * heads, nodes, width)
    out = matmul(layout, share.flatten(0, 1), by_head) + own_share.flatten(0, 1)[..., None] * by_head
    return out.view(batch, heads, nodes, width).transpose(1, 2).reshape(x.shape)


def _kernels(x: Tensor) -> ModuleType | None:
    return gpu_kernels(x.device, "graph.kernels.products")


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
        if needs_values and needs_x and (kernels := _kernels(grad)):
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
    if kernels := _kernels(x):
        return kernels.walk(layout.by_row, x, values=values).sums  # type: ignore[no-any-return]
    return _csr_product(layout.by_row, values, x)


def multiply_transposed(layout: SparseLayout, values: Tensor, x: Tensor) -> Tensor:
    """Transposed version of `multiply`: values [B, nnz], x [B, rows, D] → [B, cols, D]."""
    if kernels := _kernels(x):
        return kernels.walk(layout.by_col, x, values=values).sums  # type: ignore[no-any-return]
    if blocks := layout.blocks:
        each = zip(values, x, strict=True)
        return torch.stack([_block_product(blocks, layout.shape[1], *one) for one in each])
    return _csr_product(layout.by_col, values.index_select(1, layout.to_transposed), x)


def _block_product(blocks: Side, columns: int, values: Tensor, x: Tensor) -> Tensor:
    """`multiply_transposed` of values [nnz] and x [rows, D], block after block: [columns, D]."""
    assert blocks.order is not None
    parts = _csr_product(blocks, values.index_select(0, blocks.order)[None], x[None])[0]
    total: Tensor
    total, *others = parts.split(columns)
    for part in others:  # not `sum`, which adds in an order that depends on the width
        total += part
    return total


def _csr_product(side: Side, values: Tensor, x: Tensor) -> Tensor:
    """Product of a pattern with values [B, nnz] in its own order and x [B, columns, D], [B, rows, D]."""
    (batch, _, width), rows = x.shape, side.offsets.numel() - 1
    if side.index.numel() == 0 or width == 0:
        return x.new_zeros(batch, rows, width)
    tiles = side.tiled(batch)
    csr = tiles.offsets, tiles.index, values.reshape(-1)
    matrix = _csr(*(_without_zeros(*csr) if width >= WIDE else csr), tiles.columns)
    out = x.new_empty(batch * rows, width)
    with torch.autocast(x.device.type, enabled=False):
        # Not `matrix @ x`, which takes 2.7 times as long: it allocates zeros, copies them and adds the product.
        torch.addmm(out, matrix, x.reshape(-1, width), beta=0, out=out)
    return out.view(batch, rows, width)


def _without_zeros(rowptr: Tensor, col: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same matrix without values of 0, if there are many; products keep their bits, since 0 adds nothing."""
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
    if kernels := _kernels(a):
        return kernels.walk(layout.by_row, b, own=a).samples  # type: ignore[no-any-return]
    return _sampled(layout.by_row.tiled(batch), a, b).view(batch, layout.nnz)


def row_products(a: Tensor, b: Tensor) -> Tensor:
    """Dot product of every row of a [B, N, D] with the same row of b, [B, N], without their products [B, N, D]."""
    rows = a.shape[0] * a.shape[1]
    if not a.numel():
        return a.new_zeros(a.shape[:2])
    diagonal = torch.arange(rows + 1, dtype=torch.int32, device=a.device)
    return _sampled(Side(diagonal, diagonal[:-1], None, rows), a, b).view(a.shape[:2])


def _sampled(tiles: Side, a: Tensor, b: Tensor) -> Tensor:
    """Dot products of rows of a and b [B, N, D] at the positions of a pattern of all batches, [nnz]."""
    values, width = a.new_zeros(tiles.index.numel()), a.shape[2]
    matrix = _csr(tiles.offsets, tiles.index, values, tiles.columns)
    torch.sparse.sampled_addmm(matrix, a.reshape(-1, width), b.reshape(-1, width).t(), beta=0.0, out=matrix)
    return values  # not `matrix.values()`, on which torch.compile fails


def _csr(rowptr: Tensor, col: Tensor, values: Tensor, columns: int) -> Tensor:
    return torch.sparse_csr_tensor(rowptr, col, values, (rowptr.numel() - 1, columns), check_invariants=False)


class _Symmetric(torch.autograd.Function):
    """One forward pass, and one backward pass for all three gradients.

    Let y be the output, g its gradient and h the gradient for x. Then root_i is a factor of all of y_i and of all of
    h_i, and to first order the loss is Σ g·y = Σ x·h, so the gradient for root_i is (g_i · y_i + x_i · h_i) / root_i.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, root: Tensor, x: Tensor, layout: SparseLayout) -> Tensor:
        factor: Tensor | None = None
        if kernels := _kernels(x):
            out: Tensor = kernels.walk(layout.by_row, x, values=values, scale=root).sums
        else:  # values are scaled, of which there are fewer than entries of x
            factor = root.index_select(1, layout.row) * root.index_select(1, layout.col)
            out = multiply(layout, values * factor, x).addcmul_(x, root.square()[..., None])
        ctx.layout = layout
        kept = (x, out) if ctx.needs_input_grad[0] or ctx.needs_input_grad[1] else (None, None)
        ctx.save_for_backward(values, root, factor, *kept)
        return out

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        values, root, factor, x, out = ctx.saved_tensors
        if kernels := _kernels(grad):
            found = kernels.walk(ctx.layout.by_col, grad, values=values, own=x, scale=root, image=out)
            return found.samples, found.scale_grad, found.sums, None
        grad_x = multiply_transposed(ctx.layout, values * factor, grad).addcmul_(grad, root.square()[..., None])
        if x is None:
            return None, None, grad_x, None
        grad_values = sample(ctx.layout, grad, x).mul_(factor)
        grad_root = (row_products(grad, out) + row_products(x, grad_x)) / root
        return grad_values, grad_root, grad_x, None


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        target: Tensor,
        source: Tensor,
        layout: SparseLayout,
        slope: float,
        kernels: ModuleType,
    ) -> tuple[Tensor, Tensor]:
        found = kernels.shares(layout, weight, target, source, slope, SAFE_EXPONENT)
        ctx.layout, ctx.slope, ctx.kernels = layout, slope, kernels
        ctx.save_for_backward(weight, target, source, *found)
        return found[0], found[1]

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor, own_grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, target, source, *found = ctx.saved_tensors
        grads = grad.contiguous(), own_grad.contiguous()
        score_grad, weight_grad, target_grad, own_score_grad = ctx.kernels.share_grads(
            ctx.layout, weight, target, source, ctx.slope, SAFE_EXPONENT, *found, *grads
        )
        ones = score_grad.new_ones(*target.shape, 1)
        source_grad = multiply_transposed(ctx.layout, score_grad, ones).squeeze(-1) + own_score_grad
        weight_grad = weight_grad.unflatten(0, (len(weight), -1)).sum(1) if ctx.needs_input_grad[0] else None
        return weight_grad, target_grad, source_grad, None, None, None


class _Averages(torch.autograd.Function):
    """`averages` in one pass, with one backward pass for all three gradients."""

    @staticmethod
    def forward(
        ctx: Any, share: Tensor, own_share: Tensor, x: Tensor, layout: SparseLayout, kernels: ModuleType
    ) -> Tensor:
        ctx.layout, ctx.kernels = layout, kernels
        ctx.save_for_backward(share, own_share, x)
        shares = {"values": share.flatten(0, 1), "loop": own_share.flatten(0, 1), "heads": share.shape[1]}
        out: Tensor = kernels.walk(layout.by_row, x, **shares).sums
        return out

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        share, own_share, x = ctx.saved_tensors
        shares = {"values": share.flatten(0, 1), "loop": own_share.flatten(0, 1), "heads": share.shape[1]}
        found = ctx.kernels.walk(ctx.layout.by_col, grad, own=x, **shares)
        return found.samples.view_as(share), found.loop_grad.view_as(own_share), found.sums, None, None


with warnings.catch_warnings():  # torch warns once per process that its CSR tensors are in beta
    warnings.simplefilter("ignore")
    _csr(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), 1)
