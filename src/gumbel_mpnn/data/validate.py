"""Validation of graphs: errors for what cannot be trained on, and counts of what is merely unusual."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.names import among, class_names_of, node_ids_of, node_name
from gumbel_mpnn.data.raw import label_hint
from gumbel_mpnn.data.splits import check_masks
from gumbel_mpnn.graph import check_edges, check_weights, edge_index_of, pair_key, pairs_of, undirected_keys


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
