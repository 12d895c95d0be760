"""Homophily and label informativeness: how the labels of adjacent nodes depend on each other."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.measures.neighborhoods import neighbor_label_counts
from gumbel_mpnn.measures.structure import Convention, class_count, labels_of, num_nodes, undirected_edges
from gumbel_mpnn.util.errors import DataError
from gumbel_mpnn.util.files import none_if_nan

PAIRS = ("train_train", "train_other", "other_other")
"""Kinds of edges, by how many of their ends are training nodes: two, one or none."""
PairValues = dict[str, int | float | None]


def edge_homophily(data: Data, convention: Convention = "coalesced") -> float:
    """Share of edges between nodes with the same label; NaN without edges.

    Edges of unlabelled nodes (y = -1) are ignored.

    Args:
        data: A graph with labels `y` [N].
        convention: Which edges are counted; see `undirected_edges`.
    """
    return float(edge_label_shares(data, convention).trace())


def adjusted_homophily(data: Data, convention: Convention = "coalesced") -> float:
    """Edge homophily adjusted for chance: at most 1, and 0 for random edges with the same degrees.

    (h - Σ p̄(c)²) / (1 - Σ p̄(c)²), where p̄(c) is the share of edge endpoints in class c; NaN if all are in one class.
    Edges of unlabelled nodes (y = -1) are ignored.
    """
    shares = edge_label_shares(data, convention)
    by_chance = shares.sum(0).square().sum()
    return float((shares.trace() - by_chance) / (1 - by_chance)) if by_chance < 1 else float("nan")


def label_informativeness(data: Data, convention: Convention = "coalesced") -> float:
    """Share of a label's entropy that is explained by the label of a neighbor, from 0 to 1: the paper's LI_edge.

    I(y_v, y_w) / H(y_v) for the endpoints of a random edge; NaN if all endpoints are in one class. Edges of unlabelled
    nodes (y = -1) are ignored.
    """
    shares = edge_label_shares(data, convention)
    ends = shares.sum(0)
    entropy = -torch.xlogy(ends, ends).sum()
    # The joint entropy of both labels is 2 H(y_v) - I(y_v, y_w).
    information = 2 * entropy + torch.xlogy(shares, shares).sum()
    return float(information / entropy) if entropy > 0 else float("nan")


def edge_label_shares(data: Data, convention: Convention = "coalesced") -> Tensor:
    """Joint distribution of the labels (y_v, y_w) of a random edge, float64 [C, C].

    Each edge counts in both orientations, so that the matrix is symmetric and both marginals are p̄, the share of edge
    endpoints in each class. NaN if no edge connects two labelled nodes.
    """
    y, edges = labels_of(data), undirected_edges(data, convention)
    labels = y[edges][:, (y[edges] >= 0).all(0)]
    num_classes = max(class_count(y), 1)
    counts = neighbor_label_counts(labels, torch.arange(num_classes), num_classes).double()
    return counts / counts.sum()


OF_PAIRS = {
    "edge_homophily": edge_homophily,
    "adjusted_homophily": adjusted_homophily,
    "label_informativeness": label_informativeness,
}


def training_pairs(data: Data, train_mask: Tensor) -> dict[str, PairValues]:
    """Number of edges, homophily and label informativeness for each kind of edges in `PAIRS`.

    Only edges between labelled nodes count. A value is None if it is not defined.

    Args:
        data: A graph with labels `y` [N], which are -1 for unlabelled nodes.
        train_mask: Training nodes, [N].
    """
    if train_mask.shape != (num_nodes(data),):
        raise DataError(f"the training mask must have the shape [{num_nodes(data)}], not {list(train_mask.shape)}")
    y, edges = labels_of(data), undirected_edges(data)
    edges = edges[:, (y[edges] >= 0).all(0)]
    ends = train_mask.cpu()[edges].sum(0)
    found: dict[str, PairValues] = {}
    for kind, count in zip(PAIRS, (2, 1, 0), strict=True):
        part = Data(edge_index=edges[:, ends == count], y=y, num_nodes=len(y))
        values = {name: none_if_nan(function(part)) for name, function in OF_PAIRS.items()}
        found[kind] = {"num_edges": part.edge_index.shape[1], **values}
    return found
