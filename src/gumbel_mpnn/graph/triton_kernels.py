"""The two sparse products on a GPU: one program for each row, one for each block of positions.

Every output is summed by one program in a fixed order, so results are equal to the last bit from run to run, which the
sparse products that come with torch do not promise. Batches share one pattern: no tiled copies of the indices.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE = 1024
"""Numbers that one warp has under way at once; with more warps to a row the same kernel was up to 7 times slower."""


@triton.jit
def _csr_product(
    rowptr, col, order, values, x, out, width, values_stride, x_batch, x_row, out_batch,
    HAS_ORDER: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    row, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    inside = channel < width
    begin, end = tl.load(rowptr + row), tl.load(rowptr + row + 1)
    total = tl.zeros([BLOCK_D], dtype=out.dtype.element_ty)
    start = begin
    while start < end:
        edge = start + tl.arange(0, BLOCK_E)
        there = edge < end
        source = tl.load(col + edge, mask=there, other=0).to(tl.int64)
        place = tl.load(order + edge, mask=there, other=0) if HAS_ORDER else edge
        weight = tl.load(values + batch * values_stride + place, mask=there, other=0)
        rows = tl.load(
            x + batch * x_batch + source[:, None] * x_row + channel[None, :],
            mask=there[:, None] & inside[None, :],
            other=0,
        )
        total += tl.sum(weight[:, None] * rows, axis=0)
        start += BLOCK_E
    tl.store(out + batch * out_batch + row.to(tl.int64) * width + channel, total, mask=inside)


@triton.jit
def _sampled_product(
    row, col, a, b, out, count, width, a_batch, a_row, b_batch, b_row,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    edge, batch = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E), tl.program_id(1).to(tl.int64)
    there = edge < count
    left = tl.load(row + edge, mask=there, other=0).to(tl.int64)
    right = tl.load(col + edge, mask=there, other=0).to(tl.int64)
    total = tl.zeros([BLOCK_E], dtype=out.dtype.element_ty)
    start = 0
    while start < width:
        channel = start + tl.arange(0, BLOCK_D)
        inside = there[:, None] & (channel < width)[None, :]
        lefts = tl.load(a + batch * a_batch + left[:, None] * a_row + channel[None, :], mask=inside, other=0)
        rights = tl.load(b + batch * b_batch + right[:, None] * b_row + channel[None, :], mask=inside, other=0)
        total += tl.sum(lefts * rights, axis=1)
        start += BLOCK_D
    tl.store(out + batch * count + edge, total, mask=there)


def csr_product(rowptr: Tensor, col: Tensor, values: Tensor, x: Tensor, order: Tensor | None = None) -> Tensor:
    """Rows `Σ values[b, order[e]] · x[b, col[e]]`: values [B, nnz] (rows may be shared), x [B, cols, D]."""
    x = x if x.stride(-1) == 1 else x.contiguous()
    values = values if values.stride(-1) == 1 else values.contiguous()
    batch, _, width = x.shape
    rows = rowptr.numel() - 1
    out = torch.empty(batch, rows, width, dtype=x.dtype, device=x.device)
    block_d = min(256, triton.next_power_of_2(width))
    block_e = max(4, min(32, TILE // block_d))
    _csr_product[(rows, batch, triton.cdiv(width, block_d))](
        rowptr, col, col if order is None else order, values, x, out, width,
        values.stride(0), x.stride(0), x.stride(1), out.stride(0),
        HAS_ORDER=order is not None, BLOCK_E=block_e, BLOCK_D=block_d, num_warps=1,
    )  # fmt: skip
    return out


def sampled_product(row: Tensor, col: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Dot products `a[b, row[e]] · b[b, col[e]]`, [B, nnz]."""
    a, b = (t if t.stride(-1) == 1 else t.contiguous() for t in (a, b))
    batch, _, width = a.shape
    out = torch.empty(batch, row.numel(), dtype=a.dtype, device=a.device)
    block_d = min(32, triton.next_power_of_2(width))
    block_e = max(16, min(128, TILE // block_d))
    _sampled_product[(triton.cdiv(row.numel(), block_e), batch)](
        row, col, a, b, out, row.numel(), width, a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        BLOCK_E=block_e, BLOCK_D=block_d, num_warps=1,
    )  # fmt: skip
    return out
