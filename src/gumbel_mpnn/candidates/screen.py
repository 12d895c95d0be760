"""Similarities of all pairs as a GPU's tensor cores make them, with a bound of what they are wrong by.

Tensor cores multiply 16-bit floats more than ten times as fast as a GPU multiplies 32-bit ones, and wrong in the fourth
digit. That is enough to rule out nearly all pairs: those whose similarity plus the bound stays below what is known to
be reached. Only the rest are looked at again, exactly. So the result is exact; the approximation decides about time.

Exactly means here: by the dot product of the float32 embeddings, made in float64 and then rounded to float32; equal
numbers are ties. The chunked searches (`nearest`, `closest_pairs`) add up in float32, in an order that the library
chooses, and may be wrong by D · 2⁻²⁴ · |x_i| |x_j|. Both find the same unless similarities differ by less than that;
where every sum of products is a float32 number (dot products of counts), they always do, ties and all.

The bound. Let s be the power of two that makes all numbers at most 1, u = x_i / |x_i|, and let r and c be the 16-bit
roundings of u and s x_j. The tensor cores give a number t for u · s x_j, the similarity in units of |x_i| / s, and

    |u · s x_j - t|  ≤  |u - r| |s x_j|  +  |r| |s x_j - c|  +  γ |r| |c|

by the inequality of Cauchy and Schwarz. |u - r| and |s x_j - c| are not estimated but measured, so features that 16
bits hold exactly have no rounding error at all. γ is for the sum of D products inside the tensor core. Products are
exact, and no summand or running sum exceeds Σ |r_k c_k| ≤ |r| |c|. With at least four products to a step, at most
5/4 · D numbers are cut off and D/4 sums rounded. Each loses no more than 2⁻²³ |r| |c| if a core keeps the bits of a
float32 below its largest summand: experiments with such devices say so, no manual does, and tests/gpu checks it.
Together that is less than D · 2⁻²². Eight such units more pay for the roundings of the comparisons themselves, and
2⁻¹⁴⁸ in units of the shortest row for float32's least numbers: similarities that fall below them are ties.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn.candidates.similarity import memory
from gumbel_mpnn.graph.kernels import import_kernels

KERNELS = "gumbel_mpnn.candidates.triton_similarity"
SMALLEST = 16_384
"""Below so many nodes the chunked search takes milliseconds too."""


@dataclass(frozen=True, eq=False)
class Screen:
    """The embeddings of one graph, in 32 bits and, with their bounds, in 16."""

    kernels: ModuleType
    x: Tensor
    """float32 [N, D], as given."""
    unit: Tensor
    """float64 [N]: a product of a 16-bit row and column times this is a similarity; 1 for a zero vector."""
    rows: Tensor
    """float16 [N and more, width], of length 1; filled up with zeros to whole tiles."""
    cols: Tensor
    """float16 [N and more, width], times a power of two so that none overflows."""
    slack: Tensor
    """float32 [N]: what a product of a row and this column may be wrong by."""
    tile_slack: Tensor
    """float32 [tiles], the largest of each tile of columns."""

    @classmethod
    def of(cls, x: Tensor, kernels: ModuleType) -> Screen:
        """The screen of embeddings float32 [N, D]."""
        tiling = kernels.TILING
        nodes, width = x.shape[0], tiling.width(x.shape[1])
        scale = math.ldexp(1.0, -math.frexp(float(x.abs().max()))[1])
        rows = torch.zeros(_whole(nodes, tiling.rows), width, dtype=torch.float16, device=x.device)
        cols = torch.zeros(_whole(nodes, tiling.cols), width, dtype=torch.float16, device=x.device)
        length, wrong = x.new_empty(2, nodes, dtype=torch.float64)
        worst = x.new_zeros((), dtype=torch.float64)
        for start in range(0, nodes, step := max(memory(x.device) // (32 * x.shape[1]), 1)):
            part = slice(start, min(start + step, nodes))
            exact = x[part].double().mul_(scale)
            length[part], wrong[part] = _norm(exact), _rounded_into(cols[part], exact)
            exact /= torch.where(length[part] > 0, length[part], 1)[:, None]
            worst = torch.maximum(worst, _rounded_into(rows[part], exact).max())
        unit = torch.where(length > 0, length / scale**2, 1)
        gamma = (width + 8) * 2.0**-22
        longest = 1 + worst
        slack = (worst + gamma * longest) * length + longest * (1 + gamma) * wrong + 2.0**-148 / unit.min()
        slack = slack.float() * (1 + 2.0**-20)
        tile_slack = F.pad(slack, (0, cols.shape[0] - nodes)).view(-1, tiling.cols).amax(dim=1)
        return cls(kernels, x.contiguous(), unit, rows, cols, slack, tile_slack)

    def tiles_of(self, rows: range) -> Tensor:
        """The 16-bit rows of some nodes, from the beginning of a tile on, with those that fill up the last tile."""
        return self.rows[rows.start : rows.start + _whole(len(rows), self.kernels.TILING.rows)]

    def lanes_above(self, rows: range, floor: Tensor, capacity: int, *, pairs: bool = False) -> tuple[Tensor, Tensor]:
        """The lanes of `rows` with a similarity that may reach `floor` float32 [rows], in units of the row.

        Either `capacity` for each row, or, for `pairs` (a row and a column after it), so many in all.
        """
        some = self.tiles_of(rows)
        floor = F.pad(floor, (0, some.shape[0] - len(rows)), value=torch.inf)
        lanes, count = self.kernels.lanes_above(some, self.cols, self.tile_slack, floor, capacity, pairs=pairs)
        return (lanes, count) if pairs else (lanes[: len(rows)], count[: len(rows)])

    def exact(self, lanes: Tensor, floor: Tensor, first_row: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs of `lanes` whose similarity is at least the row's floor: row and column, int64, and score [K].

        Args:
            lanes: As `lanes_above` gives them, int64 [H], rows counted from `first_row` on.
            floor: float32 [rows].
            first_row: 0 unless only some rows were looked at.
        """
        tiling = self.kernels.TILING
        per_row = self.tile_slack.numel() * tiling.lanes
        found = []
        for part in lanes.split(max(memory(self.x.device) // (64 + 8 * tiling.members), 1)):
            row, place = part // per_row, part % per_row
            col = place // tiling.lanes * tiling.cols + place % tiling.lanes
            score = self.kernels.dots(self.x, row + first_row, col, tiling.members, tiling.lanes)
            lane, member = (score >= floor[row, None]).nonzero().T
            found.append((row[lane] + first_row, col[lane] + member * tiling.lanes, score[lane, member]))
        row, col, score = (torch.cat(parts) for parts in zip(*found, strict=True))
        return row, col, score


def kernels_for(x: Tensor, wanted: int) -> ModuleType | None:
    """Our kernels where `x` [N, D] lies on a GPU that Triton serves and a screen pays for `wanted` of each node."""
    pays = x.is_cuda and x.shape[0] >= max(SMALLEST, 1024 * wanted)
    return import_kernels(KERNELS) if pays else None


def _whole(count: int, size: int) -> int:
    return -(-count // size) * size


def _norm(x: Tensor) -> Tensor:
    out: Tensor = torch.linalg.vector_norm(x, dim=1)
    return out


def _rounded_into(out: Tensor, exact: Tensor) -> Tensor:
    """Write `exact` [n, D] into the first channels of `out`; what its rows are wrong by there, as lengths [n]."""
    out = out[:, : exact.shape[1]]
    out.copy_(exact)
    return _norm(exact - out)
