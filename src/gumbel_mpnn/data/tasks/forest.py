"""Disjoint full binary trees in one graph, each classified at its root."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn.data.raw import BoolArray, IntArray, RawGraph


def full_tree(num_leaves: int) -> tuple[IntArray, BoolArray]:
    """Return the parent of each node (-1 for the root) and whether it is a leaf; nodes are numbered depth first."""
    parent, is_leaf = np.array([-1]), np.array([True])
    while is_leaf.sum() < num_leaves:
        right = np.where(parent < 0, 0, parent + 1 + len(parent))
        parent = np.concatenate([[-1], parent + 1, right])
        is_leaf = np.concatenate([[False], is_leaf, is_leaf])
    return parent, is_leaf


def forest(parent: IntArray, x: NDArray[np.float32], labels: IntArray) -> Data:
    """Build the disjoint union of trees with the same `parent` [M], features `x` [T, M, F] and root `labels` [T].

    Edges point from child to parent. `y` is -1 except at the roots, and `batch` [N] is the tree of each node.
    """
    shape = x.shape[:2]
    y = np.full(shape, -1, dtype=np.int64)
    y[:, 0] = labels
    nodes = np.arange(y.size).reshape(shape)
    edges = np.stack([nodes[:, 1:], nodes[:, parent[1:]]], axis=-1)
    data = RawGraph(edges=edges.reshape(-1, 2), y=y.reshape(-1), x=x.reshape(y.size, -1)).to_data()
    data.batch = torch.arange(len(x)).repeat_interleave(len(parent))
    return data
