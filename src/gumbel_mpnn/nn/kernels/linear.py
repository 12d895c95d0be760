"""Linear maps of narrow layers on a GPU, for all replicas at once.

A layer of 64 channels is bound by memory: [R, N, 64] must be read and written once. `sum_of_products` computes
x W + x' W' + start in one pass, where products and additions of torch take five. `outer_sums`, the gradient for the
matrices, has few results and very long sums. Libraries assign each tile of the result to one program, which for 30
replicas of 64 × 64 leaves most of an H200 idle (.36 ms, while the memory traffic needs .04 ms). Here the nodes are cut
into chunks, whose sums are added in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from gumbel_mpnn.nn.kernels.sums import over_rows

WIDEST = 64
"""Maximum number of input and output channels. A program with 128 x 128 sums spills registers: a step with one million
arcs then took 2.8 ms, and 2.0 ms with torch's products."""
CHUNK = 512
"""Number of nodes that one program sums over."""
ROWS = 128
"""Number of nodes for which one program computes the products."""


@triton.jit
def _tile(x, row, there, channel, width, stride):
    """Load rows of x, padded with 0."""
    inside = there[:, None] & (channel < width)[None, :]
    return tl.load(x + row.to(tl.int64)[:, None] * stride + channel[None, :], mask=inside, other=0.0)


@triton.jit
def _columns(x, row, there, channel, width, stride):
    """Transposed version of `_tile`."""
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
    """Whether these kernels support the matrices [R, in, out] of a layer."""
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
    return [over_rows(out.flatten(2)).unflatten(1, out.shape[2:]) for out in outs]


def _rows_in_line(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in tensors]


def _sizes(x: Tensor, x2: Tensor, height: int, count: int) -> dict[str, object]:
    """Compile-time arguments of the kernels; products on tensor cores need at least 16 channels."""
    widths = (max(16, triton.next_power_of_2(width)) for width in (x.shape[2], x2.shape[2], height))
    precision = "tf32" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "ieee"
    return {**dict(zip(("WIDTH", "WIDTH2", "HEIGHT"), widths, strict=True)), "PRECISION": precision, "TWO": count == 2}
