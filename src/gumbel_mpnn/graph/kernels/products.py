"""The sparse products on a GPU: one kernel that traverses the rows of a pattern, chunk by chunk.

For a row i with the positions e = (i, j), one pass over the gathered rows x_j computes any of:

    sum     Σ_e values_e · x_j, plus loop_i · x_i if self-loops have their own values
    sample  own_i · x_j for every e: the gradient for the values if x is the gradient of the output
    scale   both with factors scale_i · scale_j and a self-loop, as in a graph convolution

Every sum is computed in a fixed order, so results are bitwise reproducible, which torch's sparse products do not
guarantee. All batches share one pattern without tiled indices. Sums of 16-bit numbers are accumulated in 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from gumbel_mpnn.graph.layout import Side

TILE = 1024
"""Numbers that one warp handles at once; with more warps per row the kernel was up to 7 times slower."""
TOGETHER = 256
"""Channels per program, so that narrow replicas or heads share one: a program with a short row mostly waits. With 30
replicas of 64 channels on 10,000 nodes of degree 8, a sum took .09 ms, and .19 ms with separate programs for each
replica, timed once on an H200."""
MOST_TOGETHER = 32
"""Maximum number of replicas or heads per program."""
ENOUGH = 65_536
"""Number of rows, or chunks of long ones, that fill a GPU with one replica per program."""
WIDEST = 1024
"""Maximum number of channels of its own row that a program holds; wider rows are processed in slices."""
COUNTS = ["nodes", "positions", "slots", "batches", "values_lane", "scale_lane"]
"""Arguments that Triton should not specialize for: recompiling for multiples of 16 gains nothing."""


@triton.jit
def _finish(
    total, here, mine, row, lane, valid, lies, inside, x, loop, image, out, loop_grad, scale_grad, nodes,
    SAMPLE: tl.constexpr, LOOP: tl.constexpr, SCALED: tl.constexpr, SCALE_GRAD: tl.constexpr,
):  # fmt: skip
    """Add the self-loop to the sum of a row, scale it and store it; x, image and out point to the row."""
    if SCALED or LOOP:
        itself = tl.load(x + lies, mask=inside, other=0).to(total.dtype)
    if LOOP:
        total += tl.load(loop + lane * nodes + row, mask=valid, other=0).to(total.dtype)[:, None] * itself
        if SAMPLE:
            tl.store(loop_grad + lane * nodes + row, tl.sum(mine * itself, axis=1), mask=valid)
    if SCALED:
        total = here[:, None] * (total + here[:, None] * itself)
        if SCALE_GRAD:
            both = itself * tl.load(image, mask=inside, other=0).to(total.dtype) + mine * total
            tl.store(scale_grad + lane * nodes + row, tl.sum(both, axis=1) / here, mask=valid)
    tl.store(out, total, mask=inside)


@triton.jit(do_not_specialize=COUNTS)
def _walk(
    chunk_row, chunk_begin, chunk_slot, index, order, values, x, own, loop, scale, image, out, samples, loop_grad,
    scale_grad, partial, width, step, nodes, positions, slots, batches, values_lane, scale_lane,
    x_batch, x_row, x_lane, own_batch, own_row, own_lane, image_batch, image_row, image_lane,
    out_batch, out_row, out_lane, partial_lane,
    HAS_ORDER: tl.constexpr, SUM: tl.constexpr, LONG: tl.constexpr, LANES: tl.constexpr, HEADS: tl.constexpr,
    SAMPLE: tl.constexpr, LOOP: tl.constexpr, SCALED: tl.constexpr, SCALE_GRAD: tl.constexpr,
    EXACT: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    chunk, batch, part = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2)
    member, channel = tl.arange(0, LANES).to(tl.int64), tl.arange(0, BLOCK_D)
    if HEADS > 1:  # lanes are heads of one replica
        first = part * LANES * step
        lane = batch * HEADS + part * LANES + member
        valid = part * LANES + member < HEADS
    else:  # lanes are replicas
        first = part * step
        batch *= LANES
        lane = batch + member
        valid = lane < batches
    inside = valid[:, None] & (channel < tl.minimum(step, width - first))[None, :]
    row = tl.load(chunk_row + chunk).to(tl.int64)
    start, end = tl.load(chunk_begin + chunk), tl.load(chunk_begin + chunk + 1)
    x += batch * x_batch + first
    lies = member[:, None] * x_lane + channel[None, :]
    total = tl.zeros([LANES, BLOCK_D], dtype=EXACT)
    mine, here = total, tl.sum(total, axis=1)
    if SAMPLE:
        own += batch * own_batch + first + row * own_row
        mine = tl.load(own + member[:, None] * own_lane + channel[None, :], mask=inside, other=0).to(EXACT)
    if SCALED:
        here = tl.load(scale + lane * scale_lane + row, mask=valid, other=1).to(EXACT)
    while start < end:
        position = start + tl.arange(0, BLOCK_E)
        there = position < end
        both = there[:, None] & valid[None, :]
        other = tl.load(index + position, mask=there, other=0).to(tl.int64)
        place = tl.load(order + position, mask=there, other=0) if HAS_ORDER else position
        rows = tl.load(
            x + other[:, None, None] * x_row + lies[None, :, :], mask=there[:, None, None] & inside[None, :, :], other=0
        ).to(EXACT)
        if SCALED:
            factor = tl.load(scale + lane[None, :] * scale_lane + other[:, None], mask=both, other=0).to(EXACT)
        if SAMPLE:
            dot = tl.sum(rows * mine[None, :, :], axis=2)
            if SCALED:
                dot *= factor * here[None, :]
            tl.store(samples + lane[None, :] * positions + place[:, None], dot, mask=both)
        if SUM:
            weight = tl.load(values + lane[None, :] * values_lane + place[:, None], mask=both, other=0).to(EXACT)
            if SCALED:
                weight *= factor
            total += tl.sum(weight[:, :, None] * rows, axis=0)
        start += BLOCK_E
    if SUM:
        slot = -1
        if LONG:
            slot = tl.load(chunk_slot + chunk)
        if slot >= 0:
            partial += (batch * slots + slot) * width + first
            tl.store(partial + member[:, None] * partial_lane + channel[None, :], total, mask=inside)
        else:
            image += batch * image_batch + first + row * image_row
            out += batch * out_batch + first + row * out_row
            _finish(
                total, here, mine, row, lane, valid, lies, inside, x + row * x_row, loop,
                image + member[:, None] * image_lane + channel[None, :],
                out + member[:, None] * out_lane + channel[None, :],
                loop_grad, scale_grad, nodes, SAMPLE, LOOP, SCALED, SCALE_GRAD,
            )  # fmt: skip


@triton.jit(do_not_specialize=COUNTS)
def _join(
    long_row, long_begin, x, own, loop, scale, image, out, loop_grad, scale_grad, partial, width, step, nodes, slots,
    scale_lane, x_batch, x_row, own_batch, own_row, image_batch, image_row, out_batch, out_row,
    HEADS: tl.constexpr, SAMPLE: tl.constexpr, LOOP: tl.constexpr, SCALED: tl.constexpr, SCALE_GRAD: tl.constexpr,
    EXACT: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Sum the chunks of every long row; each program handles one lane."""
    number, batch, part = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2)
    channel = part * step + tl.arange(0, BLOCK_D)[None, :]
    inside = channel < tl.minimum(part * step + step, width)
    lane = (batch * HEADS + part if HEADS > 1 else batch) + tl.arange(0, 1)
    valid = lane >= 0
    row = tl.load(long_row + number).to(tl.int64)
    start, end = tl.load(long_begin + number), tl.load(long_begin + number + 1)
    total = tl.zeros([1, BLOCK_D], dtype=EXACT)
    while start < end:
        slot = start + tl.arange(0, BLOCK_E)[:, None]
        place = (batch * slots + slot) * width + channel
        total += tl.sum(tl.load(partial + place, mask=(slot < end) & inside, other=0), axis=0)[None, :]
        start += BLOCK_E
    mine, here = total, tl.sum(total, axis=1)
    if SAMPLE:
        mine = tl.load(own + batch * own_batch + row * own_row + channel, mask=inside, other=0).to(EXACT)
    if SCALED:
        here = tl.load(scale + lane * scale_lane + row).to(EXACT)
    _finish(
        total, here, mine, row, lane, valid, channel, inside, x + batch * x_batch + row * x_row, loop,
        image + batch * image_batch + row * image_row + channel, out + batch * out_batch + row * out_row + channel,
        loop_grad, scale_grad, nodes, SAMPLE, LOOP, SCALED, SCALE_GRAD,
    )  # fmt: skip


@dataclass(frozen=True)
class Walked:
    """Results of one pass; None for those that were not requested."""

    sums: Tensor | None = None
    """Weighted sums, [B, rows, D]."""
    samples: Tensor | None = None
    """Dot products, [B · H, nnz]."""
    scale_grad: Tensor | None = None
    """Gradient for `scale`, [B, rows]."""
    loop_grad: Tensor | None = None
    """Gradient for `loop`, [B · H, rows]."""


def walk(
    side: Side,
    x: Tensor,
    *,
    values: Tensor | None = None,
    own: Tensor | None = None,
    loop: Tensor | None = None,
    scale: Tensor | None = None,
    image: Tensor | None = None,
    heads: int = 1,
) -> Walked:
    """Traverse the rows of a pattern once and compute what the arguments request.

    Args:
        side: The pattern, sorted by row or by column.
        x: Rows to gather, [B, cols, D].
        values: Weights [B · H, nnz]; requests weighted sums.
        own: Rows [B, rows, D]; requests dot products with the gathered rows.
        loop: Weights [B · H, rows] of self-loops, for a square pattern.
        scale: Factors [B, nodes], for a square pattern; they also add a self-loop to every row.
        image: The scaled sums of `own`, if x is their gradient; requests the gradient for `scale`.
        heads: Number of heads H into which the channels are split, each with its own values. With `loop`, a head has at
            most `WIDEST` channels.
    """
    width = x.shape[2]
    if own is not None and loop is None and width > WIDEST:
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
    loop = None if loop is None else loop.contiguous()
    sums = None if values is None else x.new_empty(batch, rows, width)
    samples = None if own is None else given(values).new_empty(batch * heads, positions)
    scale_grad = None if image is None else given(scale).new_empty(batch, rows)
    loop_grad = None if own is None or loop is None else torch.empty_like(loop)
    if not (rows and width and batch):
        return Walked(sums, *(None if t is None else t.zero_() for t in (samples, scale_grad, loop_grad)))
    exact = torch.float64 if x.dtype == torch.float64 else torch.float32
    chunks = side.chunks
    long = chunks.slots > 0 and values is not None
    partial = x.new_empty(batch, chunks.slots, width, dtype=exact) if long else x
    part = width // heads
    block_d = min(WIDEST if own is not None or heads > 1 else 256, triton.next_power_of_2(part))
    # Chosen by the graph and not by the batch: with another tile, sums would have another order.
    most = triton.next_power_of_2(heads) if heads > 1 else MOST_TOGETHER if chunks.row.numel() < ENOUGH else 1
    lanes = min(most, max(1, TOGETHER // block_d), MOST_TOGETHER)
    tile = TILE if lanes == 1 else 2 * TILE
    step, blocks = (part, heads) if heads > 1 else (block_d, triton.cdiv(width, block_d))
    grid = (batch, triton.cdiv(heads, lanes)) if heads > 1 else (triton.cdiv(batch, lanes), blocks)
    sizes = {"BLOCK_D": block_d, "EXACT": tl.float64 if exact == torch.float64 else tl.float32, "num_warps": 1}
    kinds = {
        "HEADS": heads,
        "SAMPLE": own is not None,
        "LOOP": loop is not None,
        "SCALED": scale is not None,
        "SCALE_GRAD": image is not None,
    }
    arrays = [strides(tensor) for tensor in (x, own, image, sums)]
    by_lane = [place for of in arrays for place in (*of, part if heads > 1 else of[0])]
    _walk[(chunks.row.numel(), *grid)](
        chunks.row, chunks.begin, chunks.slot, side.index, given(side.order), given(values), x, given(own), given(loop),
        given(scale), given(image), given(sums), given(samples), given(loop_grad), given(scale_grad), partial,
        width, step, rows, positions, chunks.slots, batch, strides(values)[0], strides(scale)[0], *by_lane,
        part if heads > 1 else chunks.slots * width,
        HAS_ORDER=side.order is not None, SUM=values is not None, LONG=long, LANES=lanes,
        BLOCK_E=max(2, min(32, tile // (lanes * block_d))), **kinds, **sizes,
    )  # fmt: skip
    if long:
        _join[(chunks.long_row.numel(), batch, blocks)](
            chunks.long_row, chunks.long_begin, x, given(own), given(loop), given(scale), given(image), given(sums),
            given(loop_grad), given(scale_grad), partial, width, step, rows, chunks.slots, strides(scale)[0],
            *(place for of in arrays for place in of), BLOCK_E=8, **kinds, **sizes,
        )  # fmt: skip
    return Walked(sums, samples, scale_grad, loop_grad)


def _in_slices(
    side: Side, x: Tensor, values: Tensor | None, own: Tensor, scale: Tensor | None, image: Tensor | None
) -> Walked:
    """`walk` for more than `WIDEST` channels: sums are concatenated, dot products added."""
    channels = [slice(start, start + WIDEST) for start in range(0, x.shape[2], WIDEST)]
    images = [None if image is None else image[..., some] for some in channels]
    parts = [
        walk(side, x[..., some], values=values, own=own[..., some], scale=scale, image=of_some)
        for some, of_some in zip(channels, images, strict=True)
    ]
    sums, samples, scale_grad = (
        [value for part in parts if (value := getattr(part, name)) is not None]
        for name in ("sums", "samples", "scale_grad")
    )
    return Walked(
        torch.cat(sums, dim=-1) if sums else None,
        torch.stack(samples).sum(0),
        torch.stack(scale_grad).sum(0) if scale_grad else None,
    )
