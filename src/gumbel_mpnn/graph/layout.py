"""Sparsity pattern of a matrix, sorted once by row and by column."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from gumbel_mpnn.util.errors import UserError

INT32_MAX = 2**31 - 1
LONGEST = 256
"""Largest number of positions in a chunk, so that no GPU program has to process a hub alone."""
BLOCK = 1024
"""Rows of a block, so that what a product reads of them stays in a processor's cache."""
TILINGS = 3
"""Number of tiled layouts cached: a training step with replicas, heads and shared parts needs as many."""


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
    """A pattern sorted by row, or by column, in the form that GPU kernels traverse."""

    offsets: Tensor
    """int32 [rows + 1], offset of each row in `index`."""
    index: Tensor
    """int32 [nnz], the column of each position (the row if sorted by column)."""
    order: Tensor | None
    """int64 [nnz], index of the value of each position; None if values are in this order."""

    @cached_property
    def chunks(self) -> Chunks:
        """The rows cut into chunks of bounded length."""
        return Chunks.of(self.offsets)


@dataclass(frozen=True, eq=False)
class Blocks:
    """A tall pattern cut into blocks of rows, each sorted by column, for products with the transposed matrix on a CPU.

    Sorted by column alone, every column reads rows from everywhere, which takes several times as long.
    """

    count: int
    offsets: Tensor
    """int32 [count · cols + 1], offset of each column of each block in `row`."""
    row: Tensor
    """int32 [nnz], the row of each position."""
    order: Tensor
    """int64 [nnz], index of the value of each position."""

    @classmethod
    def of(cls, layout: SparseLayout) -> Blocks:
        """Blocks of at least as many rows as there are columns: the products of all blocks take no more memory."""
        rows, cols = layout.shape
        size, row = max(BLOCK, cols), layout.row.long()
        count = -(-rows // size)
        place = row.div(size, rounding_mode="floor") * cols + layout.col
        order = torch.argsort(place * rows + row)
        return cls(count, _offsets(place, count * cols), row[order].int(), order)


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
    _tiles: dict[int, SparseLayout] = field(default_factory=dict, repr=False)

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
    def blocks(self) -> Blocks | None:
        """The pattern in blocks of rows, for a large one with many positions in each column of a block, else None."""
        rows, cols = self.shape
        many = self.nnz >= 8 * cols * (rows / max(BLOCK, cols, 1))
        return Blocks.of(self) if many and rows >= 4 * BLOCK else None

    @cached_property
    def by_row(self) -> Side:
        """The pattern sorted by row."""
        return Side(self.rowptr, self.col, None)

    @cached_property
    def by_col(self) -> Side:
        """The pattern sorted by column."""
        return Side(self.colptr, self.row_by_col, self.to_transposed)

    def positions_in(self, rows: Tensor) -> Tensor:
        """Positions in some rows, row by row, int64."""
        begin = self.rowptr[rows].long()
        count = self.rowptr[rows + 1].long() - begin
        first = (count.cumsum(0) - count).repeat_interleave(count)
        return torch.arange(len(first), device=rows.device) - first + begin.repeat_interleave(count)

    def tiled(self, batch: int) -> SparseLayout:
        """Block-diagonal layout of `batch` copies, so that one product computes all of them."""
        if batch == 1:
            return self
        if batch not in self._tiles:
            if len(self._tiles) == TILINGS:
                self._tiles.pop(next(iter(self._tiles)))
            self._tiles[batch] = self._tile(batch)
        return self._tiles[batch]

    def _tile(self, batch: int) -> SparseLayout:
        (rows, cols), nnz = self.shape, self.nnz
        if batch * max(nnz, rows, cols) > INT32_MAX:
            raise UserError(f"{batch} copies of {nnz} positions exceed 32-bit indices; use fewer replicas at once")
        return SparseLayout(
            rowptr=_tile_offsets(self.rowptr, batch),
            col=_tile_indices(self.col, batch, cols),
            colptr=_tile_offsets(self.colptr, batch),
            row_by_col=_tile_indices(self.row_by_col, batch, rows),
            to_transposed=_tile_indices(self.to_transposed, batch, nnz),
        )

    def to(self, device: torch.device | str) -> SparseLayout:
        """Copy the layout to another device."""
        if self.rowptr.device == torch.device(device):
            return self
        rowptr, col, colptr = self.rowptr.to(device), self.col.to(device), self.colptr.to(device)
        return SparseLayout(rowptr, col, colptr, self.row_by_col.to(device), self.to_transposed.to(device))


def _offsets(indices: Tensor, size: int) -> Tensor:
    counts = torch.bincount(indices, minlength=size)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()


def _tile_indices(indices: Tensor, batch: int, step: int) -> Tensor:
    starts = torch.arange(batch, device=indices.device, dtype=indices.dtype) * step
    return (indices + starts[:, None]).view(-1)


def _tile_offsets(offsets: Tensor, batch: int) -> Tensor:
    begins = _tile_indices(offsets[:-1], batch, int(offsets[-1]))
    return torch.cat([begins, offsets[-1:] * batch])
