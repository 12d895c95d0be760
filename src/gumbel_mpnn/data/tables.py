"""Graphs from a file of nodes and a file of edges, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.arrow_tables import is_parquet, places_in
from gumbel_mpnn.data.column_kinds import all_features, named_features, trained_features
from gumbel_mpnn.data.csv_file import Header, check_column, is_empty, known_column, place_of, read_header, read_table
from gumbel_mpnn.data.feature_columns import Features, Wanted, as_trained, check_once, names_of
from gumbel_mpnn.data.input_file import InputFile
from gumbel_mpnn.data.names import chosen_name
from gumbel_mpnn.data.own import (
    GIVEN,
    PROBABILITY,
    SPLIT,
    assemble,
    check_classes,
    described,
    named_after,
    source_files,
    warn_of_unused,
)
from gumbel_mpnn.data.table_features import TableColumns

if TYPE_CHECKING:
    import pandas as pd


def from_csv(
    nodes: str | Path | InputFile,
    edges: str | Path | InputFile | None = None,
    label: str | None = None,
    features: Wanted | Literal[False] | None = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    undirected: bool = True,
    as_listed: bool = False,
) -> Data:
    """Read a graph from two CSV files, each with a header line, or from Parquet files, which need pyarrow.

    Ids and labels can be any text; `data.node_ids` and `data.class_names` map predictions back to them. Nodes with an
    empty label are predicted but never trained on. A column `split` of the nodes (train, val, test or empty) becomes
    the masks. The columns `weight`, `probability` (numbers) and `given` (true or false) of the edges become
    `edge_weight`, `edge_probability` and `edge_origin`. Duplicate edges are merged and get the mean of their weights.
    Models ignore self-loops, since convolutions add their own. Names of columns are matched ignoring case and
    surrounding blanks.

    Args:
        nodes: path of the file with one line per node. Files may be compressed (.gz, .bz2, .xz, .zst, .zip, .tar).
        edges: path of the file with one line per edge, which may be empty; None for a graph without edges.
        label: column of the nodes to predict; None reads a graph without labels, which can only be measured.
        features: columns to learn from. None uses all columns of numbers, booleans (true and false, or yes and no) and
            categories except id, label and split; False leaves `x` out, as it is if there are none. Categories are
            words with at most 20 different values, each at 5 nodes on average (100 and 2 for a column that is named).
            They become one-hot, and a missing value is a category. Text is left out with a warning, and dates are
            refused. The `feature_columns` of another graph give the same columns and categories; the label may be
            missing then.
        id: column with the id of the node; by default the one called `id`, or else the first.
        source: column with the id of the source of an edge; by default the one called `source`, or else the first.
        target: column with the id of the target; by default the one called `target`, or else the second.
        undirected: whether every edge goes both ways.
        as_listed: keep every edge as often as the file lists it, and in the direction listed, whatever `undirected`.
    """
    nodes, edges = InputFile.of(nodes), None if edges is None else InputFile.of(edges)
    header = read_header(nodes)
    id = check_column(nodes, header, id) if id else known_column(nodes, header, "id") or next(iter(header))
    trained = as_trained(features)
    if label is not None:
        nothing = trained is not None and chosen_name(str(nodes), "columns", header, label) is None
        label = None if nothing else check_column(nodes, header, label)
    part = known_column(nodes, header, SPLIT)
    text = [name for name in (id, label, part) if name is not None]
    chosen = None if features is None or features is False else _chosen(nodes, header, features, text)

    # Categories are read as text, since another file may have only those that look like numbers or booleans.
    words = [name for name, column in zip(chosen or (), trained or (), strict=False) if column.categories is not None]
    table = read_table(nodes, header, [*text, *words])
    if label is not None:
        check_classes(table[label], str(nodes))  # before the features, which take longer
    ids = table[id].str.strip()
    _check_ids(nodes, ids)
    if edges is None or is_empty(edges):
        ends, about = np.empty((0, 2), dtype=np.int64), dict.fromkeys(("weight", PROBABILITY, GIVEN))
    else:
        ends, about = _edges(edges, nodes, ids, source, target)
    columns = TableColumns(table, ids, str(nodes))
    if features is False:
        found = Features(None, [])
    elif trained:
        found = trained_features(columns, trained, chosen or [])
    elif chosen is not None:
        found = named_features(columns, chosen)
    else:
        found = all_features(columns, [name for name in header if name not in text])
    data = assemble(
        where=str(nodes),
        ids=ids.tolist(),
        labels=None if label is None else table[label].str.strip().tolist(),
        x=found.x,
        edges=ends,
        **about,
        split=None if part is None else table[part].str.strip().str.lower().tolist(),
        undirected=undirected,
        as_listed=as_listed,
    )
    described(data, found.columns, label)
    data.source_files = source_files(
        "csv",
        {"nodes": nodes, "edges": edges},
        {"label": label, "id": id, "source": source, "target": target},
        features=features,
        undirected=undirected,
        as_listed=as_listed,
    )
    return named_after(nodes, data)


from_parquet = from_csv


def _chosen(path: InputFile, header: Header, features: Wanted, taken: Sequence[str]) -> list[str]:
    trained = as_trained(features) is not None
    chosen = [check_column(path, header, name, trained) for name in names_of(features)]
    for name in chosen:
        if name in taken:
            raise DataError(f"column {name!r} of {path} is the id, label or split, so it cannot be a feature")
    if not trained:
        check_once(TableColumns.what, str(path), chosen)
    return chosen


def _check_ids(path: InputFile, ids: pd.Series[str]) -> None:
    if ids.empty:
        raise DataError(f"{path} has no nodes: add a row for each")
    if (ids == "").any():
        raise DataError(f"{place_of(ids.index[ids == ''])} of {path} has no node id: add one")
    repeated = ids[ids.duplicated()]
    if len(repeated):
        raise DataError(f"{place_of(repeated.index)} of {path} repeats the node {repeated.iloc[0]!r}")


def _edges(
    path: InputFile, nodes: InputFile, ids: pd.Series[str], source: str | None, target: str | None
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Return the edges [E, 2] as row numbers of nodes, and their weights, probabilities and origins [E] or None."""
    import pandas as pd

    header = read_header(path)
    if len(header) < 2:
        raise DataError(f"{path} needs two columns separated by commas, one for each end of an edge")
    names = _ends(path, header, source, target, ids)
    columns = [known_column(path, header, name) for name in ("weight", PROBABILITY, GIVEN)]
    table = read_table(path, header, names, integers=True)

    unused = [written for name, written in header.items() if name not in {*names, *columns}]
    warn_of_unused(str(path), "a column", unused)
    ends = np.stack([places_in(ids, table[name]) for name in names]).T
    if len(ends) and ends.min() < 0:
        row, end = np.argwhere(ends < 0)[0]
        missing = str(table[names[end]].iloc[row]).strip()
        has = "has in its header, which should name the columns" if missing == ids.name else "does not have"
        raise DataError(f"{place_of(table.index, row)} of {path} names the node {missing!r}, which {nodes} {has}")
    weight, probability, given = (None if name is None else table[name] for name in columns)
    if probability is not None and not pd.api.types.is_numeric_dtype(probability):
        probability = None
    about = {
        "weight": None if weight is None else _weights(path, weight),
        "probability": None if probability is None else probability.to_numpy(dtype=np.float32, copy=True),
        "given": given.to_numpy(copy=True) if given is not None and given.dtype == bool else None,
    }
    return ends, about


def _ends(
    path: InputFile, header: Header, source: str | None, target: str | None, ids: pd.Series[str]
) -> tuple[str, str]:
    """Return the columns with the source and the target of an edge."""
    if source and target:
        return check_column(path, header, source), check_column(path, header, target)
    first, second = (known_column(path, header, name) for name in ("source", "target"))
    if first is None or second is None:
        first, second = list(header)[:2]
        if not source and not target:
            _check_header(path, [header[first], header[second]], ids)
    return (
        check_column(path, header, source) if source else first,
        check_column(path, header, target) if target else second,
    )


def _check_header(path: InputFile, written: Sequence[str], ids: pd.Series[str]) -> None:
    """Raise a `DataError` if the columns have the names of nodes, so that the header seems to be an edge."""
    ends = [name.strip() for name in written]
    if ids.isin(ends).sum() == len(set(ends)):
        raise DataError(
            f"the header of {path} names the nodes {' and '.join(map(repr, ends))}, so it seems to be an edge: "
            + ("name the columns source and target" if is_parquet(path) else "add the line source,target above it")
        )


def _weights(path: InputFile, weight: pd.Series[Any]) -> NDArray[np.float32]:
    import pandas as pd

    numbers: NDArray[np.float32] = pd.to_numeric(weight, errors="coerce").to_numpy(dtype=np.float32, copy=True)
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        value = weight.iloc[wrong[0]]
        found = "no weight" if pd.isna(value) else f"the weight {value}"
        raise DataError(
            f"{place_of(weight.index, wrong[0])} of {path} has {found}: weights must be finite and at least 0"
        )
    return numbers
