"""The positions of a sparse matrix's non-zeros: sorted once, both ways."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.graph.chunks import Chunks

INT32_MAX = 2**31 - 1
TILINGS = 3
"""Numbers of copies that are kept laid out: a step with replicas, heads and shared parts uses as many."""


@dataclass(frozen=True, eq=False)
class Side:
    """A pattern as a GPU walks along it: row by row, or column by column."""

    offsets: Tensor
    """int32 [rows + 1], where each row begins in `index`."""
    index: Tensor
    """int32 [nnz], the other end of each position."""
    order: Tensor | None
    """int64 [nnz], where the values of the positions lie; None for one after the other."""

    @cached_property
    def chunks(self) -> Chunks:
        """The rows, long ones cut up."""
        return Chunks.of(self.offsets)


@dataclass(frozen=True, eq=False)
class SparseLayout:
    """Positions of the non-zeros of a `num_rows` × `num_cols` matrix, row by row and column by column."""

    rowptr: Tensor
    """int32 [num_rows + 1], where each row begins in `col`."""
    col: Tensor
    """int32 [nnz]."""
    colptr: Tensor
    """int32 [num_cols + 1], the same for the transposed matrix."""
    row_by_col: Tensor
    """int32 [nnz], rows in the order of the transposed matrix."""
    to_transposed: Tensor
    """int64 [nnz]: `values[to_transposed]` are the values in the order of the transposed matrix."""
    _tiles: dict[int, SparseLayout] = field(default_factory=dict, repr=False)

    @classmethod
    def build(cls, row: Tensor, col: Tensor, num_rows: int, num_cols: int) -> SparseLayout:
        """Layout of positions that are sorted by `(row, col)` and occur once each."""
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
        """The pattern row by row."""
        return Side(self.rowptr, self.col, None)

    @cached_property
    def by_col(self) -> Side:
        """The pattern column by column."""
        return Side(self.colptr, self.row_by_col, self.to_transposed)

    def tiled(self, batch: int) -> SparseLayout:
        """`batch` copies along the diagonal, so that one product serves all of them."""
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
        """The same layout on another device."""
        if self.rowptr.device == torch.device(device):
            return self
        return SparseLayout(
            rowptr=self.rowptr.to(device),
            col=self.col.to(device),
            colptr=self.colptr.to(device),
            row_by_col=self.row_by_col.to(device),
            to_transposed=self.to_transposed.to(device),
        )


def _offsets(indices: Tensor, size: int) -> Tensor:
    counts = torch.bincount(indices, minlength=size)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()


def _tile_indices(indices: Tensor, batch: int, step: int) -> Tensor:
    starts = torch.arange(batch, device=indices.device, dtype=indices.dtype) * step
    return (indices + starts[:, None]).view(-1)


def _tile_offsets(offsets: Tensor, batch: int) -> Tensor:
    begins = _tile_indices(offsets[:-1], batch, int(offsets[-1]))
    return torch.cat([begins, offsets[-1:] * batch])
