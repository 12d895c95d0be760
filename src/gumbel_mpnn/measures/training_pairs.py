"""Homophily separately for edges among training nodes, among other nodes, and between both."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn._util.numbers import none_if_nan
from gumbel_mpnn.measures.edges import labels_of, node_count, undirected_edges
from gumbel_mpnn.measures.homophily import adjusted_homophily, edge_homophily, label_informativeness

PAIRS = ("train_train", "train_other", "other_other")
"""Kinds of edges, by how many of their ends are training nodes: two, one or none."""
OF_PAIRS = {
    "edge_homophily": edge_homophily,
    "adjusted_homophily": adjusted_homophily,
    "label_informativeness": label_informativeness,
}
PairValues = dict[str, int | float | None]


def training_pairs(data: Data, train_mask: Tensor) -> dict[str, PairValues]:
    """Number of edges, homophily and label informativeness for each kind of edges in `PAIRS`.

    Only edges between labelled nodes count. A value is None if it is not defined.

    Args:
        data: A graph with labels `y` [N], which are -1 for unlabelled nodes.
        train_mask: Training nodes, [N].
    """
    if train_mask.shape != (node_count(data),):
        raise DataError(f"the training mask must have the shape [{node_count(data)}], not {list(train_mask.shape)}")
    y, edges = labels_of(data), undirected_edges(data)
    edges = edges[:, (y[edges] >= 0).all(0)]
    ends = train_mask.cpu()[edges].sum(0)
    found: dict[str, PairValues] = {}
    for kind, count in zip(PAIRS, (2, 1, 0), strict=True):
        part = Data(edge_index=edges[:, ends == count], y=y, num_nodes=len(y))
        found[kind] = {"num_edges": part.edge_index.shape[1]}
        found[kind] |= {name: none_if_nan(function(part)) for name, function in OF_PAIRS.items()}
    return found
