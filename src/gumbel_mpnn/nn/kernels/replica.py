"""Random numbers of all replicas in one GPU kernel, and sums in an order that does not depend on their number.

Dropout recomputes its mask for the gradient. torch shares a sum between programs by the number of its results; here
every program sums a chunk of fixed length.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gumbel_mpnn.util.tensors import first_order

BLOCK = 1024
"""Random numbers that a program draws."""
TILE, TILES = 2048, 4
"""Size of a tile of rows times columns, and how many tiles one program sums."""
WIDEST = 64
"""Maximum number of columns of a tile."""


@triton.jit
def four_uniforms(seeds, calls, replica, place, SHAPE: tl.constexpr):
    """Uniform random numbers in [0, 1), four adjacent ones for each `place` (int64, because it may exceed 2³²).

    Philox generates four numbers at a time. `SHAPE` is the shape of `place` with the last dimension times four.
    """
    low = place.to(tl.int32)
    one, two, three, four = tl.philox(
        tl.load(seeds + replica), low, low * 0 + tl.load(calls).to(tl.int32), (place >> 32).to(tl.int32), low * 0
    )
    bits = tl.join(tl.join(one, three), tl.join(two, four)).reshape(SHAPE)
    return tl.uint_to_uniform_float(bits)


@triton.jit
def _flat_uniforms(seeds, calls, replica, block, BLOCK: tl.constexpr):
    """Uniform random numbers of one block of a row."""
    quarter: tl.constexpr = BLOCK // 4
    return four_uniforms(seeds, calls, replica, block * quarter + tl.arange(0, quarter), [BLOCK])


@triton.jit
def _dropout(x, out, seeds, calls, count, probability, scale, BLOCK: tl.constexpr):
    block, replica = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    place = block * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    kept = _flat_uniforms(seeds, calls, replica, block, BLOCK) >= probability
    value = tl.load(x + replica * count + place, mask=inside, other=0)
    tl.store(out + replica * count + place, tl.where(kept, value * scale, 0), mask=inside)


@triton.jit
def _uniform(out, seeds, calls, count, BLOCK: tl.constexpr):
    block, replica = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    place = block * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + replica * count + place, _flat_uniforms(seeds, calls, replica, block, BLOCK), mask=place < count)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, probability: float, seeds: Tensor, call: Tensor) -> Tensor:
        ctx.probability, ctx.seeds, ctx.call = probability, seeds, call
        return _apply(x, probability, seeds, call)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return _apply(grad, ctx.probability, ctx.seeds, ctx.call), None, None, None


def fused_dropout(x: Tensor, probability: float, seeds: Tensor, call: Tensor) -> Tensor:
    """Zero entries of x [R, ...] with `probability` and scale the others.

    The mask depends on the seed of the replica (`seeds`, int64 [R]) and on the number of the draw (`call`, int64
    scalar). Both are on the device, so that a captured CUDA graph draws a new mask each time it is replayed.
    """
    out: Tensor = _Dropout.apply(x, probability, seeds, call)
    return out


def fused_uniform(seeds: Tensor, call: Tensor, count: int) -> Tensor:
    """Uniform random numbers in [0, 1), float32 [R, count]."""
    out = torch.empty(len(seeds), count, device=seeds.device)
    if count:
        _uniform[(triton.cdiv(count, BLOCK), len(seeds))](out, seeds, call, count, BLOCK=BLOCK)
    return out


def _apply(x: Tensor, probability: float, seeds: Tensor, call: Tensor) -> Tensor:
    x = x.contiguous()
    out, count = torch.empty_like(x), x[0].numel()
    scale = 1 / (1 - probability) if probability < 1 else 0.0
    _dropout[(triton.cdiv(count, BLOCK), len(x))](x, out, seeds, call, count, probability, scale, BLOCK=BLOCK)
    return out


@triton.jit(do_not_specialize=["rows", "chunks"])
def _chunk_sums(
    x, out, rows, width, chunks, ROWS: tl.constexpr, WIDTH: tl.constexpr, TILES: tl.constexpr, TOTAL: tl.constexpr
):
    chunk, replica = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = tl.program_id(2) * WIDTH + tl.arange(0, WIDTH)
    there = column < width
    total = tl.zeros([ROWS, WIDTH], dtype=TOTAL)
    for tile in range(TILES):
        row = (chunk * TILES + tile) * ROWS + tl.arange(0, ROWS)
        place = (replica * rows + row)[:, None] * width + column[None, :]
        total += tl.load(x + place, mask=(row < rows)[:, None] & there[None, :], other=0.0).to(TOTAL)
    tl.store(out + (replica * chunks + chunk) * width + column, tl.sum(total, axis=0), mask=there)


def over_rows(x: Tensor) -> Tensor:
    """Sums over the middle axis, [R, N, D] → [R, D]; 16-bit numbers are summed in 32 bits."""
    dtype, (replicas, rows, width) = x.dtype, x.shape
    if not x.numel():
        return x.sum(1)
    wide = torch.promote_types(dtype, torch.float32)
    columns = min(WIDEST, triton.next_power_of_2(width))
    height = TILE // columns
    while True:
        chunks = triton.cdiv(rows, height * TILES)
        out = x.new_empty(replicas, chunks, width, dtype=wide)
        _chunk_sums[(chunks, replicas, triton.cdiv(width, columns))](
            x.contiguous(), out, rows, width, chunks, ROWS=height, WIDTH=columns, TILES=TILES,
            TOTAL=tl.float64 if wide == torch.float64 else tl.float32,
        )  # fmt: skip
        if chunks == 1:
            return out[:, 0].to(dtype)
        x, rows = out, chunks
