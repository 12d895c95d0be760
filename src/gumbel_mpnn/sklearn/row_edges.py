"""Edges between the rows of X, which keep the numbers of their rows when cross-validation takes X apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class RowEdges:
    """Edges by the row numbers of their ends [E], with weights [E]."""

    source: IntArray
    target: IntArray
    weight: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.source)

    def __add__(self, other: RowEdges) -> RowEdges:
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("source", "target", "weight"))
        return RowEdges(*(np.concatenate(pair) for pair in pairs))

    def graph(self, x: NDArray[np.float32], rows: IntArray) -> Data:
        """Graph of the nodes with features `x` [N, F] and row numbers `rows` [N]; edges to other rows are left out."""
        order = np.argsort(rows)
        places = [
            np.searchsorted(rows, ends, sorter=order).clip(max=len(rows) - 1) for ends in (self.source, self.target)
        ]
        source, target = (order[place] for place in places)
        known = (rows[source] == self.source) & (rows[target] == self.target)
        # An edge that was given twice, to `fit` and to `predict`, counts once.
        _, first = np.unique(source[known] * len(rows) + target[known], return_index=True)
        data = Data(
            x=torch.from_numpy(x.copy()),
            edge_index=torch.from_numpy(np.stack([source[known][first], target[known][first]])),
        )
        weight = self.weight[known][first]
        if (weight != 1).any():
            data.edge_weight = torch.from_numpy(weight)
        return data


def row_numbers(rows: Any, count: int) -> IntArray:
    """Row numbers of the `count` rows of X; 0, 1, … if `rows` is None."""
    if rows is None:
        return np.arange(count)
    numbers: NDArray[Any] = np.asarray(rows)
    if numbers.shape != (count,) or numbers.dtype.kind not in "iu":
        raise UserError(f"rows must have one whole number for each of the {count} rows of X: give np.arange(n)")
    if len(np.unique(numbers)) < count:
        raise UserError("rows has the same number twice: give every row of X a number of its own")
    return numbers.astype(np.int64)


def read_edges(edges: Any, rows: IntArray, numbered: bool) -> RowEdges:
    """Edges that the user gives, as pairs or as a sparse matrix, for rows of X with the numbers `rows` [N].

    Pairs are row numbers [E, 2]. A sparse adjacency matrix is of the rows of X [N, M] (as scikit-learn cuts it) or of
    all rows [M, M]. Unless the user gave the numbers, all ends of edges must be rows of X.
    """
    from scipy.sparse import issparse

    if edges is None:
        return RowEdges(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    found = _from_matrix(edges, rows, numbered) if issparse(edges) else _from_pairs(edges, rows, numbered)
    ends = np.concatenate([found.source, found.target])
    if len(ends) and ends.min() < 0:
        raise UserError(f"edges has the row number {ends.min()}: numbers begin at 0")
    if not numbered and len(ends) and ends.max() >= len(rows):
        raise UserError(
            f"edges has the row number {ends.max()}, but X has {len(rows)} rows: if X is a part of the rows, as in"
            " cross-validation, give their numbers too, as rows=np.arange(n)"
        )
    return found


def _from_matrix(edges: Any, rows: IntArray, numbered: bool) -> RowEdges:
    """Edges of a matrix with one row for each row of X or, if these are numbered, for each number."""
    whole = numbered and edges.shape[0] == edges.shape[1] > rows.max(initial=-1)
    if not whole and edges.shape[0] != len(rows):
        raise UserError(f"the matrix edges has {edges.shape[0]} rows, but X has {len(rows)}: give one row for each")
    matrix = edges.tocoo()
    stored = matrix.data != 0
    row, target = matrix.row[stored].astype(np.int64), matrix.col[stored].astype(np.int64)
    return RowEdges(row if whole else rows[row], target, matrix.data[stored].astype(np.float32))


def _from_pairs(edges: Any, rows: IntArray, numbered: bool) -> RowEdges:
    pairs: NDArray[Any] = np.asarray(edges)
    pairs = pairs if pairs.size else np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        hint = "give edge_index.T" if pairs.ndim == 2 and len(pairs) == 2 else "or a sparse adjacency matrix"
        raise UserError(f"edges must be pairs of row numbers [E, 2], not {pairs.dtype} {list(pairs.shape)}: {hint}")
    if numbered and len(pairs) == len(rows):
        # scikit-learn takes a list with as many edges as there are rows for one value per row, and cuts it.
        raise UserError(
            f"edges has as many pairs as X has rows, {len(rows)}, so that cross-validation would cut it as it cuts X:"
            " give edges as a sparse adjacency matrix"
        )
    pairs = pairs.astype(np.int64)
    return RowEdges(pairs[:, 0], pairs[:, 1], np.ones(len(pairs), np.float32))
