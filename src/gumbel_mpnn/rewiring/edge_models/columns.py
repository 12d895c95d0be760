"""A feature matrix, dense or sparse, that is read in dense blocks of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gumbel_mpnn.nn import SparseFeatures

NUMBERS_AT_ONCE = 2**21
"""Numbers of a block, for one replica: 8 MiB."""


def columns_at_once(nodes: int, columns: int) -> int:
    """Number of columns of a block; the same for any number of replicas, so that their sums do not depend on it."""
    return max(1, min(columns, NUMBERS_AT_ONCE // max(nodes, 1)))


@dataclass(frozen=True, eq=False)
class Columns:
    """Features [N, F] or, if dense, [R, N, F] in blocks of columns; positions of non-zeros are sorted by block once."""

    x: Tensor | SparseFeatures
    widths: list[int]
    """Number of columns of each block."""
    places: Sequence[Tensor]
    """Of sparse features: flat positions of the non-zeros in each block, int64."""
    values: Sequence[Tensor]
    """Of sparse features: values of these non-zeros."""

    @classmethod
    def of(cls, x: Tensor | SparseFeatures) -> Columns:
        """Prepare the blocks."""
        nodes, count = x.shape[-2:]
        step = columns_at_once(nodes, count)
        widths = [min(step, count - first) for first in range(0, count, step)]
        if isinstance(x, Tensor):
            return cls(x, widths, (), ())
        row, col, order = x.layout.row_by_col.long(), x.layout.col.long(), x.layout.to_transposed
        col = col[order]
        sizes = torch.bincount(col // step, minlength=len(widths)).tolist()
        places = row * (count - col // step * step).clamp(max=step) + col % step
        return cls(x, widths, places.split(sizes), x.values[order].split(sizes))

    def __getitem__(self, block: int) -> Tensor:
        """Columns of one block as a dense array, [N, width] or [R, N, width]."""
        width = self.widths[block]
        if isinstance(self.x, Tensor):
            return self.x.narrow(-1, sum(self.widths[:block]), width)
        values, nodes = self.values[block], self.x.shape[0]
        return values.new_zeros(nodes * width).scatter(0, self.places[block], values).view(nodes, width)
