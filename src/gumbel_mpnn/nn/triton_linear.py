"""The gradient for the matrices of narrow linear layers, for all replicas at once, on a GPU.

Σ_n x[r, n] ⊗ grad[r, n] is a product with few results and a very long sum. Libraries give each tile of the result to
one program, which for 30 replicas of 64 × 64 leaves most of an H200 idle (.36 ms where the bytes need .04). Here each
program adds up a chunk of the nodes, and the chunks are added in a fixed order.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gumbel_mpnn.graph.first_order import first_order

WIDEST = 64
"""Channels in and out, at the most. A program that holds 128 x 128 sums spills: a step of one million arcs then took
2.8 ms, with a library's products 2.0."""
CHUNK = 1024
"""Nodes that one program adds up."""


@triton.jit(do_not_specialize=["nodes", "chunks"])
def _outer_sums(
    x, grad, out, nodes, width, height, chunks, x_batch, x_row, grad_batch, grad_row,
    CHUNK: tl.constexpr, BLOCK_N: tl.constexpr, WIDTH: tl.constexpr, HEIGHT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    chunk, replica = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row, col = tl.arange(0, WIDTH), tl.arange(0, HEIGHT)
    total = tl.zeros([WIDTH, HEIGHT], dtype=tl.float32)
    for start in range(0, CHUNK, BLOCK_N):
        node = chunk * CHUNK + start + tl.arange(0, BLOCK_N)
        there = node < nodes
        node = node.to(tl.int64)
        left = tl.load(
            x + replica * x_batch + node[None, :] * x_row + row[:, None],
            mask=(row < width)[:, None] & there[None, :],
            other=0.0,
        )
        right = tl.load(
            grad + replica * grad_batch + node[:, None] * grad_row + col[None, :],
            mask=there[:, None] & (col < height)[None, :],
            other=0.0,
        )
        total = tl.dot(left, right, total, input_precision=PRECISION)
    place = (replica * chunks + chunk) * width * height + row[:, None] * height + col[None, :]
    tl.store(out + place, total, mask=(row < width)[:, None] & (col < height)[None, :])


def outer_sums(x: Tensor, grad: Tensor) -> Tensor:
    """Σ_n x[r, n] ⊗ grad[r, n]: float32 [R, N, in] and [R, N, out] → [R, in, out]."""
    x, grad = (t if t.stride(-1) == 1 else t.contiguous() for t in (x, grad))
    (replicas, nodes, width), height = x.shape, grad.shape[2]
    chunks = max(1, triton.cdiv(nodes, CHUNK))
    out = grad.new_empty(replicas, chunks, width, height)
    _outer_sums[(chunks, replicas)](
        x, grad, out, nodes, width, height, chunks, x.stride(0), x.stride(1), grad.stride(0), grad.stride(1),
        CHUNK=CHUNK, BLOCK_N=32, WIDTH=max(16, triton.next_power_of_2(width)),
        HEIGHT=max(16, triton.next_power_of_2(height)),
        PRECISION="tf32" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "ieee",
    )  # fmt: skip
    return out.sum(1)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight if bias is None else torch.baddbmm(bias, x, weight)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        grad_x = grad @ weight.transpose(1, 2) if needs_x else None
        grad_weight = outer_sums(x, grad) if needs_weight else None
        return grad_x, grad_weight, grad.sum(1, keepdim=True) if needs_bias else None


def is_narrow(x: Tensor, weight: Tensor) -> bool:
    """Whether the layer is one of those that `narrow_linear` is for, in plain 32 bits."""
    plain = x.dtype == weight.dtype == torch.float32 and not torch.is_autocast_enabled(x.device.type)
    return plain and max(weight.shape[1:]) <= WIDEST


def narrow_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """X W + b for every replica: [R, N, in], [R, in, out] and [R, 1, out] → [R, N, out]."""
    out: Tensor = _Linear.apply(x, weight, bias)
    return out
