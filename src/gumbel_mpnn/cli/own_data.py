"""Options for own data, for verbs that take files in place of the name of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.files import suffix_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_geometric.data import Data

    from gumbel_mpnn.data.columns import FeatureColumn

NodesOption = Annotated[Path | None, typer.Option("--nodes", help="Own data: CSV or Parquet file of nodes.")]
EdgesOption = Annotated[
    Path | None, typer.Option("--edges", help="Own data: CSV or Parquet file of edges; leave it out for none.")
]
GraphOption = Annotated[Path | None, typer.Option("--graph", help="Own data: .npz or .graphml file instead of CSV.")]
LabelOption = Annotated[
    str | None,
    typer.Option("--label", help="Own data: name of the label column; not needed for saved graphs."),
]
FeaturesOption = Annotated[
    str | None, typer.Option("--features", help="Own data: names of the feature columns, separated by commas.")
]

GRAPHML = (".xml", *(f".graphml{packed}" for packed in ("", ".gz", ".bz2")))
"""Suffixes of GraphML files."""


@dataclass(frozen=True)
class Source:
    """The graph chosen by the user: the name of a data set, or own files. Each field is an argument of a verb."""

    dataset: str | None
    nodes: Path | None
    edges: Path | None
    graph: Path | None
    label: str | None
    features: str | None

    @property
    def is_own(self) -> bool:
        """Whether any option of own data is given."""
        own = (self.nodes, self.edges, self.graph, self.label, self.features)
        return any(option is not None for option in own)

    @property
    def files(self) -> list[Path | None]:
        """Files that are read, which must not be overwritten."""
        return [self.nodes, self.edges, self.graph]

    def to_train_on(self, undirected: bool) -> str | Data:
        """Return the name of the data set, or the graph of the user's files, which needs labels.

        Edges are read with their direction if `undirected` is false; npz and GraphML files may state whether edges are
        directed.
        """
        if self._is_by_name():
            return str(self.dataset)
        if self.graph is None and self.label is None:
            raise UserError("own data needs --label, the name of the label column")
        data = self._read(self._columns(), undirected=undirected)
        if data.y is None:
            raise UserError("own data needs --label, the name of the label attribute")
        return data

    def to_predict(self, columns: Sequence[FeatureColumn] | None, undirected: bool) -> Data:
        """Return the graph of the user's files, which needs no labels.

        `columns` are those that the models were trained on; None for all numeric columns except the label.
        """
        self._is_by_name()  # checks that the options fit together
        data = self._read(columns, undirected=undirected, labels=False)
        if self.label is not None and "label_name" not in data:
            what = "column" if self.graph is None else "node attribute"
            raise UserError(
                f"{self.nodes or self.graph} has no {what} {self.label!r}, which --label names: correct it or leave it"
                " out, since predictions need no labels"
            )
        return data

    def to_measure(self) -> str | Data:
        """Return the name of the data set, or the graph of the user's files, which needs no labels and no features."""
        return str(self.dataset) if self._is_by_name() else self._read(self._columns() or False, labels=False)

    def _read(
        self,
        columns: Sequence[str] | Sequence[FeatureColumn] | Literal[False] | None,
        undirected: bool = True,
        labels: bool = True,
    ) -> Data:
        """Read the user's files; `columns` are those of the features, None for all and False for none."""
        from gumbel_mpnn.data import from_csv, from_graphml, from_npz

        if self.graph is None:
            return from_csv(self.nodes or "", self.edges, self.label, columns, undirected=undirected)
        if self._is_npz(self.graph):
            return from_npz(self.graph, None if undirected else False, columns is not False, labels)
        return from_graphml(self.graph, self.label, columns)

    def _is_by_name(self) -> bool:
        """Return whether a data set is named; raise a `UserError` if there is neither a name nor files, or both."""
        match self.dataset is not None, self.nodes is not None or self.edges is not None, self.graph is not None:
            case True, False, False:
                if self.label is not None or self.features is not None:
                    raise UserError("--label and --features apply to own data only, not to a named data set")
                return True
            case False, True, False if self.nodes is not None:
                return False
            case False, False, True:
                return False
        raise UserError("give the name of a data set, or own data as --nodes and --edges, or as --graph")

    def _is_npz(self, graph: Path) -> bool:
        """Return whether own data is an npz file; raise a `UserError` if it is not a graph file."""
        if graph.name.lower().endswith(GRAPHML):
            return False
        if suffix_of(graph) != ".npz":
            raise UserError(
                f"--graph takes .npz and .graphml files, not {graph}: give CSV files as --nodes and --edges"
            )
        if self.label is not None or self.features is not None:
            raise UserError(
                "--label and --features apply to CSV and GraphML files: leave them out, an npz file has its labels in"
                " the array 'node_labels' and its features in 'node_features'"
            )
        return True

    def _columns(self) -> list[str] | None:
        return None if self.features is None else [name.strip() for name in self.features.split(",")]
