"""Writing graphs to npz, CSV and GraphML files, which this package and other programs can read."""

from __future__ import annotations

import copy
import csv
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import is_undirected

from gumbel_mpnn._util.errors import DataError, DataWarning, UserError, did_you_mean
from gumbel_mpnn._util.files import suffix_of, write_atomically
from gumbel_mpnn.data.identity import MARK
from gumbel_mpnn.data.names import check_different, check_readable
from gumbel_mpnn.data.networks import LABEL, LABEL_NAMED_BY, METRIC
from gumbel_mpnn.data.own import GIVEN, PROBABILITY, SPLIT
from gumbel_mpnn.data.validate import check_label_form
from gumbel_mpnn.graph import check_edges, edge_index_of, says_directed

SUFFIXES = (".npz", ".csv", ".graphml")
MOST_FEATURES = 100
"""Maximum number of features in a GraphML file, which needs a line for each number of each node."""
PARTS = ("train", "val", "test")

Columns = dict[str, NDArray[Any]]


def save_graph(data: Data, path: str | Path) -> None:
    """Write a graph, for example the result of `run.rewire()`, to a file.

    The file can be read with `from_npz`, `from_csv` or `from_graphml`. An undirected edge is written once. The edge
    attributes `edge_weight`, `edge_probability` and `edge_origin` are written as `weight`, `probability` and `given`.
    A CSV file contains only the edges. Npz and GraphML files also contain isolated nodes, features, labels and splits,
    of which GraphML can hold a single one. The label attribute in GraphML is `label`, and the file records this. The
    features of `with_identity_features` are not written.

    Args:
        data: the graph; `node_ids` and `class_names` are used if present.
        path: path that ends in `.npz`, `.csv` or `.graphml`. The file is written completely or not at all.
    """
    path = Path(path)
    write_atomically(path, graph_file(data, suffix_of(path)))


def graph_file(data: Data, suffix: str) -> bytes:
    """Return the content of the file that `save_graph` writes."""
    check_suffix(suffix)
    _check_edges(data)
    if suffix != ".csv":
        _check_nodes(data)
    num_nodes, data = _count_nodes(data), copy.copy(data).cpu()
    data.num_nodes = num_nodes
    if data.get(MARK):
        data.x = None
    names = _names(data)
    edges, columns = _edges(data)
    match suffix:
        case ".npz":
            return _npz(data, edges, columns)
        case ".csv":
            return _csv(names, edges, columns)
    return _graphml(data, names, edges, columns)


def check_suffix(suffix: str) -> None:
    """Raise a `UserError` if a graph cannot be written to files with this suffix."""
    if suffix not in SUFFIXES:
        raise UserError(
            f"cannot write a graph as {suffix or 'a file without a suffix'!r}: {did_you_mean(suffix, SUFFIXES)}"
        )


def is_directed(data: Data) -> bool:
    """Whether `data.undirected` is false, or an edge has no reverse with the same weight, probability and origin."""
    if says_directed(data):
        return True
    attributes = [data[key] for key in _EDGE_COLUMNS.values() if data.get(key) is not None]
    return not is_undirected(data.edge_index, attributes, num_nodes=data.num_nodes)


def _check_edges(data: Data) -> None:
    """Raise a `DataError` if `data` is a batch, or its edges or node ids do not match its nodes."""
    if isinstance(data, Batch):
        raise DataError("a file holds one graph, not a batch: save each graph of data.to_data_list()")
    edge_index = edge_index_of(data)
    num_nodes = _count_nodes(data)
    check_edges(edge_index, num_nodes=num_nodes)
    for name in _EDGE_COLUMNS.values():
        value: Tensor | None = data.get(name)
        if value is not None and value.shape != edge_index.shape[1:]:
            raise DataError(f"{name} must have shape [{edge_index.shape[1]}], not {list(value.shape)}")
    ids = data.get("node_ids")
    if ids is not None and len(ids) != num_nodes:
        raise DataError(f"there are {len(ids)} node_ids for {num_nodes} nodes: give one per node")


def _check_nodes(data: Data) -> None:
    """Raise a `DataError` if features, labels or masks of `data` do not match its nodes."""
    num_nodes = _count_nodes(data)
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        value: Tensor | None = data.get(name)
        if value is not None and (value.dim() == 0 or value.shape[0] != num_nodes):
            raise DataError(f"{name} must have {num_nodes} rows, one per node, but has shape {list(value.shape)}")
    if data.get("x") is not None and data.x.dim() != 2:
        raise DataError(f"the features x must have shape [N, F], not {list(data.x.shape)}")
    if data.get("y") is not None:
        check_label_form(data.y)
        classes = data.get("class_names")
        if classes and num_nodes and int(data.y.max()) >= len(classes):
            raise DataError(f"there are labels up to {int(data.y.max())}, but class_names for {len(classes)} classes")


def _count_nodes(data: Data) -> int:
    """Return the number of nodes; PyG does not look at `y` if a graph has only labels and edges."""
    if data.get("y") is None or data.get("x") is not None or "num_nodes" in data:
        return int(data.num_nodes or 0)
    ends = edge_index_of(data)
    return max(data.y.shape[0] if data.y.dim() else 0, int(ends.max()) + 1 if ends.numel() else 0)


def _edges(data: Data) -> tuple[NDArray[Any], Columns]:
    """Return the edges [E, 2], undirected ones once, and their attributes."""
    index = data.edge_index.numpy()
    once = np.ones(index.shape[1], dtype=bool) if is_directed(data) else index[0] <= index[1]
    found = {name: data.get(key) for name, key in _EDGE_COLUMNS.items()}
    return index.T[once], {name: value.detach().numpy()[once] for name, value in found.items() if value is not None}


def _npz(data: Data, edges: NDArray[Any], columns: Columns) -> bytes:
    arrays: dict[str, Any] = {"edges": edges, "num_nodes": np.int64(data.num_nodes), **columns}
    if data.get("x") is not None:
        arrays["node_features"] = _dense(data)
    if data.get("y") is not None:
        arrays["node_labels"] = data.y.numpy()
    for name in ("class_names", "node_ids"):
        if data.get(name):
            arrays[name] = np.array([str(each) for each in data[name]])
    if data.get("metric"):
        arrays["metric"] = np.array(str(data.metric))
    arrays["directed"] = np.array(is_directed(data))
    if all(data.get(f"{part}_mask") is not None for part in PARTS):
        arrays |= {f"{part}_masks": np.atleast_2d(data[f"{part}_mask"].numpy().T) for part in PARTS}
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _csv(names: list[str], edges: NDArray[Any], columns: Columns) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["source", "target", *columns])
    for (source, target), *values in zip(edges.tolist(), *(c.tolist() for c in columns.values()), strict=True):
        writer.writerow([names[source], names[target], *map(_text, values)])
    return out.getvalue().encode()


def _graphml(data: Data, names: list[str], edges: NDArray[Any], columns: Columns) -> bytes:
    try:
        import networkx as nx
    except ImportError:
        raise UserError("writing GraphML needs networkx: pip install networkx, or write .csv or .npz") from None
    graph = nx.DiGraph() if is_directed(data) else nx.Graph()
    if data.get("y") is not None:
        graph.graph[LABEL_NAMED_BY] = LABEL
    if data.get("metric"):
        graph.graph[METRIC] = str(data.metric)
    for name, attributes in zip(names, _node_attributes(data), strict=True):
        graph.add_node(name, **attributes)
    for (source, target), *values in zip(edges.tolist(), *(c.tolist() for c in columns.values()), strict=True):
        graph.add_edge(names[source], names[target], **dict(zip(columns, values, strict=True)))
    out = io.BytesIO()
    nx.write_graphml(graph, out)
    return out.getvalue()


def _node_attributes(data: Data) -> list[dict[str, Any]]:
    """Return the label, split and features of every node, as far as the graph has them."""
    nodes: list[dict[str, Any]] = [{} for _ in range(int(data.num_nodes or 0))]
    if data.get("y") is not None:
        classes = data.get("class_names")
        for node, label in zip(nodes, data.y.tolist(), strict=True):
            if label >= 0:
                node[LABEL] = str(classes[label]) if classes else label
    splits = {part: data[f"{part}_mask"] for part in PARTS if data.get(f"{part}_mask") is not None}
    if any(mask.dim() > 1 and mask.shape[1] > 1 for mask in splits.values()):
        warnings.warn(
            "the GraphML file is written without splits, since it can hold only one: write .npz to keep them",
            DataWarning,
            stacklevel=5,
        )
        splits = {}
    for part, mask in splits.items():
        for chosen in mask.flatten().nonzero().flatten().tolist():
            nodes[chosen][SPLIT] = part
    if data.get("x") is not None:
        if data.x.shape[1] > MOST_FEATURES:
            warnings.warn(
                f"the GraphML file is written without the {data.x.shape[1]} features, which would make it very large: "
                "write .npz to keep them",
                DataWarning,
                stacklevel=5,
            )
            return nodes
        for node, values in zip(nodes, _dense(data).tolist(), strict=True):
            node.update({f"x{column}": value for column, value in enumerate(values)})
    return nodes


def _dense(data: Data) -> NDArray[Any]:
    x = data.x.detach()
    features: NDArray[Any] = (x if x.layout is torch.strided else x.to_dense()).float().numpy()
    return features


def _names(data: Data) -> list[str]:
    ids = data.get("node_ids")
    names = [str(name) for name in (range(int(data.num_nodes or 0)) if ids is None else ids)]
    check_different(names, "the graph")
    check_readable(names, "the node id", "the graph")
    check_readable(data.get("class_names") or (), "the class name", "the graph")
    return names


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower()


_EDGE_COLUMNS = {"weight": "edge_weight", PROBABILITY: "edge_probability", GIVEN: "edge_origin"}
