"""Bottleneck: predict the label of a node, which only its partner on the other side of a bridge carries."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError, check_at_least, check_between
from gumbel_mpnn.data.raw import IntArray, Masks, RawGraph, mask_of, set_edges, set_masks

HELD_OUT = 0.2  # fraction of the labelled nodes for validation, and the same for testing


def bottleneck(
    nodes_per_side: int = 50,
    num_classes: int = 5,
    num_graphs: int = 1,
    seed: int = 0,
    num_splits: int = 10,
    *,
    edge_probability: float = 1.0,
    shared_ids: bool = False,
) -> Data:
    """Generate two dense sides A and B joined by one bridge; node i of B has the label that node i of A carries.

    A graph has the n nodes of A, then the n nodes of B. The bridge joins the first node of A to the last node of B, so
    partners are never neighbors: in cliques the label is 3 hops away, or 2 for the pairs at the bridge.

    Args:
        nodes_per_side: number of nodes n of each side, at least 2.
        num_classes: number of classes C; the labels are uniform.
        num_graphs: number of disjoint graphs. A single small graph gives a poor estimate: labels that are frequent
            among its training nodes are rare among its test nodes, so guessing scores well below 1/C.
        seed: seed of the labels, the edges and the splits.
        num_splits: number of splits S.
        edge_probability: 1 makes each side a clique; smaller values give random graphs, which may be disconnected.
        shared_ids: whether all graphs use the same n ids. Every id then occurs in training, but nodes of different
            graphs share it. Otherwise an id belongs to a single pair.

    Returns:
        A graph with `x` float32 [N, ids + C], the one-hot id of the pair and the one-hot label (side A) or zeros (side
        B); `y` [N], -1 on side A; `batch` [N], the graph of each node; `partner` [N]; and masks [N, S] with 60/20/20 %
        of side B, where every class has a training node.
    """
    check_at_least(2, nodes_per_side=nodes_per_side)
    check_at_least(1, num_classes=num_classes, num_graphs=num_graphs, num_splits=num_splits)
    check_at_least(0, seed=seed)
    check_between(0, 1, edge_probability=edge_probability)
    shape = num_graphs, 2, nodes_per_side
    rng = np.random.default_rng(seed)
    labels = rng.integers(num_classes, size=(num_graphs, nodes_per_side))
    nodes = np.arange(np.prod(shape)).reshape(shape)
    pairs = np.arange(labels.size).reshape(labels.shape)
    y = np.stack([np.full_like(labels, -1), labels], axis=1).reshape(-1)
    x = _features(pairs % nodes_per_side if shared_ids else pairs, labels, num_classes)

    data = RawGraph(edges=_edges(nodes, edge_probability, rng), y=y, x=x).to_data()
    set_edges(data, undirected=True)
    # The third number separates the splits from the labels, since the seeds s and (s, 0) give the same numbers.
    splits = [_split(y, np.random.default_rng((seed, k, 1))) for k in range(num_splits)]
    set_masks(data, Masks.stack(splits))
    data.batch = torch.arange(num_graphs).repeat_interleave(2 * nodes_per_side)
    data.partner = torch.from_numpy(nodes[:, ::-1].reshape(-1))
    data.name, data.metric, data.protocol = "bottleneck", "accuracy", "side-60-20-20"
    return data


def _features(ids: IntArray, labels: IntArray, num_classes: int) -> NDArray[np.float32]:
    """Return features with ids on both sides and labels on side A, from arrays [G, n]."""
    one_hot_id = np.eye(ids.max() + 1, dtype=np.float32)[ids]
    one_hot_label = np.eye(num_classes, dtype=np.float32)[labels]
    side_a = np.concatenate([one_hot_id, one_hot_label], axis=-1)
    side_b = np.concatenate([one_hot_id, np.zeros_like(one_hot_label)], axis=-1)
    return np.stack([side_a, side_b], axis=1).reshape(-1, side_a.shape[-1])


def _edges(nodes: IntArray, probability: float, rng: np.random.Generator) -> IntArray:
    """Return the edges [E, 2] of the graphs with these `nodes` [G, 2, n], each edge once."""
    low, high = np.triu_indices(nodes.shape[2], k=1)
    pairs = np.stack([nodes[:, :, low], nodes[:, :, high]], axis=-1)
    inner = pairs[rng.random(pairs.shape[:-1]) < probability]
    bridges = np.stack([nodes[:, 0, 0], nodes[:, 1, -1]], axis=-1)
    return np.concatenate([inner, bridges])


def _split(y: IntArray, rng: np.random.Generator) -> Masks:
    """Split the labelled nodes at random by 60/20/20 %, with at least one training node of every class."""
    nodes = rng.permutation(np.flatnonzero(y >= 0))
    classes, first = np.unique(y[nodes], return_index=True)
    order = np.concatenate([nodes[first], np.delete(nodes, first)])
    held_out = max(1, round(HELD_OUT * len(nodes)))
    num_train = len(nodes) - 2 * held_out
    if num_train < len(classes):
        raise UserError(
            f"{max(num_train, 0)} training nodes are too few for {len(classes)} classes: "
            "increase nodes_per_side or num_graphs, or decrease num_classes"
        )
    parts = np.split(order, [num_train, num_train + held_out])
    return Masks(*(mask_of(part, len(y), "the split") for part in parts))
