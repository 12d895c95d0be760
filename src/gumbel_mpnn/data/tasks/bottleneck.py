"""Bottleneck: a node must tell a label that only its partner beyond a single bridge knows."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError, check_at_least, check_between
from gumbel_mpnn.data.raw import IntArray, Masks, RawGraph, mask_of, set_edges, set_masks

HELD_OUT = 0.2  # of the nodes to be predicted for validation, and as many for testing


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
    """Two dense sides A and B with one bridge; node i of B must tell the label that node i of A carries.

    A graph has the n nodes of A, then the n of B. The bridge joins the first of A to the last of B, so no partners are
    neighbors: in cliques the label is 3 hops away, or 2 for the pairs at the bridge.

    Args:
        nodes_per_side: n, at least 2.
        num_classes: C; the labels are uniform.
        num_graphs: disjoint graphs. One with a small side makes a poor measure: what is frequent in training is then
            rare among the few nodes left to test on, and a guess scores well below 1/C.
        seed: of the labels, the edges and the splits.
        num_splits: S.
        edge_probability: 1 makes each side a clique, less a random graph, which may fall into pieces if it is small.
        shared_ids: whether the graphs use the same n ids. Then each id is met in training, but also looks like the
            partner of nodes in other graphs; else an id belongs to one pair alone.

    Returns:
        `x` float32 [N, ids + C], the one-hot id of the pair, then the one-hot label on side A and zeros on B; `y` [N],
        -1 on side A; `batch` [N], the graph of each node; `partner` [N]; masks [N, S] with 60/20/20 % of side B, and a
        node of every class that occurs for training.
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
    # The third number keeps the splits off the stream of the labels: the seeds s and (s, 0) are one.
    splits = [_split(y, np.random.default_rng((seed, k, 1))) for k in range(num_splits)]
    set_masks(data, Masks.stack(splits))
    data.batch = torch.arange(num_graphs).repeat_interleave(2 * nodes_per_side)
    data.partner = torch.from_numpy(nodes[:, ::-1].reshape(-1))
    data.name, data.metric, data.protocol = "bottleneck", "accuracy", "side-60-20-20"
    return data


def _features(ids: IntArray, labels: IntArray, num_classes: int) -> NDArray[np.float32]:
    """Ids on both sides and labels on the first, from arrays [G, n]."""
    one_hot_id = np.eye(ids.max() + 1, dtype=np.float32)[ids]
    one_hot_label = np.eye(num_classes, dtype=np.float32)[labels]
    side_a = np.concatenate([one_hot_id, one_hot_label], axis=-1)
    side_b = np.concatenate([one_hot_id, np.zeros_like(one_hot_label)], axis=-1)
    return np.stack([side_a, side_b], axis=1).reshape(-1, side_a.shape[-1])


def _edges(nodes: IntArray, probability: float, rng: np.random.Generator) -> IntArray:
    """The edges [E, 2] of the graphs with these `nodes` [G, 2, n], each edge once."""
    low, high = np.triu_indices(nodes.shape[2], k=1)
    pairs = np.stack([nodes[:, :, low], nodes[:, :, high]], axis=-1)
    inner = pairs[rng.random(pairs.shape[:-1]) < probability]
    bridges = np.stack([nodes[:, 0, 0], nodes[:, 1, -1]], axis=-1)
    return np.concatenate([inner, bridges])


def _split(y: IntArray, rng: np.random.Generator) -> Masks:
    """60/20/20 % of the labelled nodes at random, except that the first of every class is for training."""
    nodes = rng.permutation(np.flatnonzero(y >= 0))
    classes, first = np.unique(y[nodes], return_index=True)
    order = np.concatenate([nodes[first], np.delete(nodes, first)])
    held_out = max(1, round(HELD_OUT * len(nodes)))
    num_train = len(nodes) - 2 * held_out
    if num_train < len(classes):
        raise UserError(
            f"{max(num_train, 0)} training nodes cannot show {len(classes)} classes: "
            "give more nodes_per_side or num_graphs, or fewer num_classes"
        )
    parts = np.split(order, [num_train, num_train + held_out])
    return Masks(*(mask_of(part, len(y), "the split") for part in parts))
