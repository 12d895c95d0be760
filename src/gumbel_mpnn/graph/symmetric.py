"""The product of a graph convolution: the adjacency matrix with self-loops, scaled by node factors on both sides."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from gumbel_mpnn._util.no_double_backward import first_order
from gumbel_mpnn.graph import kernels as backend
from gumbel_mpnn.graph.layout import SparseLayout
from gumbel_mpnn.graph.sparse import multiply, multiply_transposed, row_products, sample


def symmetric_product(layout: SparseLayout, values: Tensor, root: Tensor, x: Tensor) -> Tensor:
    """root_i · (Σ_j values_ij · root_j · x_j + root_i · x_i) for every node i, [B, N, D].

    The layout is a square pattern without its diagonal, with weights [B, nnz] or [1, nnz]. `root` [B, N] or [1, N] are
    positive factors of the nodes. On a GPU, x [B, N, D] may have 16 bits while weights and factors have 32.
    """
    batch, kernels, dtype = x.shape[0], backend.gpu_kernels(x), x.dtype
    if kernels is None:
        dtype = torch.promote_types(torch.promote_types(values.dtype, root.dtype), x.dtype)
        wide = torch.promote_types(dtype, torch.float32)
        values, root, x = values.to(wide), root.to(wide), x.to(wide)
    arguments = values.expand(batch, -1), root.expand(batch, -1), x, layout, kernels
    out: Tensor = _Symmetric.apply(*arguments)  # type: ignore[no-untyped-call]
    return out.to(dtype)


class _Symmetric(torch.autograd.Function):
    """One forward pass, and one backward pass for all three gradients.

    Let y be the output, g its gradient and h the gradient for x. Then root_i is a factor of all of y_i and of all of
    h_i, and to first order the loss is Σ g·y = Σ x·h, so the gradient for root_i is (g_i · y_i + x_i · h_i) / root_i.
    """

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, root: Tensor, x: Tensor, layout: SparseLayout, kernels: ModuleType | None
    ) -> Tensor:
        factor: Tensor | None = None
        if kernels is None:
            factor = _factor(layout, root)
            out = _scaled(layout, multiply, values * factor, root, x)
        else:
            out = kernels.walk(layout.by_row, x, values=values, scale=root).sums
        ctx.layout, ctx.kernels = layout, kernels
        learned = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        ctx.save_for_backward(values, root, factor, *((x, out) if learned else ()))
        return out

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        values, root, factor, *learned = ctx.saved_tensors
        x, out = learned or (None, None)
        if ctx.kernels is not None:
            found = ctx.kernels.walk(ctx.layout.by_col, grad, values=values, own=x, scale=root, image=out)
            return found.samples, found.scale_grad, found.sums, None, None
        grad_x = _scaled(ctx.layout, multiply_transposed, values * factor, root, grad)
        if x is None or out is None:
            return None, None, grad_x, None, None
        grad_values = sample(ctx.layout, grad, x).mul_(factor)
        grad_root = (row_products(grad, out) + row_products(x, grad_x)) / root
        return grad_values, grad_root, grad_x, None, None


def _scaled(layout: SparseLayout, product: Any, scaled: Tensor, root: Tensor, x: Tensor) -> Tensor:
    """The product with scaled values, of which there are fewer than entries of x."""
    sums: Tensor = product(layout, scaled, x)
    return sums.addcmul_(x, root.square()[..., None])


def _factor(layout: SparseLayout, root: Tensor) -> Tensor:
    """Product of the factors of both nodes of every position, [B, nnz]."""
    return root.index_select(1, layout.row) * root.index_select(1, layout.col)
