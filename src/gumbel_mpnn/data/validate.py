"""Validation of graphs: errors for what cannot be trained on, warnings of what is ignored, counts of the unusual."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn.data.names import among, class_names_of, node_ids_of, node_name
from gumbel_mpnn.data.raw import label_hint
from gumbel_mpnn.data.splits import check_masks
from gumbel_mpnn.graph import (
    check_edges,
    check_weights,
    contains,
    edge_index_of,
    pair_key,
    pairs_of,
    says_directed,
    undirected_keys,
)


@dataclass(frozen=True)
class GraphFacts:
    """Counts of a graph. Edges and degrees are undirected: each edge counts once, and self-loops do not count."""

    num_nodes: int
    num_edges: int
    num_self_loops: int
    num_duplicate_edges: int
    num_isolated: int
    num_classes: int
    num_unlabelled: int
    degree_min: int
    degree_mean: float
    degree_max: int


def check(data: Data, require_all_classes: bool = True) -> GraphFacts:
    """Validate a graph and return its counts.

    Self-loops, duplicate edges, isolated nodes and unlabelled nodes are allowed. Features and masks are optional.

    Args:
        data: the graph to validate.
        require_all_classes: passed on to `check_masks`.

    Raises:
        DataError: if the graph cannot be trained on; the message says why and where.
    """
    validate(data, require_all_classes)
    return facts_of(data)


def validate(data: Data, require_all_classes: bool = True) -> None:
    """Raise a `DataError` if a graph cannot be trained on; `check` returns its counts as well."""
    _check_labels(data)
    _check_features(data)
    _check_edges(data)
    if any(data.get(name) is not None for name in ("train_mask", "val_mask", "test_mask")):
        check_masks(data, require_all_classes)


def _check_labels(data: Data) -> None:
    y = data.get("y")
    if y is None:
        raise DataError("the graph has no labels y: give one integer per node, -1 if the label is unknown")
    check_label_form(y)
    if len(y) == 0:
        raise DataError("the graph has no nodes: give at least one")
    class_names = class_names_of(data)
    num_classes = len(class_names) if class_names else len(y)
    wrong = ((y < -1) | (y >= num_classes)).nonzero().flatten()
    if len(wrong):
        node = int(wrong[0])
        raise DataError(
            f"{node_name(data, node)} has the label {int(y[node])}: labels are 0 to {num_classes - 1}, or -1 for"
            " unknown"
        )
    if (y < 0).all():
        raise DataError("no node of the graph has a label: give at least the training nodes one")


def check_label_form(y: Tensor) -> None:
    """Raise a `DataError` unless labels are integers of shape [N]."""
    if not isinstance(y, Tensor):
        raise DataError(f"the labels y must be a tensor of integers of shape [N], not a {type(y).__name__}: convert it")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool or y.dim() != 1:
        form = f"{y.dtype} {list(y.shape)}"
        raise DataError(f"the labels y must be integers of shape [N], not {form}: {_label_hint(y)}")


def _label_hint(y: Tensor) -> str:
    if y.dim() == 2 and 1 in y.shape and not y.is_floating_point():
        return "use data.y.view(-1)"
    return label_hint((y.double() if y.is_floating_point() else y).detach().cpu().numpy())


def _check_features(data: Data) -> None:
    x = data.get("x")
    if x is None:
        return
    if not isinstance(x, Tensor):
        raise DataError(f"the features x must be a tensor of shape [N, F], not a {type(x).__name__}: convert it")
    if x.dim() != 2 or not x.is_floating_point():
        raise DataError(f"the features x must be floats of shape [N, F], not {x.dtype} {list(x.shape)}")
    if len(x) != len(data.y):
        raise DataError(f"there are features x for {len(x)} nodes, but labels y for {len(data.y)}")
    finite = torch.isfinite(x)
    if not finite.all():
        node, column = (~finite).nonzero()[0].tolist()
        value = "NaN" if torch.isnan(x[node, column]) else "infinite"
        count = int((~finite[:, column]).sum())
        raise DataError(
            f"feature {column} of {node_name(data, node)} is {value}{among(count)}: give every node finite features"
        )


def _check_edges(data: Data) -> None:
    weight = data.get("edge_weight")
    check_edges(edge_index_of(data), weight, len(data.y))
    if weight is not None:
        check_weights(weight, partial(_edge_name, data))


def facts_of(data: Data) -> GraphFacts:
    """Counts of a graph that is valid."""
    edge_index, y = data.edge_index.as_subclass(Tensor).cpu(), data.y.cpu()
    arcs = pairs_of(torch.unique(pair_key(edge_index, len(y))), len(y))
    ends = pairs_of(undirected_keys(arcs, len(y)), len(y))
    degree = ends.flatten().bincount(minlength=len(y))
    return GraphFacts(
        num_nodes=len(y),
        num_edges=ends.shape[1],
        num_self_loops=int((arcs[0] == arcs[1]).sum()),
        num_duplicate_edges=edge_index.shape[1] - arcs.shape[1],
        num_isolated=int((degree == 0).sum()),
        num_classes=len(torch.unique(y[y >= 0])),
        num_unlabelled=int((y < 0).sum()),
        degree_min=int(degree.min()),
        degree_mean=float(degree.double().mean()),
        degree_max=int(degree.max()),
    )


def _edge_name(data: Data, edge: int) -> str:
    source, target = data.edge_index.as_subclass(Tensor)[:, edge].tolist()
    ids = node_ids_of(data)
    if ids is None:
        return f"edge {edge} from node {source} to node {target}"
    return f"the edge from {ids[source]!r} to {ids[target]!r}"


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
