"""Rows of a sparse matrix cut into chunks of bounded length, so that no program on a GPU walks a hub alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LONGEST = 256
"""Positions in a chunk, at the most."""


@dataclass(frozen=True, eq=False)
class Chunks:
    """Every row in one chunk or, where it is longer than `LONGEST`, in several that follow each other."""

    row: Tensor
    """int32 [C], the row of each chunk."""
    begin: Tensor
    """int32 [C + 1], where each chunk begins among the positions."""
    slot: Tensor
    """int32 [C], where the sum of a chunk waits to be added to those of the same row; -1 for a row in one chunk."""
    long_row: Tensor
    """int32 [L], the rows in several chunks."""
    long_begin: Tensor
    """int32 [L + 1], the first slot of each."""
    slots: int

    @classmethod
    def of(cls, offsets: Tensor) -> Chunks:
        """Chunks of the rows that begin at `offsets`, int32 [rows + 1]."""
        rows = torch.arange(offsets.numel() - 1, device=offsets.device)
        pieces = (offsets.diff().long() + LONGEST - 1).div(LONGEST, rounding_mode="floor").clamp(min=1)
        row = torch.repeat_interleave(rows, pieces)
        nth = torch.arange(row.numel(), device=row.device) - (pieces.cumsum(0) - pieces)[row]
        several = pieces > 1
        waits = several[row]
        slot = torch.where(waits, waits.cumsum(0) - 1, -1)
        long_begin = torch.cat([pieces.new_zeros(1), pieces[several].cumsum(0)])
        return cls(
            row=row.int(),
            begin=torch.cat([offsets[row] + LONGEST * nth, offsets[-1:]]).int(),
            slot=slot.int(),
            long_row=rows[several].int(),
            long_begin=long_begin.int(),
            slots=int(long_begin[-1]),
        )
