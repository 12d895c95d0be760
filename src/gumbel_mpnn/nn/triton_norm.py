"""Norm, ReLU and dropout of all replicas in one pass over memory, on a GPU.

y = dropout(relu(n · weight + bias)), where n is x standardised over nodes (batch norm), over channels (layer norm) or
x itself. The gradient needs no mask: an entry of y is above 0 exactly where ReLU and dropout let it through.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gumbel_mpnn.graph.first_order import first_order
from gumbel_mpnn.nn.triton_random import uniform_at

TILE = 8192
"""Numbers in a tile of nodes times channels, at the most."""
CHUNK = 256
"""Nodes whose sums one program makes; the sums of the programs are then added in order."""


@triton.jit
def _place(base, row, channel, width):
    """Where a tile of nodes times channels lies; there may be more numbers than 32 bits can count."""
    return base + row[:, None].to(tl.int64) * width + channel[None, :]


@triton.jit
def _kept(y, seeds, calls, replica, row, channel, width, probability):
    kept = uniform_at(seeds, calls, replica, _place(0, row, channel, width)) >= probability
    return tl.where(kept, y, 0.0)


@triton.jit
def _tile(x, base, row, channel, width, inside):
    """A tile of nodes times channels; numbers kept in 16 bits are computed with in 32."""
    value = tl.load(x + _place(base, row, channel, width), mask=inside, other=0.0)
    return value.to(tl.float32) if value.dtype.primitive_bitwidth == 16 else value


@triton.jit(do_not_specialize=["nodes"])
def _forward(
    x, y, weight, bias, mean, rstd, seeds, calls, nodes, width, probability, scale, eps,
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
    value = tl.where(value <= 0, 0.0, value) * scale  # and not maximum, which would hide a NaN
    if DROP:
        value = _kept(value, seeds, calls, replica, row, channel, width, probability)
    tl.store(y + _place(base, row, channel, width), value, mask=inside)


@triton.jit(do_not_specialize=["nodes", "chunks"])
def _chunk_moments(
    x, means, squares, nodes, width, chunks, CHUNK: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    """Mean and sum of squared deviations of a chunk of nodes, tile by tile without loss of digits."""
    chunk, replica, channel = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.arange(0, WIDTH)
    there = channel < width
    count = 0.0
    mean = tl.zeros([WIDTH], dtype=tl.float32)
    square = tl.zeros([WIDTH], dtype=tl.float32)
    for start in tl.static_range(0, CHUNK, ROWS):
        row = chunk * CHUNK + start + tl.arange(0, ROWS)
        inside = (row < nodes)[:, None] & there[None, :]
        value = _tile(x, replica * nodes * width, row, channel, width, inside)
        new = tl.sum((row < nodes).to(tl.float32), axis=0)
        tile_mean = tl.sum(value, axis=0) / tl.maximum(new, 1.0)
        away = tl.where(inside, value - tile_mean[None, :], 0.0)
        total = tl.maximum(count + new, 1.0)
        apart = tile_mean - mean
        square += tl.sum(away * away, axis=0) + apart * apart * (count * new / total)
        mean += apart * (new / total)
        count += new
    place = (replica * chunks + chunk) * width + channel
    tl.store(means + place, mean, mask=there)
    tl.store(squares + place, square, mask=there)


@triton.jit(do_not_specialize=["nodes", "chunks"])
def _chunk_grads(
    x, y, grad, out, mean, rstd, weight, sum_one, sum_normal, nodes, width, chunks, scale,
    LAYER: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Sums over a chunk of nodes of g and g · n; for layer norm the gradient for x as well."""
    chunk, replica, channel = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.arange(0, WIDTH)
    there = channel < width
    base = replica * nodes * width
    one = tl.zeros([WIDTH], dtype=tl.float32)
    along = tl.zeros([WIDTH], dtype=tl.float32)
    gain = tl.load(weight + replica * width + channel, mask=there, other=0.0)
    if not LAYER:
        center = tl.load(mean + replica * width + channel, mask=there, other=0.0)[None, :]
        root = tl.load(rstd + replica * width + channel, mask=there, other=0.0)[None, :]
    for start in tl.static_range(0, CHUNK, ROWS):
        row = chunk * CHUNK + start + tl.arange(0, ROWS)
        inside = (row < nodes)[:, None] & there[None, :]
        if LAYER:
            center = tl.load(mean + replica * nodes + row, mask=row < nodes, other=0.0)[:, None]
            root = tl.load(rstd + replica * nodes + row, mask=row < nodes, other=0.0)[:, None]
        passed = _tile(y, base, row, channel, width, inside) > 0
        g = tl.where(passed, _tile(grad, base, row, channel, width, inside) * scale, 0.0)
        normal = tl.where(inside, (_tile(x, base, row, channel, width, inside) - center) * root, 0.0)
        one += tl.sum(g, axis=0)
        along += tl.sum(g * normal, axis=0)
        if LAYER:
            inner = g * gain[None, :]
            flat = tl.sum(inner, axis=1) / width
            slope = tl.sum(inner * normal, axis=1) / width
            value = (inner - flat[:, None] - normal * slope[:, None]) * root
            tl.store(out + _place(base, row, channel, width), value, mask=inside)
    place = (replica * chunks + chunk) * width + channel
    tl.store(sum_one + place, one, mask=there)
    tl.store(sum_normal + place, along, mask=there)


@triton.jit(do_not_specialize=["nodes"])
def _backward(
    x, y, grad, out, mean, rstd, weight, along_one, along_normal, nodes, width, scale,
    BATCH: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradient for x of batch norm or of no norm."""
    replica = tl.program_id(1).to(tl.int64)
    row, channel = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = channel < width
    inside = (row < nodes)[:, None] & there[None, :]
    base, place = replica * nodes * width, replica * width + channel
    passed = _tile(y, base, row, channel, width, inside) > 0
    value = tl.where(passed, _tile(grad, base, row, channel, width, inside) * scale, 0.0)
    if BATCH:
        center = tl.load(mean + place, mask=there, other=0.0)
        root = tl.load(rstd + place, mask=there, other=0.0)
        gain = tl.load(weight + place, mask=there, other=0.0)
        flat = tl.load(along_one + place, mask=there, other=0.0)
        slope = tl.load(along_normal + place, mask=there, other=0.0)
        normal = (_tile(x, base, row, channel, width, inside) - center[None, :]) * root[None, :]
        value = (value - flat[None, :] - normal * slope[None, :]) * (gain * root)[None, :]
    tl.store(out + _place(base, row, channel, width), value, mask=inside)


def batch_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance over the nodes of x [R, N, D], each [R, 1, D]."""
    x = x.contiguous()
    replicas, nodes, width = x.shape
    chunks = triton.cdiv(nodes, CHUNK)
    means, squares = _sums_for(x, 2, replicas, chunks, width)
    _chunk_moments[(chunks, replicas)](x, means, squares, nodes, width, chunks, CHUNK=CHUNK, **_sizes(width))
    counts = torch.full((chunks, 1), float(CHUNK), device=x.device)
    counts[-1] = nodes - CHUNK * (chunks - 1)
    mean = (means * counts).sum(1, keepdim=True) / nodes
    spread = squares.sum(1, keepdim=True) + ((means - mean).square() * counts).sum(1, keepdim=True)
    return mean, spread / nodes


class _NormReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor | None, rstd: Tensor | None,
        norm: str, eps: float, probability: float, seeds: Tensor, call: Tensor,
    ) -> Tensor:  # fmt: skip
        x = x.contiguous()
        replicas, nodes, width = x.shape
        if norm == "layer":
            mean, rstd = _sums_for(x, 2, replicas, nodes)
        y = torch.empty_like(x)
        scale = 1 / (1 - probability) if probability < 1 else 0.0
        sizes = _sizes(width)
        _forward[(triton.cdiv(nodes, sizes["ROWS"]), replicas)](
            x, y, *(x if t is None else t for t in (weight, bias, mean, rstd)), seeds, call,
            nodes, width, probability, scale, eps, NORM=norm, DROP=probability > 0, **sizes,
        )  # fmt: skip
        ctx.norm, ctx.scale = norm, scale
        ctx.save_for_backward(y, *((x, weight, mean, rstd) if norm != "none" else ()))
        return y

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad = grad.contiguous()
        replicas, nodes, width = grad.shape
        y, x, weight, mean, rstd = ctx.saved_tensors if ctx.norm != "none" else (ctx.saved_tensors[0], *[grad] * 4)
        out = torch.empty_like(grad)
        grad_weight = grad_bias = None
        sizes = _sizes(width)
        if ctx.norm != "none":
            chunks = triton.cdiv(nodes, CHUNK)
            sums = _sums_for(grad, 2, replicas, chunks, width)
            _chunk_grads[(chunks, replicas)](
                x, y, grad, out, mean, rstd, weight, sums[0], sums[1], nodes, width, chunks, ctx.scale,
                LAYER=ctx.norm == "layer", CHUNK=CHUNK, **sizes,
            )  # fmt: skip
            grad_bias, grad_weight = sums.sum(2, keepdim=True)
        if ctx.norm != "layer":
            along = (
                (grad, grad) if grad_bias is None or grad_weight is None else (grad_bias / nodes, grad_weight / nodes)
            )
            _backward[(triton.cdiv(nodes, sizes["ROWS"]), replicas)](
                x, y, grad, out, mean, rstd, weight, *along, nodes, width, ctx.scale,
                BATCH=ctx.norm == "batch", **sizes,
            )  # fmt: skip
        return out, grad_weight, grad_bias, *[None] * 7


def norm_relu_dropout(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor | None, rstd: Tensor | None,
    *, norm: str, eps: float, probability: float, seeds: Tensor, call: Tensor,
) -> Tensor:  # fmt: skip
    """The fused layer; `mean` and `rstd` ([R, 1, D]) are given for batch norm only."""
    out: Tensor = _NormReluDropout.apply(x, weight, bias, mean, rstd, norm, eps, probability, seeds, call)
    return out


def _sums_for(x: Tensor, *shape: int) -> Tensor:
    """Room for sums of entries of x, in 32 bits at least."""
    return x.new_empty(shape, dtype=torch.promote_types(x.dtype, torch.float32))


def _sizes(width: int) -> dict[str, int]:
    padded = triton.next_power_of_2(width)
    return {"ROWS": max(1, min(16, TILE // padded)), "WIDTH": padded, "num_warps": 4 if padded <= 256 else 8}
