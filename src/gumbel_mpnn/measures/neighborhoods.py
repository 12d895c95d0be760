"""Label distributions of neighborhoods, and how much they differ within a class."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.measures.structure import class_count, directed_edges, labels_of, num_nodes, undirected_edges


def neighborhood_distributions(data: Data, own_label: bool = True, directed: bool = False) -> Tensor:
    """Share of each class among the neighbors of each node, float64 [N, C]: the paper's p̂ of N(v).

    Each neighbor counts once. Unlabelled neighbors (y = -1) are ignored. A node without labelled neighbors has a row of
    zeros; every other row sums to 1.

    Args:
        data: A graph with labels `y` [N].
        own_label: Count the node itself among its neighbors, if it is labelled.
        directed: Whether only edges to a node make neighbors of it, those from which it receives messages. By default
            the graph is treated as undirected.
    """
    y, edges = labels_of(data), directed_edges(data) if directed else undirected_edges(data)
    counts = neighbor_label_counts(edges, y, num_nodes(data), directed).double()
    if own_label:
        labelled = (y >= 0).nonzero().squeeze(1)
        counts[labelled, y[labelled]] += 1
    return counts / counts.sum(1, keepdim=True).clamp(min=1)


def neighbor_label_counts(edges: Tensor, y: Tensor, count: int, directed: bool = False) -> Tensor:
    """Number of neighbors in each class for each of `count` nodes of a graph with `edges` [2, E], int64 [N, C]."""
    neighbor, node = edges if directed else torch.cat([edges, edges.flip(0)], dim=1)
    num_classes, known = class_count(y), y[neighbor] >= 0
    key = node[known] * num_classes + y[neighbor[known]]
    return torch.bincount(key, minlength=count * num_classes).view(count, num_classes)


def std_per_class(data: Data, own_label: bool = True, directed: bool = False) -> float:
    """Spread of the neighborhood distributions within a class, averaged over classes: the paper's "std per class".

    It is the mean of the sample standard deviations over all classes and dimensions. Unlabelled nodes, nodes without
    labelled neighbors and classes with fewer than two nodes are ignored; NaN if nothing is left.

    Args:
        data: A graph with labels `y` [N], -1 for unknown.
        own_label: Count a node itself among its neighbors, as the paper's figures do.
        directed: Whether only edges to a node make neighbors of it.
    """
    y, rows = labels_of(data), neighborhood_distributions(data, own_label, directed)
    usable = (y >= 0) & (rows.sum(1) > 0)
    members = [rows[usable & (y == label)] for label in range(class_count(y))]
    spreads = [group.std(0, correction=1) for group in members if len(group) > 1]
    return float(torch.stack(spreads).mean()) if spreads else float("nan")
