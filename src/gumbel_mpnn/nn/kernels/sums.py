"""Sums over nodes or pairs on a GPU, in an order that does not depend on the number of replicas.

torch shares a sum between programs by the number of its results. Here every program sums a chunk of fixed length.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE, TILES = 2048, 4
"""Size of a tile of rows times columns, and how many tiles one program sums."""
WIDEST = 64
"""Maximum number of columns of a tile."""


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
