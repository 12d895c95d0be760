"""How much the labels at the two ends of an edge have to do with each other."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.measures.edges import Convention, class_count, labels_of, undirected_edges
from gumbel_mpnn.measures.neighborhoods import neighbor_label_counts


def edge_homophily(data: Data, convention: Convention = "coalesced") -> float:
    """Share of edges whose ends have the same label; NaN if there are none.

    Edges with an unlabelled end (y = -1) are not counted, here and in the next two measures.

    Args:
        data: A graph with labels `y` [N].
        convention: Which edges there are; see `undirected_edges`.
    """
    return float(edge_label_shares(data, convention).trace())


def adjusted_homophily(data: Data, convention: Convention = "coalesced") -> float:
    """Edge homophily beyond that of random edges between the same degrees: 1 at the most, 0 for random ones.

    (h - Σ p̄(c)²) / (1 - Σ p̄(c)²), where p̄(c) is the share of edge ends in class c; NaN if one class has them all.
    """
    shares = edge_label_shares(data, convention)
    by_chance = shares.sum(0).square().sum()
    return float((shares.trace() - by_chance) / (1 - by_chance)) if by_chance < 1 else float("nan")


def label_informativeness(data: Data, convention: Convention = "coalesced") -> float:
    """Share of a label's entropy that the label at the other end of an edge takes away, 0 to 1: the paper's LI_edge.

    I(y_v, y_w) / H(y_v) over the two ends of a random edge; NaN if one class has all ends.
    """
    shares = edge_label_shares(data, convention)
    ends = shares.sum(0)
    entropy = -torch.xlogy(ends, ends).sum()
    # The ends of a random edge together have entropy 2 H(y_v) - I(y_v, y_w).
    information = 2 * entropy + torch.xlogy(shares, shares).sum()
    return float(information / entropy) if entropy > 0 else float("nan")


def edge_label_shares(data: Data, convention: Convention = "coalesced") -> Tensor:
    """How the labels (y_v, y_w) at the ends of a random edge are distributed, float64 [C, C], symmetric.

    Each edge counts in both orientations, so that both marginals are the share p̄ of edge ends in a class. NaN where no
    edge has two labelled ends.
    """
    y, edges = labels_of(data), undirected_edges(data, convention)
    labels = y[edges][:, (y[edges] >= 0).all(0)]
    num_classes = max(class_count(y), 1)
    counts = neighbor_label_counts(labels, torch.arange(num_classes), num_classes).double()
    return counts / counts.sum()
