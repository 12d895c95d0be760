"""Graphs that the user gives are brought into one form, and checked before models are trained on them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data, Dataset, HeteroData, TemporalData
from torch_geometric.utils import coalesce, to_undirected

from gumbel_mpnn.data.columns import classes_of, warn
from gumbel_mpnn.data.splits import MASKS, among, check_masks, node_name
from gumbel_mpnn.graph import check_edges, contains, edge_index_of, pair_key, pairs_of, undirected_keys
from gumbel_mpnn.graph.pairs import check_weights, is_whole, says_directed
from gumbel_mpnn.util.errors import DataError, UserError, counted
from gumbel_mpnn.util.tensors import coalesced, dense_if_small

OURS = "models classify the nodes of one graph"
IDENTITY = "identity_features"
"""Attribute of a graph whose features are the identity matrix, which was made here and is not written to files."""
_ARRAYS = ("x", "edge_index", "edge_weight", *MASKS, "candidate_index", "batch")
_OTHER_KINDS: Mapping[type, str] = {
    HeteroData: "convert it, for example by data.to_homogeneous()",
    TemporalData: "give the edges up to one point in time as a Data",
    Dataset: "give one graph of this data set, as dataset[0]",
    list: "join graphs by Batch.from_data_list if their nodes have labels",
}


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


def check_kind(dataset: object) -> None:
    """Raise a `UserError` for a heterogeneous or temporal graph, a PyG data set, or a list of graphs."""
    for kind, advice in _OTHER_KINDS.items():
        if isinstance(dataset, kind):
            raise UserError(f"a {type(dataset).__name__} is not supported, since {OURS}: {advice}")


def as_graph(data: Data) -> Data:
    """Return a graph whose features, labels, edges and masks are tensors: a copy if something had to be converted.

    Labels may be a list or an array of numbers or of names, which become `class_names`; features may be integers or
    booleans. The graphs of a `Batch` become one.

    Raises:
        DataError: for what cannot be converted, and for labels that are not one class of each node.
    """
    num_graphs = data.num_graphs if isinstance(data, Batch) else 1
    data = as_tensors(joined(data))
    y = data.get("y")
    if y is None:
        return data
    if not isinstance(y, Tensor):
        data = copy.copy(data).update(_labels(data, y))
    if is_whole(data.y) and data.y.dtype != torch.int64:
        data = copy.copy(data).update({"y": data.y.long()})  # uint8 has no -1, and torch cannot compare uint16
    if (len(data.y) if data.y.dim() else 1) == num_graphs < int(data.num_nodes or 0):
        raise DataError(
            f"graph classification is not supported by fit: y has one label per graph, but {OURS}, so use"
            " gm.GumbelMPNN in a training loop of your own, as in examples/graph_classification.py"
        )
    check_label_form(data.y)
    return data


def as_tensors(data: Data) -> Data:
    """Return a graph whose features, edges and masks are tensors, a copy if something had to be converted."""
    if not isinstance(data, Data):
        return data
    given = {name: value for name in _ARRAYS if (value := data.get(name)) is not None}
    changes = {name: _tensor(name, value) for name, value in given.items() if not isinstance(value, Tensor)}
    x = changes.get("x", given.get("x"))
    if x is not None and not (x.is_floating_point() or x.is_complex()):
        changes["x"] = x.float()
    return copy.copy(data).update(changes) if changes else data


def joined(data: Data) -> Data:
    """Return a `Batch` as one graph, with the names that all its graphs share; other graphs are returned as they are.

    Its attribute `batch` says which nodes belong together. Node ids are kept if no two nodes have the same.
    """
    if not isinstance(data, Batch):
        return data
    out = Data.from_dict({name: data[name] for name in data.keys() if name not in ("ptr", "source_files")})  # noqa: SIM118
    for name in ("class_names", "feature_columns", "metric"):
        parts = data.get(name) or [None]
        if any(part != parts[0] for part in parts):
            raise DataError(f"the graphs of the batch have different {name}, such as {parts[0]}: give all the same")
        out[name] = parts[0]
    ids = [each for part in data.get("node_ids") or () for each in part]
    out.node_ids = ids if ids and len(set(map(str, ids))) == len(ids) else None
    return out


def _array(values: object) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.array(values)  # a copy, since torch cannot hold arrays that are read-only
    except ValueError:  # rows of different lengths
        return np.array(None)
    if array.dtype.kind == "O":  # Python numbers get the type that a list of them has
        array = np.array(array.tolist())
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _tensor(name: str, value: object) -> Tensor:
    array = _array(value)
    if array.dtype.kind not in "biufc" or array.ndim == 0:
        raise DataError(
            f"data.{name} must be a tensor or an array of numbers, not a {type(value).__name__}: convert it"
        )
    tensor = torch.from_numpy(array)
    # Python's numbers have no precision of their own.
    return tensor.float() if isinstance(value, list | tuple) and tensor.is_floating_point() else tensor


def _labels(data: Data, y: Any) -> dict[str, Any]:
    """Return `y` as a tensor [N] and, if it holds names, `class_names`; missing labels become -1."""
    values = _array(y)
    if values.dtype.kind in "biuf":
        return {"y": torch.from_numpy(values)}
    cells = y if isinstance(y, list | tuple) else values.tolist()  # an array of words has None and NaN as words
    known = [None if cell is None or cell != cell else cell for cell in cells] if values.ndim == 1 else []
    if known and all(cell is None or isinstance(cell, int) for cell in known):
        return {"y": torch.tensor([-1 if cell is None else cell for cell in known])}
    if not known or not all(isinstance(cell, str | None) for cell in known):
        raise DataError("data.y must have one whole number for each node, or one name, and None if it is unknown")
    names = ["" if cell is None else cell.strip() for cell in known]
    numbers, class_names = classes_of(names, data.get("node_ids") or range(len(names)), "data.y")
    return {"y": torch.from_numpy(numbers), "class_names": class_names}


def check(data: Data) -> GraphFacts:
    """Raise a `DataError` if a graph cannot be trained on, which says why and where; return its counts.

    Self-loops, duplicate edges, isolated nodes and unlabelled nodes are allowed. Features and masks are optional.
    """
    data = joined(data)
    y, x = data.get("y"), data.get("x")
    if y is None:
        raise DataError("the graph has no labels y: give one integer per node, -1 if the label is unknown")
    check_label_form(y)
    num_classes = len(data.get("class_names") or y)
    wrong = ((y < -1) | (y >= num_classes)).nonzero().flatten()
    if len(wrong):
        raise DataError(
            f"{node_name(data, int(wrong[0]))} has the label {int(y[wrong[0]])}: labels are 0 to"
            f" {num_classes - 1}, or -1 for unknown"
        )
    if (y < 0).all():
        raise DataError("no node of the graph has a label: give at least the training nodes one")
    if x is not None:
        _check_features(data, x)
    check_edges(edge_index_of(data), data.get("edge_weight"), len(data.y))
    if data.get("edge_weight") is not None:
        check_weights(data.edge_weight)
    if any(data.get(name) is not None for name in MASKS):
        check_masks(data)
    return facts_of(data)


def check_label_form(y: Tensor) -> None:
    """Raise a `DataError` unless labels are integers of shape [N]."""
    if not isinstance(y, Tensor) or not is_whole(y) or y.dim() != 1:
        raise DataError(
            f"the labels y must be integers of shape [N], one class of each node, not {_form(y)}: number classes from"
            " 0, with -1 for unknown, bin quantities, and use data.y.view(-1) for one column or data.y.argmax(1) if"
            " they are one-hot"
        )


def _form(value: object) -> str:
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _check_features(data: Data, x: Tensor) -> None:
    if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point() or len(x) != len(data.y):
        raise DataError(f"the features x must be floats of shape [{len(data.y)}, F], not {_form(x)}")
    wrong = (~torch.isfinite(x)).nonzero()
    if len(wrong):
        node, column = wrong[0].tolist()
        raise DataError(
            f"feature {column} of {node_name(data, node)} is {float(x[node, column])}"
            f"{among(int((wrong[:, 1] == column).sum()))}: give every node finite features"
        )


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


def warn_of_ignored(data: Data, undirected: bool) -> None:
    """Warn about edge features, self-loops and directions of a valid graph that are ignored."""
    source, target = index = edge_index_of(data).as_subclass(Tensor)
    loops = len(source[source == target].unique())
    if data.get("edge_attr") is not None:
        warn(
            "the edge_attr of this graph is ignored, since models use edge weights only: set data.edge_weight if it is"
            " a weight, or delete it"
        )
    if loops:
        verb = "are" if loops > 1 else "is"
        warn(f"this graph has {counted(loops, 'self-loop')}, which {verb} left out: convolutions add their own")
    if undirected and says_directed(data):
        warn(
            "this graph is directed (undirected is false), but is treated as undirected: set data.undirected=false to"
            " train on directed edges"
        )
    elif undirected and data.get("undirected") is None:
        num_nodes = int(data.num_nodes or 0)
        keys = pair_key(index[:, source != target], num_nodes).unique()
        one_way = int((~contains(keys, pair_key(pairs_of(keys, num_nodes).flip(0), num_nodes))).sum())
        if 2 * one_way > len(keys):
            warn(
                f"{one_way} of the {len(keys)} edges of this graph have no reverse, but it is treated as undirected:"
                " set the setting data.undirected=false to train on directed edges, or data.undirected = True on the"
                " graph if it is undirected"
            )


def warn_of_empty_classes(data: Data) -> None:
    """Warn if the labels of a valid graph leave out numbers, unless `class_names` says which classes there are."""
    distinct, classes = len(data.y[data.y >= 0].unique()), int(data.y.max()) + 1
    if distinct < classes and not data.get("class_names"):
        warn(
            f"the labels y are {distinct} different numbers up to {classes - 1}, so that there are {classes} classes,"
            f" {classes - distinct} without a node: number classes from 0"
        )


def set_edges(data: Data, undirected: bool) -> None:
    """Sort the edges of `data` and merge duplicates; add the reverse of each edge if `undirected`.

    A merged edge gets the mean of the weights, not the sum: a file that lists an undirected edge in both directions
    does not mean an edge of twice the weight. It counts as given if one of its duplicates does.
    """
    names = [name for name in ("edge_weight", "edge_probability", "edge_origin") if data.get(name) is not None]
    merge = to_undirected if undirected else coalesce
    values = [data[name].float() for name in names]
    data.edge_index, merged = merge(data.edge_index, values, num_nodes=data.num_nodes, reduce="mean")
    for name, value in zip(names, merged, strict=True):
        data[name] = value > 0 if name == "edge_origin" else value


def with_identity_features(data: Data) -> Data:
    """Return a copy of a graph whose features are the identity matrix: each node has one of its own.

    Models can then learn from the edges only, and cannot be applied to other graphs. The matrix of a large graph is a
    sparse tensor. `data.identity_features` is true.
    """
    num_nodes = int(data.num_nodes or 0) if data.get("y") is None else len(data.y)
    device = edge_index_of(data, or_empty=True).device
    diagonal, ones = torch.arange(num_nodes, device=device).expand(2, -1), torch.ones(num_nodes, device=device)
    size = (num_nodes, num_nodes)
    matrix = torch.sparse_coo_tensor(diagonal, ones, size, is_coalesced=True, check_invariants=False)
    return copy.copy(data).update({"x": dense_if_small(matrix), IDENTITY: True})


def has_identity_features(data: Data) -> bool:
    """Whether each node has one feature of its own, made here or by the user, so that features say nothing."""
    x = data.get("x")
    if data.get(IDENTITY) or x is None or x.dim() != 2 or x.shape[0] != x.shape[1]:
        return bool(data.get(IDENTITY))
    row, col = coalesced(x).indices()
    return len(row) == len(x) == len(row.unique()) == len(col.unique())
