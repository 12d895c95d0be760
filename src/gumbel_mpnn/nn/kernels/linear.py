"""Products of narrow layers, for all replicas at once, on a GPU.

A layer of 64 channels is a matter of bytes: [R, N, 64] once in and once out is all it needs. `sum_of_products` gives
x W + x' W' + start in one pass, where a library's products and additions make five. `outer_sums`, the gradient for the
matrices, is a product with few results and a very long sum: libraries give each tile of the result to one program,
which for 30 replicas of 64 × 64 leaves most of an H200 idle (.36 ms where the bytes need .04). Here the nodes are cut
into chunks, whose sums are added in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

WIDEST = 64
"""Channels in and out, at the most. A program that holds 128 x 128 sums spills: a step of one million arcs then took
2.8 ms, with a library's products 2.0."""
CHUNK = 512
"""Nodes that one program adds up."""
LONGEST, SHORTEST = 1200, 251
"""Nodes in chunks of equal length, at the most and at the least."""
ROWS = 128
"""Nodes of which one program makes the products."""


@triton.jit
def _tile(x, row, there, channel, width, stride):
    """Rows of x, 0 beyond its nodes and channels."""
    inside = there[:, None] & (channel < width)[None, :]
    return tl.load(x + row.to(tl.int64)[:, None] * stride + channel[None, :], mask=inside, other=0.0)


@triton.jit
def _columns(x, row, there, channel, width, stride):
    """The same turned over."""
    inside = (channel < width)[:, None] & there[None, :]
    return tl.load(x + row.to(tl.int64)[None, :] * stride + channel[:, None], mask=inside, other=0.0)


@triton.jit(do_not_specialize=["nodes"])
def _products(
    x, weight, x2, weight2, start, out, nodes, width, width2, height, x_batch, x_row, x2_batch, x2_row, start_batch,
    start_row, TWO: tl.constexpr, START: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, WIDTH2: tl.constexpr,
    HEIGHT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    row, col = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, HEIGHT)
    there, channel = row < nodes, tl.arange(0, WIDTH)
    left = _tile(x + replica * x_batch, row, there, channel, width, x_row)
    right = _tile(weight + replica * width * height, channel, channel < width, col, height, height)
    total = tl.dot(left, right, input_precision=PRECISION)
    if TWO:
        channel2 = tl.arange(0, WIDTH2)
        left = _tile(x2 + replica * x2_batch, row, there, channel2, width2, x2_row)
        right = _tile(weight2 + replica * width2 * height, channel2, channel2 < width2, col, height, height)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    if START:
        total += _tile(start + replica * start_batch, row, there, col, height, start_row)
    place = (replica * nodes + row)[:, None] * height + col[None, :]
    tl.store(out + place, total, mask=there[:, None] & (col < height)[None, :])


@triton.jit(do_not_specialize=["nodes", "chunks"])
def _outer_sums(
    x, x2, grad, out, out2, nodes, width, width2, height, chunks, x_batch, x_row, x2_batch, x2_row, grad_batch,
    grad_row, TWO: tl.constexpr, CHUNK: tl.constexpr, BLOCK_N: tl.constexpr, WIDTH: tl.constexpr, WIDTH2: tl.constexpr,
    HEIGHT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    chunk, replica = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel, channel2, col = tl.arange(0, WIDTH), tl.arange(0, WIDTH2), tl.arange(0, HEIGHT)
    x += replica * x_batch
    x2 += replica * x2_batch
    grad += replica * grad_batch
    total = tl.zeros([WIDTH, HEIGHT], dtype=tl.float32)
    total2 = tl.zeros([WIDTH2, HEIGHT], dtype=tl.float32)
    for start in range(0, CHUNK, BLOCK_N):
        node = chunk * CHUNK + start + tl.arange(0, BLOCK_N)
        there = node < nodes
        right = _tile(grad, node, there, col, height, grad_row)
        total = tl.dot(_columns(x, node, there, channel, width, x_row), right, total, input_precision=PRECISION)
        if TWO:
            left = _columns(x2, node, there, channel2, width2, x2_row)
            total2 = tl.dot(left, right, total2, input_precision=PRECISION)
    place = replica * chunks + chunk
    inside = (channel < width)[:, None] & (col < height)[None, :]
    tl.store(out + place * width * height + channel[:, None] * height + col[None, :], total, mask=inside)
    if TWO:
        inside = (channel2 < width2)[:, None] & (col < height)[None, :]
        tl.store(out2 + place * width2 * height + channel2[:, None] * height + col[None, :], total2, mask=inside)


def is_narrow(weights: Sequence[Tensor]) -> bool:
    """Whether the matrices [R, in, out] of a layer are of those that these kernels are for."""
    return len(weights) <= 2 and all(max(weight.shape[1:]) <= WIDEST for weight in weights)


def sum_of_products(xs: Sequence[Tensor], weights: Sequence[Tensor], start: Tensor | None) -> Tensor:
    """Σ x W + start for one or two float32 x [R, N, in] and matrices [R, in, out]: [R, N, out]."""
    xs, (replicas, nodes), height = _rows_in_line(xs), xs[0].shape[:2], weights[0].shape[2]
    start = start if start is None or start.stride(-1) == 1 else start.contiguous()
    out = weights[0].new_empty(replicas, nodes, height)
    x, x2, weight, weight2 = xs[0], xs[-1], weights[0].contiguous(), weights[-1].contiguous()
    lies = (0, 0) if start is None else (start.stride(0), start.stride(1))
    if out.numel():
        _products[(triton.cdiv(nodes, ROWS), replicas)](
            x, weight, x2, weight2, out if start is None else start, out, nodes, x.shape[2], x2.shape[2], height,
            x.stride(0), x.stride(1), x2.stride(0), x2.stride(1), *lies,
            START=start is not None, ROWS=ROWS, **_sizes(x, x2, height, len(xs)),
        )  # fmt: skip
    return out


def outer_sums(xs: Sequence[Tensor], grad: Tensor) -> list[Tensor]:
    """Σ_n x[r, n] ⊗ grad[r, n] for one or two x: float32 [R, N, in] and [R, N, out] → [R, in, out] each."""
    nodes = grad.shape[1]
    equal = next((size for size in range(LONGEST, SHORTEST - 1, -1) if nodes % size == 0), 0)
    if nodes and equal and all(tensor.is_contiguous() for tensor in (*xs, grad)):
        return [_in_equal_chunks(x, grad, equal) for x in xs]
    return _in_chunks(xs, grad)


def _in_equal_chunks(x: Tensor, grad: Tensor, size: int) -> Tensor:
    """By a library's products, where the nodes can be parted without a rest: .05 ms, by the kernel .12 (timed once)."""
    (replicas, nodes, width), height = x.shape, grad.shape[2]
    chunks = nodes // size
    left, right = x.view(replicas * chunks, size, width), grad.view(replicas * chunks, size, height)
    return torch.bmm(left.transpose(1, 2), right).view(replicas, chunks, width, height).sum(1)


def _in_chunks(xs: Sequence[Tensor], grad: Tensor) -> list[Tensor]:
    *xs, grad = _rows_in_line([*xs, grad])
    replicas, nodes, height = grad.shape
    chunks = max(1, triton.cdiv(nodes, CHUNK))
    outs = [grad.new_empty(replicas, chunks, x.shape[2], height) for x in xs]
    x, x2 = xs[0], xs[-1]
    _outer_sums[(chunks, replicas)](
        x, x2, grad, outs[0], outs[-1], nodes, x.shape[2], x2.shape[2], height, chunks,
        x.stride(0), x.stride(1), x2.stride(0), x2.stride(1), grad.stride(0), grad.stride(1),
        CHUNK=CHUNK, BLOCK_N=32, **_sizes(x, x2, height, len(xs)),
    )  # fmt: skip
    return [out.sum(1) for out in outs]


def _rows_in_line(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in tensors]


def _sizes(x: Tensor, x2: Tensor, height: int, count: int) -> dict[str, object]:
    """What the kernels are compiled for; products of tensor cores are of 16 channels at least."""
    widths = (max(16, triton.next_power_of_2(width)) for width in (x.shape[2], x2.shape[2], height))
    precision = "tf32" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "ieee"
    return {**dict(zip(("WIDTH", "WIDTH2", "HEIGHT"), widths, strict=True)), "PRECISION": precision, "TWO": count == 2}
