"""Graphs from NetworkX, and from GraphML files, which NetworkX reads."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch_geometric.data import Data

from gumbel_mpnn.data.columns import Table, Wanted
from gumbel_mpnn.data.tables import describe_source, graph_of_tables, opened
from gumbel_mpnn.util.errors import DataError, as_data_error

if TYPE_CHECKING:
    import pandas as pd

LABEL = "label"
"""Node attribute in which `save_graph` writes the label."""
LABEL_NAMED_BY = "label_attribute"
"""Graph attribute with the name of the node attribute that is the label."""
METRIC = "metric_of_models"
"""Graph attribute with the metric by which models are evaluated."""
WHAT = "attribute"


def from_graphml(path: str | Path, label: str | None = None, features: Wanted = None) -> Data:
    """Read a graph from a GraphML file, which may be compressed (.gz, .bz2).

    The arguments `label` and `features` are documented in `from_networkx`. Files written by `save_graph`
    record which attribute is the label.
    """
    import networkx

    with as_data_error(f"{path} is not a valid GraphML file"):
        graph = networkx.read_graphml(opened(path))
    data = _graph(graph, label, features, where=str(path))
    label, undirected = data.get("label_name"), not graph.is_directed()
    describe_source(data, {"path": path}, features, undirected, reader="graphml", label=label)
    return data


def from_networkx(graph: Any, label: str | None = None, features: Wanted = None) -> Data:
    """Convert a NetworkX graph; edges go both ways unless it is a directed graph.

    Nodes and labels can be any objects; `data.node_ids` and `data.class_names` map predictions back to them. Nodes
    without a label are predicted but never trained on. A node attribute `split` (train, val, test) becomes the masks.
    The edge attributes `weight`, `probability` (numbers) and `given` (bool) become `edge_weight`, `edge_probability`
    and `edge_origin`. Names of attributes are matched ignoring case and surrounding blanks.

    Args:
        graph: any NetworkX graph.
        label: node attribute to predict. None uses the one named by the graph attribute `label_attribute`; if there is
            none, the graph has no labels and can only be measured.
        features: node attributes to learn from: numbers, booleans or categories, as in `from_csv`. None uses all of
            them except label and split, and except an attribute called `label` if no label is known. False leaves `x`
            out, as it is if there are none. The `feature_columns` of another graph give the same attributes and
            categories; the label may be missing then.
    """
    return _graph(graph, label, features, where="the NetworkX graph")


def _graph(graph: Any, label: str | None, features: Wanted, where: str) -> Data:
    ids: list[Hashable] = list(graph)
    if not ids:
        raise DataError(f"{where} has no nodes: add at least one")
    label = graph.graph.get(LABEL_NAMED_BY) if label is None else label
    nodes = Table(_frame((has for _, has in graph.nodes(data=True)), ids, "node"), where, WHAT)
    others = [name for name in nodes.frame if label is None and name.strip().casefold() == LABEL]
    row = {node: k for k, node in enumerate(ids)}
    ends = np.array([(row[a], row[b]) for a, b in graph.edges()], dtype=np.int64).reshape(-1, 2)
    edges = _frame((has for _, _, has in graph.edges(data=True)), list(graph.edges()), "edge")
    if "weight" in edges:
        edges["weight"] = edges["weight"].fillna(1.0)  # as in NetworkX
    edges = edges.drop(columns="id", errors="ignore")  # the XML attribute `id` of an edge in GraphML
    links = Table(edges, where, WHAT)
    data = graph_of_tables(nodes, label, features, ids, ends, links, not graph.is_directed(), others)
    if METRIC in graph.graph:
        data.metric = str(graph.graph[METRIC])
    return data


def _frame(rows: Iterable[Mapping[Any, Any]], index: Sequence[Hashable], of: str) -> pd.DataFrame:
    """Return a table of attributes, NaN where they are missing."""
    import pandas as pd

    cells = [{str(name): value for name, value in has.items()} for has in rows]
    return pd.DataFrame(cells, index=pd.Index(index, name=of, tupleize_cols=False), dtype=object)
