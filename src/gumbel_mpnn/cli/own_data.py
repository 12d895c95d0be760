"""A person's own graph on the command line, for the verbs that take one instead of a data set by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    """The graph that the options name: a data set by its name, or a person's own files."""
    match dataset is not None, nodes is not None or edges is not None, graph is not None:
        case True, False, False:
            if label is not None or features is not None:
                raise UserError("--label and --features are for own data, not for a data set by name")
            return str(dataset)
        case False, True, False if nodes is not None and edges is not None:
            return _read_csv(nodes, edges, label, features, undirected)
        case False, False, True:
            return _read_graph(Path(graph or ""), label, features, undirected)
    raise UserError("give either the name of a data set, or own data as --nodes with --edges, or as --graph")


def _read_csv(nodes: Path, edges: Path, label: str | None, features: str | None, undirected: bool) -> Data:
    from gumbel_mpnn.data import from_csv

    if label is None:
        raise UserError("own data need --label, the name of the label column")
    return from_csv(nodes, edges, label=label, features=_columns(features), undirected=undirected)


def _read_graph(path: Path, label: str | None, features: str | None, undirected: bool) -> Data:
    from gumbel_mpnn.data import from_graphml, from_npz

    if path.suffix == ".npz":
        return from_npz(path, undirected=undirected)
    if label is None:
        raise UserError("own data need --label, the name of the label attribute")
    return from_graphml(path, label=label, features=_columns(features))


def _columns(features: str | None) -> list[str] | None:
    return None if features is None else [name.strip() for name in features.split(",")]
