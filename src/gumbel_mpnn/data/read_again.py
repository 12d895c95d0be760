"""Reading the files of a graph of the user again, by the description that their readers leave on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.data.feature_columns import FeatureColumn
from gumbel_mpnn.data.networks import from_graphml
from gumbel_mpnn.data.own import from_npz
from gumbel_mpnn.data.tables import from_csv


def read_again(source: Mapping[str, Any]) -> Data:
    """Read a graph by its `data.source_files`, which `from_csv`, `from_npz` and `from_graphml` set."""
    of_edges = {name: source[name] for name in ("undirected", "as_listed")}
    features = _features(source["features"])
    match source["reader"]:
        case "csv":
            columns = {name: source[name] for name in ("label", "id", "source", "target")}
            return from_csv(source["nodes"], source["edges"], features=features, **columns, **of_edges)
        case "npz":
            return from_npz(source["path"], features=features is not False, **of_edges)
        case _:
            return from_graphml(source["path"], source["label"], features, source["as_listed"])


def _features(described: list[Any] | None) -> Any:
    """Argument `features` of a reader: None for all, False for none, else names or columns."""
    if described is None:
        return None
    return [FeatureColumn.from_dict(each) if isinstance(each, Mapping) else each for each in described] or False
