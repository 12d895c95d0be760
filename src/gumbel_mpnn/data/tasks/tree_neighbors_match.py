"""Tree-NeighborsMatch: predict at the root of a binary tree the value of the leaf that has the root's key."""

from __future__ import annotations

import math

import numpy as np
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError, check_at_least
from gumbel_mpnn.data.raw import IntArray, Masks, set_edges, set_masks
from gumbel_mpnn.data.tasks.forest import forest, full_tree

MAX_DEPTH = 5  # 32 leaves; 1,000 orders of their values with every key have 2 million nodes
VAL, TEST = 0.1, 0.2  # fractions of the orders of values; the rest, 70 %, is for training


def tree_neighbors_match(
    depth: int = 3,
    max_orders: int = 1000,
    seed: int = 0,
    num_splits: int = 1,
    *,
    directed: bool = True,
) -> Data:
    """Generate full binary trees as one graph; the class of a tree is the value of the leaf with the root's key.

    This is the task of Alon and Yahav (2021), generated as in their code. The L leaves have the keys 0 to L - 1 from
    left to right and each of the values 0 to L - 1 once, in a random order. Every order comes with every key at the
    root, so all labels are equally frequent and chance is 1/L. All information passes through the root's two children.

    A GCN needs `depth` layers to reach the leaves and one more to solve the task: with `depth` layers it adds up two
    sibling leaves before it can combine a value with its key, which limits the accuracy to 1/2.

    Args:
        depth: number of hops from the root to a leaf; a tree has L = 2^depth leaves and M = 2 L - 1 nodes.
        max_orders: number of orders of the values, drawn without repetition; fewer if fewer exist (24 at depth 2).
        seed: seed of the orders and the splits.
        num_splits: number of splits S.
        directed: whether edges point from child to parent only, as in the original, but without its self-loops. False
            adds the reverse edges, which an undirected `PairGraph` (the default) adds anyway.

    Returns:
        A graph with `x` float32 [N, 2 L], the one-hot key of roots and leaves and the one-hot value of leaves; `y` [N],
        the value to predict at the roots and -1 elsewhere; `batch` [N], the tree of each node; and masks [N, S] of the
        roots of 70/10/20 % of the orders. The original splits single trees, so it tests on orders seen in training.
    """
    if not 2 <= depth <= MAX_DEPTH:
        raise UserError(f"the depth of a tree must be 2 to {MAX_DEPTH}, not {depth}")
    check_at_least(3, max_orders=max_orders)
    check_at_least(0, seed=seed)
    check_at_least(1, num_splits=num_splits)
    orders = draw_orders(2**depth, max_orders, seed)
    data = trees(orders)
    set_edges(data, undirected=not directed)
    # The third number separates the splits from the orders, since the seeds s and (s, 0) give the same numbers.
    splits = [_split(orders.shape, np.random.default_rng((seed, k, 1))) for k in range(num_splits)]
    set_masks(data, Masks.stack(splits))
    data.name, data.metric, data.protocol = "tree-neighbors-match", "accuracy", "orders-70-10-20"
    return data


def draw_orders(num_leaves: int, count: int, seed: int) -> IntArray:
    """Draw up to `count` distinct random orders of the values, [P, L]."""
    rng = np.random.default_rng(seed)
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < min(count, math.factorial(num_leaves)):
        drawn[tuple(rng.permutation(num_leaves).tolist())] = None
    return np.array(list(drawn))


def trees(orders: IntArray) -> Data:
    """Build the trees of these leaf values [P, L] with every key; tree p L + k has the key k at its root."""
    num_orders, num_leaves = orders.shape
    parent, is_leaf = full_tree(num_leaves)
    one_hot = np.eye(num_leaves, dtype=np.float32)
    x = np.zeros((num_orders, num_leaves, len(parent), 2 * num_leaves), dtype=np.float32)
    x[:, :, 0, :num_leaves] = one_hot
    x[:, :, is_leaf, :num_leaves] = one_hot
    x[:, :, is_leaf, num_leaves:] = one_hot[orders][:, None]
    return forest(parent, x.reshape(-1, *x.shape[2:]), orders.reshape(-1))


def _split(shape: tuple[int, ...], rng: np.random.Generator) -> Masks:
    """Split the orders at random; the roots of all L trees of an order are in the same mask."""
    num_orders, num_leaves = shape
    place = rng.permutation(num_orders)
    num_val, num_test = max(1, round(VAL * num_orders)), max(1, round(TEST * num_orders))
    is_root = np.arange(num_leaves * (2 * num_leaves - 1)) % (2 * num_leaves - 1) == 0
    chosen = (place >= num_val + num_test, place < num_val, (place >= num_val) & (place < num_val + num_test))
    return Masks(*((orders[:, None] & is_root).reshape(-1) for orders in chosen))
