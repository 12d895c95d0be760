"""Kernels that walk over all pairs of rows and columns on a GPU and keep next to nothing of them.

A tile of scores, ROWS × COLS, is made by the tensor cores from 16-bit numbers and never leaves the registers. Its
columns are taken together in LANES lanes, those with the same number modulo LANES, and only the largest score of each
lane is looked at. A thread holds whole lanes of a row: one operation for each score, nothing exchanged between threads.

    lane_maxima   the largest of each lane over many tiles, [rows, groups]: how good the best columns are at least
    lanes_above   the lanes with a score that may reach the row's floor, as a list: where the best columns lie at most
    dots          given pairs, in 64 bits

What these scores may be wrong by, and which floors are safe, is the concern of `screen`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor


@dataclass(frozen=True)
class Tiling:
    """How the work is cut up, which changes no result; sizes are powers of two."""

    rows: int = 128
    cols: int = 128
    lanes: int = 8
    """With fewer than 8 the tensor cores' layout puts a lane into several threads."""
    depth: int = 64
    """Channels at a time where there are more than `whole`."""
    whole: int = 128
    """Up to so many channels a program keeps its rows in shared memory."""
    warps: int = 8
    stages: int = 2

    @property
    def members(self) -> int:
        """Columns of a tile that share a lane."""
        return self.cols // self.lanes

    def width(self, channels: int) -> int:
        """Channels with those that must be filled up with zeros."""
        if channels <= self.whole:
            return max(int(triton.next_power_of_2(channels)), 16)
        return -(-channels // self.depth) * self.depth


TILING = Tiling()
PARTS = 16
"""Programs that share the columns of a row in `lanes_above`: enough for an even load."""
DOTS = 16
"""Pairs of a program in `dots`."""


@triton.jit
def _first_channels(x, row, WIDTH: tl.constexpr, DEPTH: tl.constexpr):
    return tl.load(x + row[:, None] * WIDTH + tl.arange(0, DEPTH)[None, :])


@triton.jit
def _best_of_lanes(
    own, rows, cols, row, tile,
    WIDTH: tl.constexpr, DEPTH: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The largest score of each lane of one tile, [ROWS, LANES]; `own` are the first channels of the rows."""
    column = (tile * COLS + tl.arange(0, COLS)).to(tl.int64)
    scores = tl.dot(own, tl.trans(_first_channels(cols, column, WIDTH, DEPTH)))
    for start in range(DEPTH, WIDTH, DEPTH):
        mine = _first_channels(rows + start, row, WIDTH, DEPTH)
        scores = tl.dot(mine, tl.trans(_first_channels(cols + start, column, WIDTH, DEPTH)), scores)
    return tl.max(tl.reshape(scores, (ROWS, COLS // LANES, LANES)), axis=1)


@triton.jit
def _lane_maxima(
    rows, cols, slack, out, tiles, per_part,
    WIDTH: tl.constexpr, DEPTH: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    part = tl.program_id(1)
    own = _first_channels(rows, row, WIDTH, DEPTH)
    best = tl.full([ROWS, LANES], float("-inf"), dtype=tl.float32)
    for tile in range(part * per_part, tl.minimum((part + 1) * per_part, tiles)):
        here = _best_of_lanes(own, rows, cols, row, tile, WIDTH, DEPTH, ROWS, COLS, LANES)
        best = tl.maximum(best, here - tl.load(slack + tile))
    group = part * LANES + tl.arange(0, LANES)
    tl.store(out + row[:, None] * (tl.num_programs(1) * LANES) + group[None, :], best)


@triton.jit
def _lanes_above(
    rows, cols, slack, floor, found, tiles, per_part, capacity, PAIRS: tl.constexpr,
    WIDTH: tl.constexpr, DEPTH: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    lane = tl.arange(0, LANES)
    begin = tl.program_id(1) * per_part
    end = tl.minimum(begin + per_part, tiles)
    if PAIRS:
        begin = tl.maximum(begin, tl.program_id(0) * ROWS // COLS)
    own = _first_channels(rows, row, WIDTH, DEPTH)
    least = tl.load(floor + row)
    code = row[:, None] * (tiles * LANES) + lane[None, :]
    # A list begins with its length. In an array of their own, lengths would lie in other threads than the lists.
    length = found + (0 if PAIRS else row[:, None] * (capacity + 1)) + tl.zeros_like(code)
    for tile in range(begin, end):
        here = _best_of_lanes(own, rows, cols, row, tile, WIDTH, DEPTH, ROWS, COLS, LANES)
        good = here + tl.load(slack + tile) >= least[:, None]
        place = tl.atomic_add(length, 1, mask=good, sem="relaxed")
        tl.store(length + 1 + place, code + tile * LANES, mask=good & (place < capacity))


@triton.jit
def _dots(
    x, row, col, out, entries, nodes, members, step,
    WIDTH: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    entry = tl.program_id(0).to(tl.int64) * BLOCK_E + tl.arange(0, BLOCK_E)
    there = entry < entries
    first, second = tl.load(row + entry // members, mask=there), tl.load(col + entry // members, mask=there)
    second += entry % members * step
    there_too = there & (second < nodes)
    total = tl.zeros([BLOCK_E], dtype=tl.float64)
    for start in range(0, WIDTH, BLOCK_D):
        channel = start + tl.arange(0, BLOCK_D)
        inside = there_too[:, None] & (channel < WIDTH)[None, :]
        a = tl.load(x + first[:, None] * WIDTH + channel[None, :], mask=inside, other=0).to(tl.float64)
        b = tl.load(x + second[:, None] * WIDTH + channel[None, :], mask=inside, other=0).to(tl.float64)
        total += tl.sum(a * b, axis=1)
    tl.store(out + entry, tl.where(there_too, total.to(tl.float32), float("-inf")), mask=there)


def lane_maxima(rows: Tensor, cols: Tensor, slack: Tensor, tiles: int, parts: int) -> Tensor:
    """The largest score, less `slack`, of each row among the columns of each group, float32 [rows, parts · LANES].

    Looks at the first `tiles` tiles of columns, in `parts` parts of consecutive ones.

    Args:
        rows: float16 [rows, width], a multiple of ROWS and a width that `Tiling.width` gives.
        cols: float16 [columns, width], a multiple of COLS.
        slack: float32 [tiles], taken off each score of a tile.
        tiles: How many are looked at.
        parts: Groups are the lanes of the tiles of a part.
    """
    out = torch.empty(rows.shape[0], parts * TILING.lanes, device=rows.device)
    _lane_maxima[(rows.shape[0] // TILING.rows, parts)](
        rows, cols, slack, out, tiles, triton.cdiv(tiles, parts), **_sizes(rows)
    )
    return out


def group_of(column: Tensor, tiles: int, parts: int) -> tuple[Tensor, Tensor]:
    """The group of each column in `lane_maxima`, int64 [K], and whether its tile is looked at, bool [K]."""
    tile = column // TILING.cols
    group = tile // triton.cdiv(tiles, parts) * TILING.lanes + column % TILING.lanes
    return group, tile < tiles


def lanes_above(
    rows: Tensor, cols: Tensor, slack: Tensor, floor: Tensor, capacity: int, *, pairs: bool
) -> tuple[Tensor, Tensor]:
    """The lanes where a score and `slack` together are at least `floor`, in no order, and how many there are.

    A lane is `(row · tiles + tile) · LANES + lane`. Lists hold the first `capacity` that came: the count says more.

    Args:
        rows: float16 [rows, width], as in `lane_maxima`.
        cols: float16 [columns, width].
        slack: float32 [tiles].
        floor: float32 [rows].
        capacity: Of each list.
        pairs: One list for all rows, without tiles whose columns are all before the rows of the program; else each row
            has a list of its own.

    Returns:
        Lanes int64 [lists, capacity] and counts int64 [lists].
    """
    lists, tiles = 1 if pairs else rows.shape[0], slack.numel()
    found = torch.empty(lists, 1 + capacity, dtype=torch.int64, device=rows.device)
    found[:, 0] = 0
    parts = min(PARTS, tiles)
    _lanes_above[(rows.shape[0] // TILING.rows, parts)](
        rows, cols, slack, floor.contiguous(), found, tiles, triton.cdiv(tiles, parts), capacity,
        PAIRS=pairs, **_sizes(rows),
    )  # fmt: skip
    return found[:, 1:], found[:, 0]


def dots(x: Tensor, row: Tensor, col: Tensor, members: int = 1, step: int = 0) -> Tensor:
    """Dot products of rows of x [N, D], made in 64 bits and rounded to 32 once, float32 [K, members].

    Entry (e, m) is for `row[e]` and `col[e] + m · step`, −∞ where there is no such row of x.
    """
    out = torch.empty(row.numel(), members, device=x.device)
    if out.numel():
        _dots[(triton.cdiv(out.numel(), DOTS),)](
            x, row, col, out, out.numel(), x.shape[0], members, step,
            WIDTH=x.shape[1], BLOCK_E=DOTS, BLOCK_D=64, num_warps=2,
        )  # fmt: skip
    return out


def _sizes(rows: Tensor) -> dict[str, int | bool]:
    width = rows.shape[1]
    return {
        "WIDTH": width, "DEPTH": width if width <= TILING.whole else TILING.depth, "ROWS": TILING.rows,
        "COLS": TILING.cols, "LANES": TILING.lanes, "num_warps": TILING.warps, "num_stages": TILING.stages,
    }  # fmt: skip
