"""Tree-NeighborsMatch: predict at the root of a binary tree the value of the leaf that has the root's key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.data import DatasetSpec, specs

NAME = "tree-neighbors-match"
VAL, TEST = 0.1, 0.2  # fractions of the orders of values; the rest, 70 %, is for training


def tree_neighbors_match(depth: int = 3, max_orders: int = 250, num_splits: int = 10) -> Data:
    """Generate full binary trees as one graph; the class of a tree is the value of the leaf with the root's key.

    This is the task of Alon and Yahav (2021), generated as in their code. The L leaves have the keys 0 to L - 1 from
    left to right and each of the values 0 to L - 1 once, in a random order. Every order comes with every key at the
    root, so all labels are equally frequent and chance is 1/L. All information passes through the root's two children.

    A GCN needs `depth` layers to reach the leaves and one more to solve the task: with `depth` layers it adds up two
    sibling leaves before it can combine a value with its key, which limits the accuracy to 1/2.

    Args:
        depth: Number of hops from the root to a leaf; a tree has L = 2^depth leaves and M = 2 L - 1 nodes.
        max_orders: Number of orders of the values, drawn without repetition; fewer if fewer exist (24 at depth 2).
        num_splits: Number of splits S.

    Returns:
        A graph with `x` [N, 2 L], the one-hot key of roots and leaves and the one-hot value of leaves; `y` [N], the
        value to predict at the roots and -1 elsewhere; `batch` [N], the tree of each node; and masks [N, S] of the
        roots of 70/10/20 % of the orders. The original splits single trees, so it tests on orders seen in training.
    """
    orders = draw_orders(2**depth, max_orders)
    data = trees(orders)
    splits = [_split(orders.shape, np.random.default_rng((0, split, 1))) for split in range(num_splits)]
    data.train_mask, data.val_mask, data.test_mask = (torch.stack(masks, dim=1) for masks in zip(*splits, strict=True))
    data.name, data.metric, data.protocol = NAME, "accuracy", "orders-70-10-20"
    return data


def draw_orders(num_leaves: int, count: int) -> NDArray[np.int64]:
    """Draw up to `count` distinct random orders of the values, [P, L]."""
    rng = np.random.default_rng(0)
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < min(count, math.factorial(num_leaves)):
        drawn[tuple(rng.permutation(num_leaves).tolist())] = None
    return np.array(list(drawn))


def trees(orders: NDArray[np.int64]) -> Data:
    """Build the trees of these leaf values [P, L] with every key; tree p L + k has the key k at its root.

    The nodes of a tree are numbered depth first, and edges point from child to parent.
    """
    num_orders, num_leaves = orders.shape
    parent, leaves = _full_tree(num_leaves)
    one_hot, size = torch.eye(num_leaves), len(parent)
    x = torch.zeros(num_orders, num_leaves, size, 2 * num_leaves)
    x[:, :, 0, :num_leaves] = one_hot
    x[:, :, leaves, :num_leaves] = one_hot
    x[:, :, leaves, num_leaves:] = one_hot[torch.from_numpy(orders)][:, None]
    y = torch.full((orders.size, size), -1)
    y[:, 0] = torch.from_numpy(orders).flatten()
    nodes = torch.arange(y.numel()).view(y.shape)
    edge_index = torch.stack([nodes[:, 1:].flatten(), nodes[:, parent[1:]].flatten()])
    batch = torch.arange(orders.size).repeat_interleave(size)
    return Data(x=x.view(y.numel(), -1), edge_index=edge_index, y=y.flatten(), batch=batch)


def _full_tree(num_leaves: int) -> tuple[list[int], list[int]]:
    """Return the parent of each node, -1 for the root, and the leaves."""
    if num_leaves == 1:
        return [-1], [0]
    below, leaves = _full_tree(num_leaves // 2)
    left = [0, *(parent + 1 for parent in below[1:])]
    right = [0, *(parent + 1 + len(below) for parent in below[1:])]
    return [-1, *left, *right], [leaf + first for first in (1, 1 + len(below)) for leaf in leaves]


def _split(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Tensor, ...]:
    """Split the orders at random into three masks; the roots of all L trees of an order are in the same one."""
    num_orders, num_leaves = shape
    place = torch.from_numpy(rng.permutation(num_orders))
    num_val, num_test = max(1, round(VAL * num_orders)), max(1, round(TEST * num_orders))
    is_root = torch.arange(num_leaves * (2 * num_leaves - 1)) % (2 * num_leaves - 1) == 0
    chosen = (place >= num_val + num_test, place < num_val, (place >= num_val) & (place < num_val + num_test))
    return tuple((orders[:, None] & is_root).flatten() for orders in chosen)


def _generated(_: Sequence[Path]) -> Data:
    return tree_neighbors_match()


specs[NAME] = DatasetSpec(
    NAME,
    30_000,
    28_000,
    16,
    8,
    protocols=("orders-70-10-20",),
    source="generated by gumbel-mpnn",
    licence="MIT",
    read=_generated,
    has_directions=True,
)
