"""Writing graphs to npz, CSV and GraphML files, which this package and other programs can read."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Batch, Data
from torch_geometric.utils import is_undirected

from gumbel_mpnn.data.check import IDENTITY, check_label_form
from gumbel_mpnn.data.columns import warn
from gumbel_mpnn.data.networks import LABEL, LABEL_NAMED_BY, METRIC
from gumbel_mpnn.data.splits import MASKS, by_split
from gumbel_mpnn.data.tables import EDGE_ATTRIBUTES, PARTS, SPLIT
from gumbel_mpnn.graph import check_edges, edge_index_of
from gumbel_mpnn.graph.pairs import says_directed
from gumbel_mpnn.util.errors import DataError, UserError, did_you_mean
from gumbel_mpnn.util.files import suffix_of, write_atomically

MOST_FEATURES = 100
"""Maximum number of features in a GraphML file, which needs a line for each number of each node."""

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
    write_atomically(Path(path), graph_file(data, suffix_of(path)))


def graph_file(data: Data, suffix: str) -> bytes:
    """Return the content of the file that `save_graph` writes."""
    if suffix not in _WRITERS:
        raise UserError(
            f"cannot write a graph as {suffix or 'a file without a suffix'!r}: {did_you_mean(suffix, _WRITERS)}"
        )
    if isinstance(data, Batch):
        raise DataError("a file holds one graph, not a batch: save each graph of data.to_data_list()")
    has_labels = data.get("y") is not None
    # PyG does not look at y if a graph has only labels and edges.
    num_nodes = len(data.y) if data.get("x") is None and has_labels else int(data.num_nodes or 0)
    check_edges(edge_index_of(data), num_nodes=num_nodes)
    data = copy.copy(data).cpu()
    data.num_nodes = num_nodes
    if data.get("x") is not None:
        data.x = None if data.get(IDENTITY) else data.x.detach().to_dense().float()
    if has_labels:
        check_label_form(data.y)
    names = [str(name) for name in (range(num_nodes) if data.get("node_ids") is None else data.node_ids)]
    if len(names) != num_nodes or len(set(names)) < len(names):
        raise DataError(f"the {num_nodes} nodes need as many different node_ids: set data.node_ids, or delete it")
    index = data.edge_index.numpy()
    once = np.ones(index.shape[1], dtype=bool) if is_directed(data) else index[0] <= index[1]
    columns = {
        name: data[key].detach().numpy()[once] for name, key in EDGE_ATTRIBUTES.items() if data.get(key) is not None
    }
    return _WRITERS[suffix](data, names, index.T[once], columns)


def is_directed(data: Data) -> bool:
    """Whether `data.undirected` is false, or an edge has no reverse with the same weight, probability and origin."""
    if says_directed(data):
        return True
    attributes = [data[key] for key in EDGE_ATTRIBUTES.values() if data.get(key) is not None]
    return not is_undirected(data.edge_index, attributes, num_nodes=data.num_nodes)


def _npz(data: Data, _: list[str], edges: NDArray[Any], columns: Columns) -> bytes:
    arrays: dict[str, Any] = {"edges": edges, "num_nodes": np.int64(data.num_nodes), **columns}
    if data.get("x") is not None:
        arrays["node_features"] = data.x.numpy()
    if data.get("y") is not None:
        arrays["node_labels"] = data.y.numpy()
    for name in ("class_names", "node_ids"):
        if data.get(name):
            arrays[name] = np.array([str(each) for each in data[name]])
    if data.get("metric"):
        arrays["metric"] = np.array(str(data.metric))
    arrays["directed"] = np.array(is_directed(data))
    if all(data.get(mask) is not None for mask in MASKS):
        arrays |= {f"{mask}s": np.atleast_2d(data[mask].numpy().T) for mask in MASKS}
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _csv(_: Data, names: list[str], edges: NDArray[Any], columns: Columns) -> bytes:
    import pandas as pd

    ends = np.array(names, dtype=object)[edges]
    words = {name: np.where(values, "true", "false") for name, values in columns.items() if values.dtype == bool}
    table = pd.DataFrame({"source": ends[:, 0], "target": ends[:, 1], **columns, **words})
    text: str = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return text.encode()


def _graphml(data: Data, names: list[str], edges: NDArray[Any], columns: Columns) -> bytes:
    import networkx as nx

    graph = nx.DiGraph() if is_directed(data) else nx.Graph()
    if data.get("y") is not None:
        graph.graph[LABEL_NAMED_BY] = LABEL
    if data.get("metric"):
        graph.graph[METRIC] = str(data.metric)
    graph.add_nodes_from(names)
    for name, of_nodes in _node_attributes(data).items():
        nx.set_node_attributes(graph, {names[node]: value for node, value in of_nodes.items()}, name)
    for (source, target), *values in zip(edges.tolist(), *(c.tolist() for c in columns.values()), strict=True):
        graph.add_edge(names[source], names[target], **dict(zip(columns, values, strict=True)))
    out = io.BytesIO()
    nx.write_graphml(graph, out)
    return out.getvalue()


def _node_attributes(data: Data) -> dict[str, dict[int, Any]]:
    """Return the label, split and features of nodes, as far as the graph has them."""
    classes, labels = data.get("class_names"), [] if data.get("y") is None else data.y.tolist()
    known = {node: label for node, label in enumerate(labels) if label >= 0}
    found = {LABEL: {node: str(classes[label]) if classes else label for node, label in known.items()}}
    masks = {part: by_split(data[mask]) for part, mask in zip(PARTS, MASKS, strict=True) if data.get(mask) is not None}
    if any(mask.shape[1] > 1 for mask in masks.values()):
        warn("the GraphML file is written without splits, since it can hold only one: write .npz to keep them")
        masks = {}
    found[SPLIT] = {node: part for part, mask in masks.items() for node in mask[:, 0].nonzero().flatten().tolist()}
    x = () if data.get("x") is None else data.x.T
    if len(x) > MOST_FEATURES:
        warn(
            f"the GraphML file is written without the {len(x)} features, which would make it very large: write .npz to"
            " keep them"
        )
        return found
    return found | {f"x{column}": dict(enumerate(values.tolist())) for column, values in enumerate(x)}


_WRITERS: dict[str, Callable[[Data, list[str], NDArray[Any], Columns], bytes]] = {
    ".npz": _npz,
    ".csv": _csv,
    ".graphml": _graphml,
}
