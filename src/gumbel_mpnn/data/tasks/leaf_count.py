"""LeafCount: the root of a binary tree must tell how many of its leaves carry a 1."""

from __future__ import annotations

import random

import numpy as np
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError, check_at_least
from gumbel_mpnn.data.raw import IntArray, Masks, set_edges, set_masks
from gumbel_mpnn.data.splits import random_split
from gumbel_mpnn.data.tasks.forest import forest, full_tree

MAX_DEPTH = 5  # 32 leaves: the strings of 64 leaves are more than a range can count
TRAIN, VAL = 0.7, 0.1  # of the trees of every class; the rest, 20 %, is for testing


def leaf_count(
    depth: int = 4,
    num_trees: int = 32_000,
    seed: int = 0,
    num_splits: int = 1,
    *,
    directed: bool = True,
    max_trees: int | None = None,
) -> Data:
    """Full binary trees as one graph, each to be classified at its root by the number of leaves that carry a 1.

    This is the LeafColor task of PR-MPNN, and the trees of a seed are the ones drawn there: `num_trees` distinct leaf
    strings, of which the counts more frequent than the mean stay, each with as many trees as that mean. The 7 counts
    that survive at depth 4 are exactly balanced: chance is 1/7. The root is `depth` hops away from what it must know.

    Args:
        depth: hops from the root to a leaf; a tree has 2^depth leaves and M = 2^(depth+1) - 1 nodes.
        num_trees: drawn before they are balanced.
        seed: of the trees and of the splits.
        num_splits: S.
        directed: edges go from child to parent only, as in the original, but without its self-loops; False adds their
            reverse. A `PairGraph` is undirected by default and then adds it all the same.
        max_trees: keep no more than this after balancing, the same number of every class.

    Returns:
        `x` float32 [N, M + 2], one-hot node number within the tree (depth first), then the one-hot bit of a leaf; `y`
        [N], the class at the roots and -1 elsewhere; `batch` [N], the tree of each node; `class_names`, the counts;
        masks [N, S] with 70/10/20 % of the roots of each class.
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
    """The bits [num_trees, 2^depth] of distinct leaf strings, left to right."""
    if not 1 <= depth <= MAX_DEPTH:
        raise UserError(f"the depth of a tree must be 1 to {MAX_DEPTH}, not {depth}")
    num_leaves = 2**depth
    if not 1 <= num_trees <= 2**num_leaves:
        raise UserError(f"there are 1 to {2**num_leaves} different trees of depth {depth} to draw, not {num_trees}")
    strings = np.array(random.Random(seed).sample(range(2**num_leaves), num_trees), dtype=np.int64)
    return strings[:, None] >> np.arange(num_leaves)[::-1] & 1


def balanced(counts: IntArray, max_trees: int | None = None) -> tuple[IntArray, IntArray]:
    """The trees to keep, in their order, and the counts that are classes, from the `counts` [T] of all trees."""
    sizes = np.bincount(counts)
    mean = len(counts) // int(np.count_nonzero(sizes))
    classes = np.flatnonzero(sizes > mean)
    if not len(classes):
        raise UserError(f"every count is equally frequent in {len(counts)} trees, so none is left: draw more trees")
    size = mean if max_trees is None else min(mean, max_trees // len(classes))
    if size < 1:
        raise UserError(f"max_trees must be at least 1 for each of the {len(classes)} classes, not {max_trees}")
    kept = np.concatenate([np.flatnonzero(counts == count)[:size] for count in classes])
    return np.sort(kept), classes


def trees(bits: IntArray, labels: IntArray) -> Data:
    """The disjoint union of trees with leaf `bits` [T, L] and root `labels` [T], with edges from child to parent."""
    parent, is_leaf = full_tree(bits.shape[1])
    x = np.zeros((len(bits), len(parent), len(parent) + 2), dtype=np.float32)
    x[:, :, :-2] = np.eye(len(parent), dtype=np.float32)
    x[:, is_leaf, -2:] = np.eye(2, dtype=np.float32)[bits]
    return forest(parent, x, labels)
