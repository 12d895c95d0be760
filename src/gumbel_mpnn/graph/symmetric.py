"""The product of a graph convolution: self-loops added, every arc scaled by a factor of each of its ends."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gumbel_mpnn.graph import backend
from gumbel_mpnn.graph.layout import SparseLayout
from gumbel_mpnn.graph.sparse import matmul


def symmetric_product(layout: SparseLayout, values: Tensor, root: Tensor, x: Tensor) -> Tensor:
    """root_i · (Σ_j values_ij · root_j · x_j + root_i · x_i) for every node i, [B, N, D].

    Args:
        layout: A square pattern of N nodes, without its diagonal.
        values: Weights [B, nnz], or [1, nnz] for all the same.
        root: A factor above 0 for every node, [B, N] or [1, N].
        x: [B, N, D]; may be kept in 16 bits on a GPU, with weights and factors of 32.
    """
    if kernels := backend.gpu_kernels(x):
        batch = x.shape[0]
        arguments = values.expand(batch, -1), root.expand(batch, -1), x, layout, kernels
        out: Tensor = _Symmetric.apply(*arguments)  # type: ignore[no-untyped-call]
        return out
    scaled = x * root[..., None]
    return (matmul(layout, values, scaled) + scaled) * root[..., None]


class _Symmetric(torch.autograd.Function):
    """One pass forward, and one backward for all three gradients.

    With y the output, g its gradient and h the gradient for x: root_i is a factor of all of y_i and of all of h_i, and
    the loss is Σ g·y = Σ x·h to first order, so the gradient for root_i is (g_i · y_i + x_i · h_i) / root_i.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, root: Tensor, x: Tensor, layout: SparseLayout, kernels: ModuleType) -> Tensor:
        out: Tensor = kernels.walk(layout.by_row, x, values=values, scale=root).sums
        ctx.layout, ctx.kernels = layout, kernels
        learned = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        ctx.save_for_backward(values, root, *((x, out) if learned else ()))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        values, root, *learned = ctx.saved_tensors
        own, image = learned or (None, None)
        found = ctx.kernels.walk(ctx.layout.by_col, grad, values=values, own=own, scale=root, image=image)
        return found.samples, found.scale_grad, found.sums, None, None
