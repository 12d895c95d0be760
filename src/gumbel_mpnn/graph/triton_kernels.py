"""The sparse products on a GPU: one kernel that walks along the rows of a pattern, chunk by chunk.

For a row i with its positions e = (i, j) it can do three things in one pass over the rows x_j that it gathers:

    sum     Σ_e values_e · x_j
    sample  own_i · x_j for every e, which is the gradient for the values when x is the gradient of the output
    scale   both with factors scale_i · scale_j, and with a self-loop: what a graph convolution needs

Every sum is made by one program in a fixed order, so results are equal to the last bit from run to run, which the
sparse products that come with torch do not promise. Batches share one pattern: no tiled copies of the indices. Sums are
made in 32 bits where the numbers are kept in 16.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from gumbel_mpnn.graph.layout import Side

TILE = 1024
"""Numbers that one warp has under way at once; with more warps to a row the same kernel was up to 7 times slower."""
WIDEST = 1024
"""Channels that a program holds of its own row; wider ones are worked off in slices."""
COUNTS = ["nodes", "positions", "slots", "values_batch", "scale_batch"]
"""Numbers that Triton would compile a kernel anew for, by whether 16 divides them, and that gain nothing by it."""


@triton.jit
def _finish(
    total, here, mine, row, batch, channel, inside, x, image, out, scale_grad,
    nodes, x_row, image_batch, image_row, out_batch, out_row,
    SCALED: tl.constexpr, SCALE_GRAD: tl.constexpr,
):  # fmt: skip
    """Add the self-loop to the sum of a row, scale it, and write it."""
    if SCALED:
        itself = tl.load(x + row * x_row + channel, mask=inside, other=0).to(total.dtype)
        total = here * (total + here * itself)
        if SCALE_GRAD:
            picture = tl.load(image + batch * image_batch + row * image_row + channel, mask=inside, other=0)
            both = itself * picture.to(total.dtype) + mine * total
            tl.store(scale_grad + batch * nodes + row, tl.sum(both, axis=0) / here)
    tl.store(out + batch * out_batch + row * out_row + channel, total, mask=inside)


@triton.jit(do_not_specialize=COUNTS)
def _walk(
    chunk_row, chunk_begin, chunk_slot, index, order, values, x, own, scale, image, out, samples, scale_grad, partial,
    width, nodes, positions, slots, values_batch, x_batch, x_row, own_batch, own_row, scale_batch,
    image_batch, image_row, out_batch, out_row,
    HAS_ORDER: tl.constexpr, SUM: tl.constexpr, SAMPLE: tl.constexpr, SCALED: tl.constexpr, SCALE_GRAD: tl.constexpr,
    LONG: tl.constexpr, EXACT: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    chunk, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    inside = channel < width
    row = tl.load(chunk_row + chunk).to(tl.int64)
    start, end = tl.load(chunk_begin + chunk), tl.load(chunk_begin + chunk + 1)
    x += batch * x_batch
    total = tl.zeros([BLOCK_D], dtype=EXACT)
    mine, here = total, 1.0
    if SAMPLE:
        mine = tl.load(own + batch * own_batch + row * own_row + channel, mask=inside, other=0).to(EXACT)
    if SCALED:
        here = tl.load(scale + batch * scale_batch + row).to(EXACT)
    while start < end:
        position = start + tl.arange(0, BLOCK_E)
        there = position < end
        other = tl.load(index + position, mask=there, other=0).to(tl.int64)
        place = tl.load(order + position, mask=there, other=0) if HAS_ORDER else position
        rows = tl.load(
            x + other[:, None] * x_row + channel[None, :], mask=there[:, None] & inside[None, :], other=0
        ).to(EXACT)
        if SCALED:
            factor = tl.load(scale + batch * scale_batch + other, mask=there, other=0).to(EXACT)
        if SAMPLE:
            dot = tl.sum(rows * mine[None, :], axis=1)
            if SCALED:
                dot *= factor * here
            tl.store(samples + batch * positions + place, dot, mask=there)
        if SUM:
            weight = tl.load(values + batch * values_batch + place, mask=there, other=0).to(EXACT)
            if SCALED:
                weight *= factor
            total += tl.sum(weight[:, None] * rows, axis=0)
        start += BLOCK_E
    if SUM:
        slot = -1
        if LONG:
            slot = tl.load(chunk_slot + chunk)
        if slot >= 0:
            tl.store(partial + (batch * slots + slot) * width + channel, total, mask=inside)
        else:
            _finish(
                total, here, mine, row, batch, channel, inside, x, image, out, scale_grad,
                nodes, x_row, image_batch, image_row, out_batch, out_row, SCALED, SCALE_GRAD,
            )  # fmt: skip


@triton.jit(do_not_specialize=COUNTS)
def _join(
    long_row, long_begin, x, own, scale, image, out, scale_grad, partial,
    width, nodes, slots, x_batch, x_row, own_batch, own_row, scale_batch, image_batch, image_row, out_batch, out_row,
    SAMPLE: tl.constexpr, SCALED: tl.constexpr, SCALE_GRAD: tl.constexpr,
    EXACT: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Add up the chunks of every long row."""
    number, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    inside = channel < width
    row = tl.load(long_row + number).to(tl.int64)
    start, end = tl.load(long_begin + number), tl.load(long_begin + number + 1)
    total = tl.zeros([BLOCK_D], dtype=EXACT)
    while start < end:
        slot = start + tl.arange(0, BLOCK_E)
        place = (batch * slots + slot)[:, None] * width + channel[None, :]
        total += tl.sum(tl.load(partial + place, mask=(slot < end)[:, None] & inside[None, :], other=0), axis=0)
        start += BLOCK_E
    mine, here = total, 1.0
    if SAMPLE:
        mine = tl.load(own + batch * own_batch + row * own_row + channel, mask=inside, other=0).to(EXACT)
    if SCALED:
        here = tl.load(scale + batch * scale_batch + row).to(EXACT)
    x += batch * x_batch
    _finish(
        total, here, mine, row, batch, channel, inside, x, image, out, scale_grad,
        nodes, x_row, image_batch, image_row, out_batch, out_row, SCALED, SCALE_GRAD,
    )  # fmt: skip


@dataclass(frozen=True)
class Walked:
    """What one pass gave; None for what was not asked for."""

    sums: Tensor | None = None
    """[B, rows, D]."""
    samples: Tensor | None = None
    """[B, nnz]."""
    scale_grad: Tensor | None = None
    """[B, rows]."""


def walk(
    side: Side,
    x: Tensor,
    *,
    values: Tensor | None = None,
    own: Tensor | None = None,
    scale: Tensor | None = None,
    image: Tensor | None = None,
) -> Walked:
    """One pass along the rows of a pattern.

    Args:
        side: The pattern, by row or by column.
        x: What is gathered, [B, cols, D].
        values: Weights [B, nnz] for sums; none are made without them.
        own: Rows [B, rows, D] for samples; none are made without them.
        scale: Factors [B, nodes] of a square pattern, which gives every row a self-loop as well.
        image: The scaled sums of `own`, where x is the gradient for them: asks for the gradient for `scale`.
    """
    width = x.shape[2]
    if own is not None and width > WIDEST:
        return _in_slices(side, x, values, own, scale, image)
    rows, batch, positions = side.offsets.numel() - 1, x.shape[0], side.index.numel()

    def strides(tensor: Tensor | None) -> tuple[int, int]:
        return (0, 0) if tensor is None else (tensor.stride(0), tensor.stride(1))

    def given(tensor: Tensor | None) -> Tensor:
        return x if tensor is None else tensor

    x = x if x.stride(-1) == 1 else x.contiguous()
    values, own, scale, image = (
        t if t is None or t.stride(-1) == 1 else t.contiguous() for t in (values, own, scale, image)
    )
    sums = None if values is None else x.new_empty(batch, rows, width)
    samples = None if own is None else given(values).new_empty(batch, positions)
    scale_grad = None if image is None else given(scale).new_empty(batch, rows)
    if not (rows and width and batch):
        return Walked(sums, *(None if t is None else t.zero_() for t in (samples, scale_grad)))
    exact = torch.float64 if x.dtype == torch.float64 else torch.float32
    chunks = side.chunks
    long = chunks.slots > 0 and values is not None
    partial = x.new_empty(batch, chunks.slots, width, dtype=exact) if long else x
    block_d = min(WIDEST if own is not None else 256, triton.next_power_of_2(width))
    sizes = {"BLOCK_D": block_d, "EXACT": tl.float64 if exact == torch.float64 else tl.float32, "num_warps": 1}
    kinds = {"SAMPLE": own is not None, "SCALED": scale is not None, "SCALE_GRAD": image is not None}
    blocks = triton.cdiv(width, block_d)
    places = (*strides(x), *strides(own), strides(scale)[0], *strides(image), *strides(sums))
    _walk[(chunks.row.numel(), batch, blocks)](
        chunks.row, chunks.begin, chunks.slot, side.index, given(side.order), given(values), x, given(own),
        given(scale), given(image), given(sums), given(samples), given(scale_grad), partial,
        width, rows, positions, chunks.slots, strides(values)[0], *places,
        HAS_ORDER=side.order is not None, SUM=values is not None, LONG=long,
        BLOCK_E=max(2, min(32, TILE // block_d)), **kinds, **sizes,
    )  # fmt: skip
    if long:
        _join[(chunks.long_row.numel(), batch, blocks)](
            chunks.long_row, chunks.long_begin, x, given(own), given(scale), given(image), given(sums),
            given(scale_grad), partial, width, rows, chunks.slots, *places, BLOCK_E=8, **kinds, **sizes,
        )  # fmt: skip
    return Walked(sums, samples, scale_grad)


def _in_slices(
    side: Side, x: Tensor, values: Tensor | None, own: Tensor, scale: Tensor | None, image: Tensor | None
) -> Walked:
    """The same for many channels: sums lie side by side, dot products add up."""
    parts = [
        walk(
            side,
            x[..., start : start + WIDEST],
            values=values,
            own=own[..., start : start + WIDEST],
            scale=scale,
            image=None if image is None else image[..., start : start + WIDEST],
        )
        for start in range(0, x.shape[2], WIDEST)
    ]

    def added(name: str) -> Tensor | None:
        found = [getattr(part, name) for part in parts]
        return None if found[0] is None else torch.stack(found).sum(0)

    sums = None if values is None else torch.cat([part.sums for part in parts if part.sums is not None], dim=-1)
    return Walked(sums, added("samples"), added("scale_grad"))
