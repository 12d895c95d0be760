"""LeafCount: predict at the root of a binary tree how many of its leaves have the bit 1."""

from __future__ import annotations

import random

import numpy as np
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError, check_at_least
from gumbel_mpnn.data.raw import IntArray, Masks, set_edges, set_masks
from gumbel_mpnn.data.splits import random_split
from gumbel_mpnn.data.tasks.forest import forest, full_tree

MAX_DEPTH = 5  # 32 leaves; the number of strings of 64 leaves is too large for a range
TRAIN, VAL = 0.7, 0.1  # fractions of the trees of each class; the rest, 20 %, is for testing


def leaf_count(
    depth: int = 4,
    num_trees: int = 32_000,
    seed: int = 0,
    num_splits: int = 1,
    *,
    directed: bool = True,
    max_trees: int | None = None,
) -> Data:
    """Generate full binary trees as one graph; the class of a tree is the number of leaves with the bit 1.

    This is the LeafColor task of PR-MPNN, and a seed gives the same trees as its code: `num_trees` distinct leaf
    strings are drawn, only counts that are more frequent than the mean are kept, and each gets as many trees as this
    mean. At depth 4, 7 balanced classes remain, so chance is 1/7. The root is `depth` hops away from the leaves.

    Args:
        depth: number of hops from the root to a leaf; a tree has 2^depth leaves and M = 2^(depth+1) - 1 nodes.
        num_trees: number of trees before balancing.
        seed: seed of the trees and the splits.
        num_splits: number of splits S.
        directed: whether edges point from child to parent only, as in the original, but without its self-loops. False
            adds the reverse edges, which an undirected `PairGraph` (the default) adds anyway.
        max_trees: maximum number of trees after balancing; each class keeps the same number.

    Returns:
        A graph with `x` float32 [N, M + 2], the one-hot node number within the tree (depth first) and the one-hot bit
        of a leaf; `y` [N], the class at the roots and -1 elsewhere; `batch` [N], the tree of each node; `class_names`,
        the counts; and masks [N, S] with 70/10/20 % of the roots of each class.
    """
    check_at_least(0, seed=seed)
    check_at_least(1, num_splits=num_splits)
    bits = draw_leaves(depth, num_trees, seed)
    counts = bits.sum(axis=1)
    kept, classes = balanced(counts, max_trees)
    data = trees(bits[kept], np.searchsorted(classes, counts[kept]))
    set_edges(data, undirected=not directed)
    splits = [random_split(data.y, (TRAIN, VAL), (seed, k)) for k in range(num_splits)]
    set_masks(data, Masks.stack(splits))
    data.class_names = [str(count) for count in classes]
    data.name, data.metric, data.protocol = "leaf-count", "accuracy", "random-70-10-20"
    return data


def draw_leaves(depth: int, num_trees: int, seed: int) -> IntArray:
    """Draw distinct leaf strings as bits [num_trees, 2^depth], from left to right."""
    if not 1 <= depth <= MAX_DEPTH:
        raise UserError(f"the depth of a tree must be 1 to {MAX_DEPTH}, not {depth}")
    num_leaves = 2**depth
    if not 1 <= num_trees <= 2**num_leaves:
        raise UserError(f"there are 1 to {2**num_leaves} different trees of depth {depth} to draw, not {num_trees}")
    strings = np.array(random.Random(seed).sample(range(2**num_leaves), num_trees), dtype=np.int64)
    return strings[:, None] >> np.arange(num_leaves)[::-1] & 1


def balanced(counts: IntArray, max_trees: int | None = None) -> tuple[IntArray, IntArray]:
    """Return the trees to keep, in order, and the counts that become classes, given the `counts` [T] of all trees."""
    sizes = np.bincount(counts)
    mean = len(counts) // int(np.count_nonzero(sizes))
    classes = np.flatnonzero(sizes > mean)
    if not len(classes):
        raise UserError(f"all counts are equally frequent in {len(counts)} trees, so no class is left: draw more trees")
    size = mean if max_trees is None else min(mean, max_trees // len(classes))
    if size < 1:
        raise UserError(f"max_trees must be at least 1 for each of the {len(classes)} classes, not {max_trees}")
    kept = np.concatenate([np.flatnonzero(counts == count)[:size] for count in classes])
    return np.sort(kept), classes


def trees(bits: IntArray, labels: IntArray) -> Data:
    """Build the trees with leaf `bits` [T, L] and root `labels` [T] as one graph."""
    parent, is_leaf = full_tree(bits.shape[1])
    x = np.zeros((len(bits), len(parent), len(parent) + 2), dtype=np.float32)
    x[:, :, :-2] = np.eye(len(parent), dtype=np.float32)
    x[:, is_leaf, -2:] = np.eye(2, dtype=np.float32)[bits]
    return forest(parent, x, labels)
