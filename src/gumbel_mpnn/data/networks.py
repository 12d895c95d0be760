"""Graphs from NetworkX, and from GraphML files, which NetworkX reads."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal
from xml.etree.ElementTree import ParseError

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError, did_you_mean
from gumbel_mpnn.data.column_names import chosen_name, known_name, same_names
from gumbel_mpnn.data.names import among
from gumbel_mpnn.data.own import GIVEN, PROBABILITY, SPLIT, assemble, named_after, warn_of_mixed

LABEL = "label"
"""Node attribute in which `save_graph` writes the label."""
LABEL_NAMED_BY = "label_attribute"
"""Graph attribute with the name of the node attribute that is the label."""
METRIC = "metric_of_models"
"""Graph attribute with the metric by which models are evaluated."""

Attributes = Mapping[str, Any]


def from_graphml(
    path: str | Path,
    label: str | None = None,
    features: Sequence[str] | Literal[False] | None = None,
    as_listed: bool = False,
) -> Data:
    """Read a graph from a GraphML file.

    The arguments `label`, `features` and `as_listed` are documented in `from_networkx`. Files written by `save_graph`
    record which attribute is the label.
    """
    networkx = _networkx()
    try:
        graph = networkx.read_graphml(path)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}: check the path") from None
    except (ParseError, networkx.NetworkXError, ValueError, KeyError, OSError) as error:
        raise DataError(f"{path} is not a valid GraphML file ({error})") from error
    return named_after(Path(path), _convert(graph, label, features, as_listed, where=str(path)))


def from_networkx(
    graph: Any,
    label: str | None = None,
    features: Sequence[str] | Literal[False] | None = None,
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
        features: node attributes to learn from, numbers or vectors. None uses all of them except label and split, and
            except an attribute called `label` if no label is known. False leaves `x` out, as it is if there are none.
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
    graph: Any, label: str | None, features: Sequence[str] | Literal[False] | None, as_listed: bool, where: str
) -> Data:
    nodes: dict[Hashable, Attributes] = dict(graph.nodes(data=True))
    if not nodes:
        raise DataError(f"{where} has no nodes: add at least one")
    label = graph.graph.get(LABEL_NAMED_BY) if label is None else label
    known = _names(nodes.values())
    label = None if label is None else _check_name(where, known, label)
    part = known_name(where, "node attributes", known, SPLIT)
    if features:
        features = [_check_name(where, known, name) for name in features]
        if label in features:
            raise DataError(f"the attribute {label!r} of {where} is the label, so it cannot be a feature")
    chosen = features
    if chosen is None:
        taken = {part, *(same_names(known, LABEL) if label is None else [label])}
        free = [name for name in known if name not in taken]
        chosen = [name for name in free if _first_other(nodes, name) is None]
        warn_of_mixed("attribute", where, [found for name in free if (found := _mixed(nodes, name))])

    row = {node: k for k, node in enumerate(nodes)}
    links = list(graph.edges(data=True))
    edges = np.array([(row[a], row[b]) for a, b, _ in links], dtype=np.int64).reshape(-1, 2)
    data = assemble(
        where=where,
        ids=list(nodes),
        labels=None if label is None else [_text(has.get(label)) for has in nodes.values()],
        x=np.concatenate([_feature(nodes, name, where) for name in chosen], axis=1) if chosen else None,
        edges=edges,
        **_about_edges(links, where),
        split=None if part is None else [_text(has.get(part)).lower() for has in nodes.values()],
        undirected=not graph.is_directed(),
        as_listed=as_listed,
    )
    if METRIC in graph.graph:
        data.metric = str(graph.graph[METRIC])
    return data


def _names(things: Iterable[Attributes]) -> dict[str, str]:
    """Return the names of all attributes that any of the nodes or edges has."""
    return {name: name for attributes in things for name in attributes}


def _check_name(where: str, known: Mapping[str, str], name: str) -> str:
    """Return the node attribute that the user asked for, or raise a `DataError`."""
    found = chosen_name(where, "node attributes", known, name)
    if found is None:
        raise DataError(f"no node of {where} has the attribute {name!r}: {did_you_mean(name, known)}")
    return found


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value).strip()  # NaN is not equal to itself


def _first_other(nodes: Mapping[Hashable, Attributes], name: str) -> Hashable | None:
    """Return the first node whose attribute is neither a number nor a vector of numbers, or None."""
    return next((node for node, has in nodes.items() if name in has and not _is_numeric(has[name])), None)


def _mixed(nodes: Mapping[Hashable, Attributes], name: str) -> tuple[str, str, object] | None:
    """Return name, first node without a number and its value, for an attribute that is a number at some nodes only."""
    other = _first_other(nodes, name)
    if other is None or not any(name in has and _is_numeric(has[name]) for has in nodes.values()):
        return None
    return name, f"node {other!r}", nodes[other][name]


def _is_numeric(value: object) -> bool:
    return np.asarray(value).dtype.kind in "biuf"


def _feature(nodes: Mapping[Hashable, Attributes], name: str, where: str) -> NDArray[np.float32]:
    """Return an attribute as columns [N, k], where k is the length of its vectors."""
    columns: list[NDArray[Any]] = []
    missing = [node for node, attributes in nodes.items() if name not in attributes]
    if missing:
        raise DataError(
            f"node {missing[0]!r} of {where} has no feature {name!r}{among(len(missing))}: give every node one, or name"
            " the features to use"
        )
    for node, attributes in nodes.items():
        value = np.ravel(attributes[name])
        if not _is_numeric(value):
            raise DataError(f"feature {name!r} of node {node!r} of {where} is {attributes[name]!r}, not a number")
        if columns and len(value) != len(columns[0]):
            raise DataError(f"feature {name!r} of node {node!r} of {where} has another length than at other nodes")
        columns.append(value)
    return np.array(columns, dtype=np.float32)


def _about_edges(links: Sequence[tuple[Any, Any, Attributes]], where: str) -> dict[str, Any]:
    """Return weights, probabilities and origins [E], each None if the edges have none."""
    known = _names(attributes for _, _, attributes in links)
    weight, probability, given = (
        known_name(where, "edge attributes", known, name) for name in ("weight", PROBABILITY, GIVEN)
    )
    return {
        "weight": None if weight is None else _weight(links, weight, where),
        "probability": None if probability is None else _probability([has.get(probability) for _, _, has in links]),
        "given": None if given is None else _given([has.get(given) for _, _, has in links]),
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


def _probability(found: Sequence[Any]) -> NDArray[np.float32] | None:
    """Return the probability that rewiring gave each edge, or None if it is missing for an edge."""
    return np.array(found, dtype=np.float32) if all(isinstance(p, int | float) for p in found) else None


def _given(found: Sequence[Any]) -> NDArray[np.bool_] | None:
    """Return whether each edge existed before rewiring, or None if it is unknown for an edge."""
    return np.array(found) if all(isinstance(value, bool) for value in found) else None
