"""Writing a graph to a file that other programs read."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gumbel_mpnn.errors import UserError, did_you_mean

SUFFIXES = (".npz", ".csv", ".graphml")


def graph_file(data: Data, suffix: str) -> bytes:
    """The edges of an undirected graph, each once, with weight and origin where there are any, as a file's content.

    Args:
        data: `edge_index`, and per edge `edge_weight` and `edge_origin`, both optional; `node_ids` are used as names.
        suffix: `.npz`, `.csv` or `.graphml`.
    """
    check_suffix(suffix)
    once = (data.edge_index[0] <= data.edge_index[1]).numpy()
    edges = data.edge_index.numpy().T[once]
    columns = {
        name: data[key].numpy()[once]
        for name, key in (("weight", "edge_weight"), ("given", "edge_origin"))
        if data.get(key) is not None
    }
    match suffix:
        case ".npz":
            return _npz(data, edges, columns)
        case ".csv":
            return _csv(_names(data), edges, columns)
    return _graphml(data, edges, columns)


def check_suffix(suffix: str) -> None:
    """Raise a `UserError` unless a graph can be written to files of this kind."""
    if suffix not in SUFFIXES:
        raise UserError(
            f"cannot write a graph as {suffix or 'a file without a suffix'!r}: {did_you_mean(suffix, SUFFIXES)}"
        )


def _npz(data: Data, edges: np.ndarray, columns: dict[str, np.ndarray]) -> bytes:
    out = io.BytesIO()
    arrays: dict[str, Any] = {"edges": edges, "num_nodes": np.int64(data.num_nodes), **columns}
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _csv(names: list[str], edges: np.ndarray, columns: dict[str, np.ndarray]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["source", "target", *columns])
    for (source, target), *values in zip(edges.tolist(), *(c.tolist() for c in columns.values()), strict=True):
        writer.writerow([names[source], names[target], *map(_text, values)])
    return out.getvalue().encode()


def _graphml(data: Data, edges: np.ndarray, columns: dict[str, np.ndarray]) -> bytes:
    try:
        import networkx as nx
    except ImportError:
        raise UserError("writing GraphML needs the package networkx: install it, or write .csv or .npz") from None
    names = _names(data)
    graph = nx.Graph()
    labels = data.y.tolist() if data.get("y") is not None else [None] * len(names)
    classes = data.get("class_names")
    for name, label in zip(names, labels, strict=True):
        known = label is not None and label >= 0
        graph.add_node(name, **({"label": classes[label] if classes else label} if known else {}))
    for (source, target), *values in zip(edges.tolist(), *(c.tolist() for c in columns.values()), strict=True):
        graph.add_edge(names[source], names[target], **dict(zip(columns, values, strict=True)))
    out = io.BytesIO()
    nx.write_graphml(graph, out)
    return out.getvalue()


def _names(data: Data) -> list[str]:
    ids = data.get("node_ids")
    return [str(name) for name in ids] if ids is not None else [str(node) for node in range(int(data.num_nodes or 0))]


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower()
