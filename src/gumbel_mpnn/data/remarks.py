"""Warnings about what training ignores in a graph, and about classes without a node."""

from __future__ import annotations

import warnings

from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataWarning
from gumbel_mpnn.data.names import class_names_of
from gumbel_mpnn.graph import contains, edge_index_of, pair_key, says_directed


def warn_of_ignored(data: Data, undirected: bool) -> None:
    """Warn about edge features, self-loops and directions of a valid graph that are ignored."""
    for message in (_edge_features(data), _self_loops(data), _directions(data) if undirected else _both_ways(data)):
        if message:
            warnings.warn(message, DataWarning, stacklevel=3)


def warn_of_empty_classes(data: Data) -> None:
    """Warn if the labels of a valid graph leave out numbers, which become classes without a node.

    A graph with `class_names` says itself which classes there are.
    """
    labels = data.y[data.y >= 0]
    distinct, classes = len(labels.unique()), int(labels.max()) + 1
    if distinct < classes and not class_names_of(data):
        empty = f"{classes - distinct} of them" if classes - distinct > 1 else "one of them"
        warnings.warn(
            f"the labels y are {distinct} different numbers up to {classes - 1}, so that there are {classes} classes,"
            f" {empty} without a node: number classes from 0",
            DataWarning,
            stacklevel=3,
        )


def _edge_features(data: Data) -> str:
    if data.get("edge_attr") is None:
        return ""
    return (
        "the edge_attr of this graph is ignored, since models use edge weights only: set data.edge_weight if it is a"
        " weight, or delete it"
    )


def _self_loops(data: Data) -> str:
    source, target = edge_index_of(data).as_subclass(Tensor)
    count = len(source[source == target].unique())
    if not count:
        return ""
    return (
        f"this graph has {count} self-loop{'s' * (count > 1)}, which {'are' if count > 1 else 'is'} left out:"
        " convolutions add their own"
    )


def _both_ways(data: Data) -> str:
    """Directions that were lost when files were read."""
    source = data.get("source_files")
    if not isinstance(source, dict) or not source.get("undirected"):
        return ""
    return (
        "this graph was read as undirected, so that data.undirected=false changes nothing: read it with"
        " undirected=False"
    )


def _directions(data: Data) -> str:
    if says_directed(data):
        return (
            "this graph is directed (undirected is false), but is treated as undirected: set data.undirected=false to"
            " train on directed edges"
        )
    if data.get("undirected") is not None:
        return ""
    index = edge_index_of(data).as_subclass(Tensor)
    num_nodes = int(data.num_nodes or 0)
    keys = pair_key(index[:, index[0] != index[1]], num_nodes).unique()
    one_way = int((~contains(keys, keys % max(num_nodes, 1) * num_nodes + keys // max(num_nodes, 1))).sum())
    if 2 * one_way <= len(keys):
        return ""
    return (
        f"{one_way} of the {len(keys)} edges of this graph have no reverse, but it is treated as undirected: set the"
        " setting data.undirected=false to train on directed edges, or data.undirected = True on the graph if it is"
        " undirected"
    )
