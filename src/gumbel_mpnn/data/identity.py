"""The identity matrix as features of a graph that has none."""

from __future__ import annotations

import copy

import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.sparse_tensors import dense_if_small
from gumbel_mpnn.graph import edge_index_of

MARK = "identity_features"
"""Attribute of a graph whose features were made here and are not written to files."""


def with_identity_features(data: Data) -> Data:
    """Return a copy of a graph whose features are the identity matrix: each node has one of its own.

    Models can then learn from the edges only, and cannot be applied to other graphs. The matrix of a large graph is a
    sparse tensor. `data.identity_features` is true.
    """
    y = data.get("y")
    num_nodes = int(data.num_nodes or 0) if y is None else len(y)
    device = edge_index_of(data, or_empty=True).device
    node = torch.arange(num_nodes, device=device)
    ones = torch.ones(num_nodes, device=device)
    out = copy.copy(data)
    size = (num_nodes, num_nodes)
    matrix = torch.sparse_coo_tensor(torch.stack([node, node]), ones, size, is_coalesced=True, check_invariants=False)
    out.x = dense_if_small(matrix)
    out[MARK] = True
    return out


def has_identity_features(data: Data) -> bool:
    """Whether each node has one feature of its own, made here or by the user, so that features say nothing."""
    x = data.get("x")
    if data.get(MARK) or x is None or x.dim() != 2 or x.shape[0] != x.shape[1]:
        return bool(data.get(MARK))
    row, col = x.coalesce().indices() if x.layout is torch.sparse_coo else (dense_if_small(x) != 0).nonzero().T
    return len(row) == len(x) == len(row.unique()) == len(col.unique())
