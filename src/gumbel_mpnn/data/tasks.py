"""Synthetic tasks that show what rewiring can and cannot do; they depend on their arguments and a seed only."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from gumbel_mpnn.data.check import set_edges
from gumbel_mpnn.data.splits import IntArray, Masks, deal, mask_of, random_masks, set_masks, shares
from gumbel_mpnn.graph import pair_key
from gumbel_mpnn.util.errors import UserError, check_at_least

_NUM_NODES = 1000
_NUM_CLASSES = 4
_NUM_FEATURES = 16
CORE_DEGREE = 4  # mean number of core edges per node
_CORE_HOMOPHILY = 0.8  # fraction of core edges that are drawn within a class
NOISE_DEGREE = 16  # mean number of random edges per node
_CLASS_DISTANCE = 2.0  # distance of class means from the origin, in standard deviations of a feature


def demo_graph(seed: int = 0) -> Data:
    """Generate a graph on which a GCN is no better than an MLP, because most of its edges are random.

    The graph has four classes with overlapping Gaussian features, and ten splits with 20 training and 30 validation
    nodes per class. `edge_is_core`, bool [E], marks the homophilous edges; models never see it.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(_NUM_NODES) % _NUM_CLASSES
    directions, _ = np.linalg.qr(rng.normal(size=(_NUM_FEATURES, _NUM_CLASSES)))
    x = rng.normal(size=(_NUM_NODES, _NUM_FEATURES)) + _CLASS_DISTANCE * directions.T[y]

    core = torch.from_numpy(_pairs(rng, CORE_DEGREE, _CORE_HOMOPHILY).T)
    edges = torch.cat([core, torch.from_numpy(_pairs(rng, NOISE_DEGREE, homophily=0.0).T)], dim=1)
    edge_index = to_undirected(remove_self_loops(edges)[0], num_nodes=_NUM_NODES)
    keys, core_keys = (pair_key(each.sort(0).values, _NUM_NODES) for each in (edge_index, core))
    data = Data(
        x=torch.from_numpy(x.astype(np.float32)),
        edge_index=edge_index,
        y=torch.from_numpy(y),
        edge_is_core=torch.isin(keys, core_keys),
        name="demo",
        metric="accuracy",
        protocol="per-class-20-30",
    )
    set_masks(data, random_masks(y, data.protocol, seed))
    return data


def _pairs(rng: np.random.Generator, mean_degree: int, homophily: float) -> IntArray:
    """Draw random pairs [E, 2] of nodes, this fraction of them within a class (the class of node i is i mod 4)."""
    size = _NUM_NODES * mean_degree // 2
    source, target = rng.integers(_NUM_NODES, size=(2, size))
    within = target - target % _NUM_CLASSES + source % _NUM_CLASSES
    return np.stack([source, np.where(rng.random(size) < homophily, within, target)], axis=1)


_HELD_OUT = 0.2  # fraction of the labelled nodes for validation, and the same for testing


def bottleneck(
    nodes_per_side: int = 50,
    num_classes: int = 5,
    num_graphs: int = 1,
    seed: int = 0,
    num_splits: int = 10,
) -> Data:
    """Generate two cliques A and B joined by one bridge; node i of B has the label that node i of A carries.

    A graph has the n nodes of A, then the n nodes of B; each side is a clique. The bridge joins the first node of A to
    the last node of B, so partners are never neighbors: the label is 3 hops away, or 2 for the pairs at the bridge.

    Args:
        nodes_per_side: number of nodes n of each side, at least 2.
        num_classes: number of classes C; the labels are uniform.
        num_graphs: number of disjoint graphs. A single small graph gives a poor estimate: labels that are frequent
            among its training nodes are rare among its test nodes, so guessing scores well below 1/C.
        seed: seed of the labels and the splits.
        num_splits: number of splits S.

    Returns:
        A graph with `x` float32 [N, ids + C], the one-hot id of the pair and the one-hot label (side A) or zeros (side
        B); `y` [N], -1 on side A; `batch` [N], the graph of each node; `partner` [N]; and masks [N, S] with 60/20/20 %
        of side B, where every class has a training node.
    """
    check_at_least(2, nodes_per_side=nodes_per_side)
    check_at_least(1, num_classes=num_classes, num_graphs=num_graphs, num_splits=num_splits)
    check_at_least(0, seed=seed)
    shape = num_graphs, 2, nodes_per_side
    rng = np.random.default_rng(seed)
    labels = rng.integers(num_classes, size=(num_graphs, nodes_per_side))
    nodes = np.arange(np.prod(shape)).reshape(shape)
    pairs = np.arange(labels.size).reshape(labels.shape)
    y = np.stack([np.full_like(labels, -1), labels], axis=1).reshape(-1)
    one_hot = np.stack([np.eye(num_classes, dtype=np.float32)[labels]] * 2, axis=1)
    one_hot[:, 1] = 0  # side B does not know the label
    ids = np.stack([np.eye(pairs.size, dtype=np.float32)[pairs]] * 2, axis=1)
    x = np.concatenate([ids, one_hot], axis=-1).reshape(y.size, -1)

    low, high = np.triu_indices(nodes_per_side, k=1)
    inner = np.stack([nodes[:, :, low], nodes[:, :, high]]).reshape(2, -1)
    edges = np.concatenate([inner, [nodes[:, 0, 0], nodes[:, 1, -1]]], axis=1)
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edges), y=torch.from_numpy(y))
    set_edges(data, undirected=True)
    # The third number separates the splits from the labels, since the seeds s and (s, 0) give the same numbers.
    splits = [_split(y, np.random.default_rng((seed, k, 1))) for k in range(num_splits)]
    set_masks(data, Masks.stack(splits))
    data.batch = torch.arange(num_graphs).repeat_interleave(2 * nodes_per_side)
    data.partner = torch.from_numpy(nodes[:, ::-1].reshape(-1))
    data.name, data.metric, data.protocol = "bottleneck", "accuracy", "side-60-20-20"
    return data


def _split(y: IntArray, rng: np.random.Generator) -> Masks:
    """Split the labelled nodes at random by 60/20/20 %, with at least one training node of every class."""
    nodes = rng.permutation(np.flatnonzero(y >= 0))
    classes, first = np.unique(y[nodes], return_index=True)
    order = np.concatenate([nodes[first], np.delete(nodes, first)])
    held_out = max(1, round(_HELD_OUT * len(nodes)))
    num_train = len(nodes) - 2 * held_out
    if num_train < len(classes):
        raise UserError(
            f"{max(num_train, 0)} training nodes are too few for {len(classes)} classes: "
            "increase nodes_per_side or num_graphs, or decrease num_classes"
        )
    parts = np.split(order, [num_train, num_train + held_out])
    return Masks(*(mask_of(part, len(y), "the split") for part in parts))


MAX_DEPTH = 5  # 32 leaves; the number of strings of 64 leaves is too large for a range
_TRAIN, _VAL = 0.7, 0.1  # fractions of the trees of each class; the rest, 20 %, is for testing


def leaf_count(
    depth: int = 4,
    num_trees: int = 32_000,
    seed: int = 0,
    num_splits: int = 1,
    max_trees: int | None = None,
) -> Data:
    """Generate full binary trees as one graph; the class of a tree is the number of leaves with the bit 1.

    This is the LeafColor task of PR-MPNN, and a seed gives the same trees as its code: `num_trees` distinct leaf
    strings are drawn, only counts that are more frequent than the mean are kept, and each gets as many trees as this
    mean. At depth 4, 7 balanced classes remain, so chance is 1/7. The root is `depth` hops away from the leaves. Edges
    point from child to parent, as in the original, but without its self-loops.

    Args:
        depth: number of hops from the root to a leaf; a tree has 2^depth leaves and M = 2^(depth+1) - 1 nodes.
        num_trees: number of trees before balancing.
        seed: seed of the trees and the splits.
        num_splits: number of splits S.
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
    set_edges(data, undirected=False)
    splits = [deal(data.y, shares(_TRAIN, _VAL), (seed, k)) for k in range(num_splits)]
    set_masks(data, Masks.stack(splits))
    data.class_names = [str(count) for count in classes]
    data.name, data.metric, data.protocol = "leaf-count", "accuracy", "random-70-10-20"
    return data


def draw_leaves(depth: int, num_trees: int, seed: int) -> IntArray:
    """Draw distinct leaf strings as bits [num_trees, 2^depth], from left to right."""
    num_leaves = 2**depth
    if not (1 <= depth <= MAX_DEPTH and 1 <= num_trees <= 2**num_leaves):
        raise UserError(
            f"trees have a depth of 1 to {MAX_DEPTH}, and at depth {depth} there are not {num_trees} of them"
        )
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
    kept = np.concatenate([np.flatnonzero(counts == count)[:size] for count in classes])
    return np.sort(kept), classes


def trees(bits: IntArray, labels: IntArray) -> Data:
    """Build the union of trees with leaf `bits` [T, L] and root `labels` [T]; edges point from child to parent."""
    # The parent of each node, -1 for the root, and whether it is a leaf; nodes are numbered depth first.
    parent, is_leaf = np.array([-1]), np.array([True])
    while is_leaf.sum() < bits.shape[1]:
        right = np.where(parent < 0, 0, parent + 1 + len(parent))
        parent = np.concatenate([[-1], parent + 1, right])
        is_leaf = np.concatenate([[False], is_leaf, is_leaf])
    shape = len(bits), len(parent)
    x = np.zeros((*shape, len(parent) + 2), dtype=np.float32)
    x[:, :, :-2] = np.eye(len(parent), dtype=np.float32)
    x[:, is_leaf, -2:] = np.eye(2, dtype=np.float32)[bits]
    y = np.full(shape, -1, dtype=np.int64)
    y[:, 0] = labels
    nodes = np.arange(y.size).reshape(shape)
    edges = np.stack([nodes[:, 1:], nodes[:, parent[1:]]]).reshape(2, -1)
    return Data(
        x=torch.from_numpy(x.reshape(y.size, -1)),
        edge_index=torch.from_numpy(edges),
        y=torch.from_numpy(y.reshape(-1)),
        batch=torch.arange(len(x)).repeat_interleave(len(parent)),
    )
