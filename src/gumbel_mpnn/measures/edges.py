"""Undirected edges, number of nodes and labels of a graph, as all measures read them."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.graph import check_edges, edge_index_of, pair_key, pairs_of, tensor_of, undirected_keys
from gumbel_mpnn.util.errors import DataError, unknown_name

Convention = Literal["coalesced", "as_listed"]
MOST_CLASSES = 10_000
"""Maximum number of classes: several measures have a row or a column per class."""
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)


def undirected_edges(data: Data, convention: Convention = "coalesced") -> Tensor:
    """Undirected edges of a graph, int64 [2, E].

    Args:
        data: A graph; edge weights are ignored.
        convention: `coalesced` counts every pair of distinct nodes once, no matter how often and in which direction it
            is listed. `as_listed` counts every column of `edge_index` as an edge, including self-loops.
    """
    if convention not in CONVENTIONS:
        raise unknown_name("edge convention", convention, CONVENTIONS)
    edge_index, num_nodes = _edge_index(data), node_count(data)
    if convention == "as_listed":
        return edge_index
    return pairs_of(undirected_keys(edge_index, num_nodes), num_nodes)


def directed_edges(data: Data) -> Tensor:
    """Edges of a graph with their directions, int64 [2, E]: every ordered pair of distinct nodes once, sorted."""
    edge_index, num_nodes = _edge_index(data), node_count(data)
    return pairs_of(pair_key(edge_index[:, edge_index[0] != edge_index[1]], num_nodes).unique(), num_nodes)


def node_count(data: Data) -> int:
    """Number of nodes N ≥ 1: `num_nodes`, else the rows of `x` or `y`, else inferred from the edges."""
    y = tensor_of(data, "y")
    said = "num_nodes" in data or data.get("x") is not None
    count = data.num_nodes if said or y is None or y.dim() == 0 else len(y)
    if not count:
        raise DataError("the graph has no nodes: add labels or features, or set data.num_nodes")
    return int(count)


def labels_of(data: Data) -> Tensor:
    """Labels, int64 [N] on the CPU; negative for unlabelled nodes."""
    y = tensor_of(data, "y")
    if y is None:
        raise DataError("the graph has no labels y: set one integer per node, -1 if unknown")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool or y.shape != (node_count(data),):
        raise DataError(f"the labels y must be integers of shape [{node_count(data)}], not {y.dtype} {list(y.shape)}")
    labels: Tensor = y.detach().cpu().long()
    return labels


def class_count(y: Tensor) -> int:
    """Number of classes C of the labels `y` [N]: the largest label plus 1."""
    highest = int(y.max()) if len(y) else -1
    if highest >= MOST_CLASSES:
        raise DataError(f"the highest label is {highest}, but classes are numbered from 0 and {MOST_CLASSES} at most")
    return max(highest + 1, 0)


def _edge_index(data: Data) -> Tensor:
    # A plain tensor, because PyG's EdgeIndex validates itself after every operation.
    edge_index = edge_index_of(data)
    check_edges(edge_index, num_nodes=node_count(data))
    ends = edge_index.as_subclass(Tensor).detach().cpu().long()
    return ends
