"""Bias, norm, ReLU and dropout of all replicas in one pass over memory, on a GPU.

y = dropout(relu(n · weight + bias)), where n is x + offset, standardized over nodes (batch norm), over channels (layer
norm) or not at all; the offset is the bias of the previous layer. The gradient needs no mask: an entry of y is positive
exactly where ReLU and dropout pass it.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gumbel_mpnn.nn.kernels.replica import four_uniforms, over_rows
from gumbel_mpnn.util.tensors import first_order

TILE = 2048
"""Maximum size of a tile of nodes times channels, unless one row is longer; a tile has at most 16 rows. The threads of
a program can hold as many numbers, and three sums for each, without spilling registers."""
CHUNK = 256
"""Number of nodes that one program sums over; the sums of the programs are then added in a fixed order."""


@triton.jit
def _place(base, row, channel, width):
    """Offsets of a tile of nodes times channels, in 64 bits."""
    return base + row[:, None].to(tl.int64) * width + channel[None, :]


@triton.jit
def _kept(y, seeds, calls, replica, row, width, probability, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    fours = (width + 3) // 4
    place = _place(0, row, tl.arange(0, WIDTH // 4), fours)
    kept = four_uniforms(seeds, calls, replica, place, [ROWS, WIDTH]) >= probability
    return tl.where(kept, y, 0.0)


@triton.jit
def _tile(x, base, row, channel, width, inside):
    """Load a tile of nodes times channels; 16-bit numbers are converted to 32 bits."""
    value = tl.load(x + _place(base, row, channel, width), mask=inside, other=0.0)
    return value.to(tl.float32) if value.dtype.primitive_bitwidth == 16 else value


@triton.jit(do_not_specialize=["nodes"])
def _forward(
    x, y, offset, weight, bias, mean, rstd, seeds, calls, nodes, width, probability, scale, eps,
    NORM: tl.constexpr, DROP: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    row, channel = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = channel < width
    inside = (row < nodes)[:, None] & there[None, :]
    base = replica * nodes * width
    value = _tile(x, base, row, channel, width, inside)
    if NORM == "batch":
        center = tl.load(mean + replica * width + channel, mask=there, other=0.0)
        root = tl.load(rstd + replica * width + channel, mask=there, other=0.0)
        value = (value - center[None, :]) * root[None, :]
    else:
        value += tl.load(offset + replica * width + channel, mask=there, other=0.0)[None, :]
    if NORM == "layer":
        center = tl.sum(value, axis=1) / width
        value = tl.where(inside, value - center[:, None], 0.0)
        root = 1 / tl.sqrt(tl.sum(value * value, axis=1) / width + eps)
        value = value * root[:, None]
        tl.store(mean + replica * nodes + row, center, mask=row < nodes)
        tl.store(rstd + replica * nodes + row, root, mask=row < nodes)
    if NORM != "none":
        gain = tl.load(weight + replica * width + channel, mask=there, other=0.0)
        shift = tl.load(bias + replica * width + channel, mask=there, other=0.0)
        value = value * gain[None, :] + shift[None, :]
    value = tl.where(value <= 0, 0.0, value) * scale  # not maximum, which would hide a NaN
    if DROP:
        value = _kept(value, seeds, calls, replica, row, width, probability, ROWS, WIDTH)
    tl.store(y + _place(base, row, channel, width), value, mask=inside)


@triton.jit(do_not_specialize=["nodes", "chunks"])
def _chunk_moments(
    x, means, squares, nodes, width, chunks,
    NEAR: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Mean and sum of squared deviations of a chunk of nodes.

    The mean of the first NEAR nodes is subtracted from all values before they are summed, so that few digits are lost.
    """
    chunk, replica, channel = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.arange(0, WIDTH)
    there = channel < width
    base, first = replica * nodes * width, chunk * CHUNK + tl.arange(0, NEAR)
    value = _tile(x, base, first, channel, width, (first < nodes)[:, None] & there[None, :])
    near = tl.sum(value, axis=0) / tl.sum((first < nodes).to(tl.float32), axis=0)
    one = tl.zeros([ROWS, WIDTH], dtype=means.dtype.element_ty)
    square = tl.zeros([ROWS, WIDTH], dtype=means.dtype.element_ty)
    for start in range(0, CHUNK, ROWS):
        row = chunk * CHUNK + start + tl.arange(0, ROWS)
        inside = (row < nodes)[:, None] & there[None, :]
        away = tl.where(inside, _tile(x, base, row, channel, width, inside) - near[None, :], 0.0)
        one += away
        square += away * away
    count = tl.minimum(nodes - chunk * CHUNK, CHUNK)
    apart = tl.sum(one, axis=0) / count
    place = (replica * chunks + chunk) * width + channel
    tl.store(means + place, near + apart, mask=there)
    tl.store(squares + place, tl.sum(square, axis=0) - count * apart * apart, mask=there)


@triton.jit(do_not_specialize=["nodes", "chunks"])
def _chunk_grads(
    x, y, grad, out, offset, mean, rstd, weight, sum_one, sum_normal, sum_out, nodes, width, chunks, scale,
    NORM: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Sums of g and g · n over a chunk of nodes; except for batch norm, also the gradient for x and its sum."""
    chunk, replica, channel = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.arange(0, WIDTH)
    there = channel < width
    base, own = replica * nodes * width, replica * width + channel
    one = tl.zeros([ROWS, WIDTH], dtype=sum_one.dtype.element_ty)
    along = tl.zeros([ROWS, WIDTH], dtype=sum_one.dtype.element_ty)
    total = tl.zeros([ROWS, WIDTH], dtype=sum_one.dtype.element_ty)
    if NORM == "batch":
        center = tl.load(mean + own, mask=there, other=0.0)[None, :]
        root = tl.load(rstd + own, mask=there, other=0.0)[None, :]
    if NORM == "layer":
        gain = tl.load(weight + own, mask=there, other=0.0)[None, :]
        added = tl.load(offset + own, mask=there, other=0.0)[None, :]
    for start in range(0, CHUNK, ROWS):
        row = chunk * CHUNK + start + tl.arange(0, ROWS)
        inside = (row < nodes)[:, None] & there[None, :]
        passed = _tile(y, base, row, channel, width, inside) > 0
        g = tl.where(passed, _tile(grad, base, row, channel, width, inside) * scale, 0.0)
        if NORM != "none":
            value = _tile(x, base, row, channel, width, inside)
            if NORM == "layer":
                center = tl.load(mean + replica * nodes + row, mask=row < nodes, other=0.0)[:, None]
                root = tl.load(rstd + replica * nodes + row, mask=row < nodes, other=0.0)[:, None]
                value += added
            normal = tl.where(inside, (value - center) * root, 0.0)
            one += g
            along += g * normal
        if NORM == "layer":
            g *= gain
            flat = tl.sum(g, axis=1) / width
            slope = tl.sum(g * normal, axis=1) / width
            g = tl.where(inside, (g - flat[:, None] - normal * slope[:, None]) * root, 0.0)
        if NORM != "batch":
            total += g
            tl.store(out + _place(base, row, channel, width), g, mask=inside)
    place = (replica * chunks + chunk) * width + channel
    if NORM != "none":
        tl.store(sum_one + place, tl.sum(one, axis=0), mask=there)
        tl.store(sum_normal + place, tl.sum(along, axis=0), mask=there)
    if NORM != "batch":
        tl.store(sum_out + place, tl.sum(total, axis=0), mask=there)


@triton.jit(do_not_specialize=["nodes"])
def _batch_grad(
    x, y, grad, out, mean, rstd, weight, along_one, along_normal, nodes, width, scale,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Gradient of batch norm for x."""
    replica = tl.program_id(1).to(tl.int64)
    row, channel = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = channel < width
    inside = (row < nodes)[:, None] & there[None, :]
    base, place = replica * nodes * width, replica * width + channel
    center = tl.load(mean + place, mask=there, other=0.0)
    root = tl.load(rstd + place, mask=there, other=0.0)
    gain = tl.load(weight + place, mask=there, other=0.0)
    flat = tl.load(along_one + place, mask=there, other=0.0)
    slope = tl.load(along_normal + place, mask=there, other=0.0)
    passed = _tile(y, base, row, channel, width, inside) > 0
    g = tl.where(passed, _tile(grad, base, row, channel, width, inside) * scale, 0.0)
    normal = (_tile(x, base, row, channel, width, inside) - center[None, :]) * root[None, :]
    value = (g - flat[None, :] - normal * slope[None, :]) * (gain * root)[None, :]
    tl.store(out + _place(base, row, channel, width), value, mask=inside)


def batch_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance over the nodes of x [R, N, D], each [R, 1, D]."""
    x = x.contiguous()
    replicas, nodes, width = x.shape
    chunks = triton.cdiv(nodes, CHUNK)
    means, squares = _sums_for(x, 2, replicas, chunks, width)
    sizes = _sizes(width)
    near = max(8, sizes["ROWS"])
    _chunk_moments[(chunks, replicas)](x, means, squares, nodes, width, chunks, NEAR=near, CHUNK=CHUNK, **sizes)
    counts = torch.full((chunks, 1), float(CHUNK), device=x.device)
    counts[-1] = nodes - CHUNK * (chunks - 1)
    mean = over_rows(means * counts)[:, None] / nodes
    spread = over_rows(squares + (means - mean).square() * counts)[:, None]
    return mean, spread / nodes


class _NormReluDropout(torch.autograd.Function):
    """dropout(relu(norm(x + offset))) for x [R, N, D]; `offset`, `weight`, `bias`, `mean` and `rstd` are [R, 1, D].

    `mean` and `rstd` are given for batch norm only: statistics of x without the offset, which has no effect then.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, offset: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor | None,
        rstd: Tensor | None, norm: str, eps: float, probability: float, seeds: Tensor, call: Tensor,
    ) -> Tensor:  # fmt: skip
        x = x.contiguous()
        replicas, nodes, width = x.shape
        if norm == "layer":
            mean, rstd = _sums_for(x, 2, replicas, nodes)
        y = torch.empty_like(x)
        scale = 1 / (1 - probability) if probability < 1 else 0.0
        sizes = _sizes(width)
        _forward[(triton.cdiv(nodes, sizes["ROWS"]), replicas)](
            x, y, offset, *(x if t is None else t for t in (weight, bias, mean, rstd)), seeds, call,
            nodes, width, probability, scale, eps, NORM=norm, DROP=probability > 0, **sizes,
        )  # fmt: skip
        ctx.norm, ctx.scale = norm, scale
        ctx.save_for_backward(y, offset, *((x, weight, mean, rstd) if norm != "none" else ()))
        return y

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad = grad.contiguous()
        replicas, nodes, width = grad.shape
        y, offset, *rest = ctx.saved_tensors
        x, weight, mean, rstd = rest or [grad] * 4
        out, sizes, chunks = torch.empty_like(grad), _sizes(width), triton.cdiv(nodes, CHUNK)
        sums = _sums_for(grad, 3, replicas, chunks, width)
        _chunk_grads[(chunks, replicas)](
            x, y, grad, out, offset, mean, rstd, weight, *sums, nodes, width, chunks, ctx.scale,
            NORM=ctx.norm, CHUNK=CHUNK, **sizes,
        )  # fmt: skip
        if ctx.norm == "none":
            return out, over_rows(sums[2])[:, None], *[None] * 9
        if ctx.norm == "layer":
            grad_bias, grad_weight, grad_offset = (over_rows(each)[:, None] for each in sums)
            return out, grad_offset, grad_weight, grad_bias, *[None] * 7
        grad_bias, grad_weight = (over_rows(each)[:, None] for each in sums[:2])
        _batch_grad[(triton.cdiv(nodes, sizes["ROWS"]), replicas)](
            x, y, grad, out, mean, rstd, weight, grad_bias / nodes, grad_weight / nodes, nodes, width, ctx.scale,
            **sizes,
        )  # fmt: skip
        return out, torch.zeros_like(offset), grad_weight, grad_bias, *[None] * 7


norm_relu_dropout = _NormReluDropout.apply


def _sums_for(x: Tensor, *shape: int) -> Tensor:
    """Empty tensor for sums of entries of x, with at least 32 bits."""
    return x.new_empty(shape, dtype=torch.promote_types(x.dtype, torch.float32))


def _sizes(width: int) -> dict[str, int]:
    padded = max(4, triton.next_power_of_2(width))
    return {"ROWS": max(1, min(16, TILE // padded)), "WIDTH": padded, "num_warps": 4 if padded < 256 else 8}
