"""A person's own graph on the command line, for the verbs that take one instead of a data set by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gumbel_mpnn.errors import UserError

if TYPE_CHECKING:
    from torch_geometric.data import Data

NodesOption = Annotated[Path | None, typer.Option("--nodes", help="Own data: CSV of nodes.")]
EdgesOption = Annotated[Path | None, typer.Option("--edges", help="Own data: CSV of edges.")]
GraphOption = Annotated[Path | None, typer.Option("--graph", help="Own data: a .npz or .graphml file instead of CSV.")]
LabelOption = Annotated[str | None, typer.Option("--label", help="Own data: name of the label column.")]
FeaturesOption = Annotated[
    str | None, typer.Option("--features", help="Own data: feature columns, separated by commas.")
]


def chosen_data(
    dataset: str | None,
    nodes: Path | None,
    edges: Path | None,
    graph: Path | None,
    label: str | None,
    features: str | None,
    undirected: bool,
) -> str | Data:
    """The graph to train on that the options name: a data set by its name, or a person's own files."""
    if _is_by_name(dataset, nodes, edges, graph, label, features):
        return str(dataset)
    from gumbel_mpnn.data import from_csv, from_graphml, from_npz

    columns = _columns(features)
    if graph is not None and graph.suffix == ".npz":
        return from_npz(graph, undirected=undirected)
    if label is None:
        raise UserError("own data need --label, the name of the label " + ("column" if graph is None else "attribute"))
    if graph is not None:
        return from_graphml(graph, label, columns)
    return from_csv(Path(nodes or ""), Path(edges or ""), label, columns, undirected=undirected)


def measured_data(
    dataset: str | None,
    nodes: Path | None,
    edges: Path | None,
    graph: Path | None,
    label: str | None,
    features: str | None,
    as_listed: bool,
) -> str | Data:
    """The graph to measure, which need have neither labels nor features."""
    if _is_by_name(dataset, nodes, edges, graph, label, features):
        return str(dataset)
    from gumbel_mpnn.data import from_csv, from_graphml, from_npz

    columns: list[str] | Literal[False] = _columns(features) or False
    if graph is not None and graph.suffix == ".npz":
        return from_npz(graph, features=False, as_listed=as_listed, labels=False)
    if graph is not None:
        return from_graphml(graph, label, columns, as_listed)
    return from_csv(Path(nodes or ""), Path(edges or ""), label, columns, as_listed=as_listed)


def _is_by_name(
    dataset: str | None,
    nodes: Path | None,
    edges: Path | None,
    graph: Path | None,
    label: str | None,
    features: str | None,
) -> bool:
    """Whether a data set is named, and not own files; a `UserError` if it is neither or both."""
    match dataset is not None, nodes is not None or edges is not None, graph is not None:
        case True, False, False:
            if label is not None or features is not None:
                raise UserError("--label and --features are for own data, not for a data set by name")
            return True
        case False, True, False if nodes is not None and edges is not None:
            return False
        case False, False, True:
            return False
    raise UserError("give either the name of a data set, or own data as --nodes with --edges, or as --graph")


def _columns(features: str | None) -> list[str] | None:
    return None if features is None else [name.strip() for name in features.split(",")]
