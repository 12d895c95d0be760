"""What every measure reads of a graph: its undirected edges under a convention, and its labels."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, unknown_name
from gumbel_mpnn.graph import check_edges, edge_index_of, pairs_of, undirected_keys

Convention = Literal["coalesced", "as_listed"]
MOST_CLASSES = 10_000
"""Several measures have a row or a column for each."""
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)


def undirected_edges(data: Data, convention: Convention = "coalesced") -> Tensor:
    """The edges that are counted, [2, E]; each stands for both of its directions.

    Args:
        data: A graph; its edge weights are not looked at.
        convention: `coalesced` takes every pair of different nodes once, however often and in whichever direction it is
            listed. `as_listed` takes every column of `edge_index` as an edge of its own, self-loops among them.
    """
    if convention not in CONVENTIONS:
        raise unknown_name("edge convention", convention, CONVENTIONS)
    edge_index, num_nodes = _edge_index(data), node_count(data)
    if convention == "as_listed":
        return edge_index
    return pairs_of(undirected_keys(edge_index, num_nodes), num_nodes)


def node_count(data: Data) -> int:
    """Number of nodes, N, which is at least one: `num_nodes` or the rows of `x` or `y`, else as the edges have it."""
    y = data.get("y")
    said = "num_nodes" in data or data.get("x") is not None
    count = data.num_nodes if said or y is None or y.dim() == 0 else len(y)
    if not count:
        raise DataError("the graph has no nodes: give it labels or features, or set data.num_nodes")
    return int(count)


def labels_of(data: Data) -> Tensor:
    """The labels, int64 [N] on the CPU; a node without one has a negative number."""
    y = data.get("y")
    if y is None:
        raise DataError("the graph has no labels y: give an integer per node, -1 where it is unknown")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool or y.shape != (node_count(data),):
        raise DataError(f"the labels y must be integers of shape [{node_count(data)}], not {y.dtype} {list(y.shape)}")
    labels: Tensor = y.detach().cpu().long()
    return labels


def class_count(y: Tensor) -> int:
    """Number of classes of the labels `y` [N], C: one more than the highest label."""
    highest = int(y.max()) if len(y) else -1
    if highest >= MOST_CLASSES:
        raise DataError(f"the highest label is {highest}, but classes are numbered from 0 and {MOST_CLASSES} at most")
    return max(highest + 1, 0)


def _edge_index(data: Data) -> Tensor:
    # PyG's EdgeIndex checks itself after every operation: a plain tensor is what is counted with.
    ends = edge_index_of(data).as_subclass(Tensor).detach().cpu().long()
    check_edges(ends, num_nodes=node_count(data))
    return ends
