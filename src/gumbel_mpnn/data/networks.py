"""Graphs from NetworkX, and from GraphML files, which NetworkX reads."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError, did_you_mean, reason
from gumbel_mpnn.data.column_kinds import all_features, named_features, trained_features
from gumbel_mpnn.data.feature_columns import Features, Wanted, as_trained, check_once, names_of
from gumbel_mpnn.data.input_file import InputFile
from gumbel_mpnn.data.names import chosen_name, known_name, same_names
from gumbel_mpnn.data.network_features import Attributes, NodeAttributes
from gumbel_mpnn.data.own import (
    GIVEN,
    PROBABILITY,
    SPLIT,
    assemble,
    described,
    named_after,
    source_files,
    warn_of_unused,
)

LABEL = "label"
"""Node attribute in which `save_graph` writes the label."""
LABEL_NAMED_BY = "label_attribute"
"""Graph attribute with the name of the node attribute that is the label."""
METRIC = "metric_of_models"
"""Graph attribute with the metric by which models are evaluated."""

_EDGE_ID = "id"  # edge attribute in which NetworkX keeps the XML attribute `id` of an edge in GraphML


def from_graphml(
    path: str | Path | InputFile,
    label: str | None = None,
    features: Wanted | Literal[False] | None = None,
    as_listed: bool = False,
) -> Data:
    """Read a graph from a GraphML file.

    The arguments `label`, `features` and `as_listed` are documented in `from_networkx`. Files written by `save_graph`
    record which attribute is the label.
    """
    networkx, path = _networkx(), InputFile.of(path)
    content = path.open()
    try:
        with content:
            graph = networkx.read_graphml(content)
    except MemoryError:
        raise
    except Exception as error:  # networkx and its XML parser raise many kinds for files that they do not expect
        raise DataError(f"{path} is not a valid GraphML file ({reason(error)})") from error
    data = named_after(path, _convert(graph, label, features, as_listed, where=str(path)))
    data.source_files = source_files(
        "graphml",
        {"path": path},
        {"label": data.get("label_name")},
        features=features,
        undirected=not graph.is_directed(),
        as_listed=as_listed,
    )
    return data


def from_networkx(
    graph: Any,
    label: str | None = None,
    features: Wanted | Literal[False] | None = None,
    as_listed: bool = False,
) -> Data:
    """Convert a NetworkX graph; edges go both ways unless it is a directed graph.

    Nodes and labels can be any objects; `data.node_ids` and `data.class_names` map predictions back to them. Nodes
    without a label are predicted but never trained on. A node attribute `split` (train, val, test) becomes the masks.
    The edge attributes `weight`, `probability` (numbers) and `given` (bool) become `edge_weight`, `edge_probability`
    and `edge_origin`. Names of attributes are matched ignoring case and surrounding blanks.

    Args:
        graph: any NetworkX graph.
        label: node attribute to predict. None uses the one named by the graph attribute `label_attribute`; if there is
            none, the graph has no labels and can only be measured.
        features: node attributes to learn from: numbers, vectors, booleans or categories, as in `from_csv`. None uses
            all of them except label and split, and except an attribute called `label` if no label is known. False
            leaves `x` out, as it is if there are none. The `feature_columns` of another graph give the same attributes
            and categories; the label may be missing then.
        as_listed: keep every edge as often as the graph lists it, and in the direction listed.
    """
    return _convert(graph, label, features, as_listed, where="the NetworkX graph")


def _networkx() -> ModuleType:
    try:
        import networkx
    except ImportError:
        raise UserError("reading GraphML needs the package networkx: pip install networkx") from None
    module: ModuleType = networkx
    return module


def _convert(
    graph: Any, label: str | None, features: Wanted | Literal[False] | None, as_listed: bool, where: str
) -> Data:
    nodes: dict[Hashable, Attributes] = dict(graph.nodes(data=True))
    if not nodes:
        raise DataError(f"{where} has no nodes: add at least one")
    label = graph.graph.get(LABEL_NAMED_BY) if label is None else label
    known = _names(nodes.values())
    trained = as_trained(features)
    if label is not None:
        nothing = trained is not None and chosen_name(where, "node attributes", known, label) is None
        label = None if nothing else _check_name(where, known, label)
    part = known_name(where, "node attributes", known, SPLIT)
    attributes = NodeAttributes(nodes, where)
    if features is False:
        found = Features(None, [])
    elif features is None:
        taken = {part, *(same_names(known, LABEL) if label is None else [label])}
        found = all_features(attributes, [name for name in known if name not in taken])
    else:
        chosen = _chosen(where, known, features, label)
        found = trained_features(attributes, trained, chosen) if trained else named_features(attributes, chosen)

    row = {node: k for k, node in enumerate(nodes)}
    links = list(graph.edges(data=True))
    edges = np.array([(row[a], row[b]) for a, b, _ in links], dtype=np.int64).reshape(-1, 2)
    data = assemble(
        where=where,
        ids=list(nodes),
        labels=None if label is None else [_text(has.get(label)) for has in nodes.values()],
        x=found.x,
        edges=edges,
        **_about_edges(links, where),
        split=None if part is None else [_text(has.get(part)).lower() for has in nodes.values()],
        undirected=not graph.is_directed(),
        as_listed=as_listed,
    )
    described(data, found.columns, label)
    if METRIC in graph.graph:
        data.metric = str(graph.graph[METRIC])
    return data


def _names(things: Iterable[Attributes]) -> dict[str, str]:
    """Return the names of all attributes that any of the nodes or edges has."""
    return {name: name for attributes in things for name in attributes}


def _check_name(where: str, known: Mapping[str, str], name: str, trained: bool = False) -> str:
    """Return the node attribute that the user asked for, or that a model was trained on, or raise a `DataError`."""
    found = chosen_name(where, "node attributes", known, name)
    if found is None and trained:
        raise DataError(f"no node of {where} has the attribute {name!r}, which the model was trained on")
    if found is None:
        raise DataError(f"no node of {where} has the attribute {name!r}: {did_you_mean(name, known)}")
    return found


def _chosen(where: str, known: Mapping[str, str], features: Wanted, label: str | None) -> list[str]:
    trained = as_trained(features) is not None
    chosen = [_check_name(where, known, name, trained) for name in names_of(features)]
    if label in chosen:
        raise DataError(f"the attribute {label!r} of {where} is the label, so it cannot be a feature")
    if not trained:
        check_once(NodeAttributes.what, where, chosen)
    return chosen


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value).strip()  # NaN is not equal to itself


def _about_edges(links: Sequence[tuple[Any, Any, Attributes]], where: str) -> dict[str, Any]:
    """Return weights, probabilities and origins [E], each None if the edges have none."""
    known = _names(attributes for _, _, attributes in links)
    weight, probability, given = (
        known_name(where, "edge attributes", known, name) for name in ("weight", PROBABILITY, GIVEN)
    )
    used = {weight, probability, given, _EDGE_ID}
    warn_of_unused(where, "an attribute", [name for name in known if name not in used])
    probabilities, origins = _of_every(links, probability, int | float), _of_every(links, given, bool)
    return {
        "weight": None if weight is None else _weight(links, weight, where),
        "probability": None if probabilities is None else np.array(probabilities, dtype=np.float32),
        "given": None if origins is None else np.array(origins),
    }


def _weight(links: Sequence[tuple[Any, Any, Attributes]], name: str, where: str) -> NDArray[np.float32]:
    """Return the weight of each edge; as in NetworkX, the default is 1."""
    found = []
    for source, target, attributes in links:
        weight = attributes.get(name, 1.0)
        try:
            found.append(float(weight))
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                f"the edge from {source!r} to {target!r} of {where} has the weight {weight!r}, which is not a number"
            ) from None
    return np.array(found, dtype=np.float32)


def _of_every(links: Sequence[tuple[Any, Any, Attributes]], name: str | None, kind: Any) -> list[Any] | None:
    """Return an attribute that every edge has, with values of this kind; else None."""
    found = [] if name is None else [has.get(name) for _, _, has in links]
    return found if name is not None and all(isinstance(value, kind) for value in found) else None
