"""Sparsity pattern of a matrix, sorted once by row and by column."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import torch
from torch import Tensor

from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.tensors import TensorCache

INT32_MAX = 2**31 - 1
LONGEST = 256
"""Largest number of positions in a chunk, so that no GPU program has to process a hub alone."""
BLOCK = 1024
"""Rows of a block, so that what a product reads of them stays in a processor's cache."""


@dataclass(frozen=True, eq=False)
class Chunks:
    """Rows cut into chunks for GPU programs; a row longer than `LONGEST` has several consecutive chunks."""

    row: Tensor
    """int32 [C], the row of each chunk."""
    begin: Tensor
    """int32 [C + 1], offset of each chunk among the positions."""
    slot: Tensor
    """int32 [C], index of the partial sum of a chunk; -1 if its row has only one chunk."""
    long_row: Tensor
    """int32 [L], the rows with several chunks."""
    long_begin: Tensor
    """int32 [L + 1], offset of the partial sums of each such row."""
    slots: int
    """Number of partial sums."""

    @classmethod
    def of(cls, offsets: Tensor) -> Chunks:
        """Chunks of the rows with the given `offsets`, int32 [rows + 1]."""
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


@dataclass(frozen=True, eq=False)
class Side:
    """A pattern sorted by row, or the transposed pattern: sorted by column."""

    offsets: Tensor
    """int32 [rows + 1], offset of each row in `index`."""
    index: Tensor
    """int32 [nnz], the column of each position (the row if sorted by column)."""
    order: Tensor | None
    """int64 [nnz], index of the value of each position; None if values are in this order."""
    columns: int

    @cached_property
    def chunks(self) -> Chunks:
        """The rows cut into chunks of bounded length."""
        return Chunks.of(self.offsets)

    def tiled(self, batch: int) -> Side:
        """Block-diagonal pattern of `batch` copies for values in its own order, so that one product computes all."""
        return self if batch == 1 else _tilings.get(self, [self.offsets], lambda: self._tile(batch), batch)

    def _tile(self, batch: int) -> Side:
        offsets = torch.cat([_copies(self.offsets[:-1], batch, self.index.numel()), self.offsets[-1:] * batch])
        return Side(offsets, _copies(self.index, batch, self.columns), None, batch * self.columns)


_tilings: TensorCache[Side] = TensorCache()


@dataclass(frozen=True, eq=False)
class SparseLayout:
    """Positions of the non-zeros of a `num_rows` × `num_cols` matrix, sorted by row (CSR) and by column (CSC)."""

    rowptr: Tensor
    """int32 [num_rows + 1], offset of each row in `col`."""
    col: Tensor
    """int32 [nnz], the column of each position."""
    colptr: Tensor
    """int32 [num_cols + 1], offset of each column in `row_by_col`."""
    row_by_col: Tensor
    """int32 [nnz], the row of each position, sorted by column."""
    to_transposed: Tensor
    """int64 [nnz], permutation: `values[to_transposed]` are the values sorted by column."""

    @classmethod
    def build(cls, row: Tensor, col: Tensor, num_rows: int, num_cols: int) -> SparseLayout:
        """Build the layout from distinct positions sorted by `(row, col)`."""
        if max(len(row), num_rows, num_cols) > INT32_MAX:
            raise UserError(f"{len(row)} positions of {num_rows} rows and {num_cols} columns exceed 32-bit indices")
        to_transposed = torch.argsort(col * num_rows + row)
        return cls(
            rowptr=_offsets(row, num_rows),
            col=col.int(),
            colptr=_offsets(col, num_cols),
            row_by_col=row[to_transposed].int(),
            to_transposed=to_transposed,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.rowptr.numel() - 1, self.colptr.numel() - 1

    @property
    def nnz(self) -> int:
        """Number of positions."""
        return self.col.numel()

    @cached_property
    def row(self) -> Tensor:
        """int32 [nnz], the row of each position."""
        rows = torch.arange(self.shape[0], device=self.rowptr.device, dtype=torch.int32)
        return torch.repeat_interleave(rows, self.rowptr.diff(), output_size=self.nnz)

    @cached_property
    def by_row(self) -> Side:
        """The pattern sorted by row."""
        return Side(self.rowptr, self.col, None, self.shape[1])

    @cached_property
    def by_col(self) -> Side:
        """The pattern sorted by column."""
        return Side(self.colptr, self.row_by_col, self.to_transposed, self.shape[0])

    @cached_property
    def blocks(self) -> Side | None:
        """A tall pattern in blocks of rows, each sorted by column, so that a CPU reads rows from nearby; else None."""
        rows, cols = self.shape
        size = max(BLOCK, cols)
        if rows < 4 * BLOCK or self.nnz < 8 * cols * rows / size:
            return None
        row = self.row.long()
        place = row.div(size, rounding_mode="floor") * cols + self.col
        order = torch.argsort(place * rows + row)
        return Side(_offsets(place, -(-rows // size) * cols), row[order].int(), order, rows)

    def positions_in(self, rows: Tensor) -> Tensor:
        """Positions in some rows, row by row, int64."""
        begin = self.rowptr[rows].long()
        count = self.rowptr[rows + 1].long() - begin
        first = (count.cumsum(0) - count).repeat_interleave(count)
        return torch.arange(len(first), device=rows.device) - first + begin.repeat_interleave(count)

    def to(self, device: torch.device | str) -> SparseLayout:
        """Copy the layout to another device."""
        if self.rowptr.device == torch.device(device):
            return self
        return SparseLayout(*(getattr(self, field.name).to(device) for field in fields(self)))


def _offsets(indices: Tensor, size: int) -> Tensor:
    counts = torch.bincount(indices, minlength=size)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()


def _copies(indices: Tensor, batch: int, step: int) -> Tensor:
    """`batch` copies of the indices, each larger by `step` than the one before."""
    starts = torch.arange(batch, device=indices.device, dtype=indices.dtype) * step
    return (indices + starts[:, None]).view(-1)
