"""A graph from a CSV file of nodes and one of edges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn.data.own import GIVEN, PROBABILITY, SPLIT, assemble, warn_of_mixed
from gumbel_mpnn.errors import DataError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

_NO_NUMBER = ["", "nan", "NaN", "NA", "null"]
_HEADER_LINES = 1


def from_csv(
    nodes: str | Path,
    edges: str | Path,
    label: str | None = None,
    features: Sequence[str] | Literal[False] | None = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    undirected: bool = True,
    as_listed: bool = False,
) -> Data:
    """A graph from two CSV files with a header line each.

    Ids and labels may be any text; `data.node_ids` and `data.class_names` map predictions back to them. A node with
    an empty label is predicted but never trained on. A column `split` of the nodes (train, val, test or empty) becomes
    the masks, and the columns `weight`, `probability` (numbers) and `given` (true or false) of the edges become
    `edge_weight`, `edge_probability` and `edge_origin`.

    Args:
        nodes: the file with a line per node.
        edges: the file with a line per edge.
        label: the column of the nodes that is to be predicted; None reads a graph to measure, without labels.
        features: columns to learn from; None takes all numeric ones other than id, label and split; False leaves
            `x` out.
        id: the column that names the node; None takes the one called `id`, or else the first.
        source: the column of the edges with the id of one end; None takes the one called `source`, or else the first.
        target: the column with the other end; None takes the one called `target`, or else the second.
        undirected: whether every edge goes both ways.
        as_listed: keep every edge as often as the file lists it, in its direction, whatever `undirected` says.
    """
    header = _header(nodes)
    id = _column(nodes, header, id or ("id" if "id" in header else header[0]))
    text = [id, *([] if label is None else [_column(nodes, header, label)]), *([SPLIT] if SPLIT in header else [])]
    for name in features or ():
        if _column(nodes, header, name) in text:
            raise DataError(f"column {name!r} of {nodes} is the id, label or split, so it cannot be a feature")

    table = _read(nodes, header, text)
    ids = table[id].str.strip()
    _check_ids(nodes, ids)
    ends, about = _edges(edges, nodes, ids, source, target)
    return assemble(
        where=str(nodes),
        ids=ids.tolist(),
        labels=None if label is None else table[label].str.strip().tolist(),
        x=None if features is False else _features(nodes, table.drop(columns=text), features),
        edges=ends,
        **about,
        split=table[SPLIT].str.strip().str.lower().tolist() if SPLIT in header else None,
        undirected=undirected,
        as_listed=as_listed,
    )


def _header(path: str | Path) -> list[str]:
    return [str(name) for name in _read(path, [], [], nrows=0).columns]


def _read(path: str | Path, header: Sequence[str], text: Sequence[str], nrows: int | None = None) -> pd.DataFrame:
    """The table, `text` columns as they are and the others as numbers where they can be."""
    import pandas as pd

    try:
        table = pd.read_csv(
            path,
            dtype=dict.fromkeys(text, str),
            keep_default_na=False,  # a node may well be called NA
            na_values={name: _NO_NUMBER for name in header if name not in text},
            skipinitialspace=True,
            skip_blank_lines=False,  # so that row and line numbers agree
            nrows=nrows,
        )
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except (ValueError, OSError) as error:  # pandas' parser errors are ValueErrors
        raise DataError(f"{path} is not a readable CSV file ({str(error).strip()})") from error
    if not isinstance(table.index, pd.RangeIndex):
        raise DataError(f"the lines of {path} have more cells than its header names")
    blank = (table.isna() | (table == "")).all(axis=1)
    return table[~blank].infer_objects()  # the index still tells the line


def _column(path: str | Path, header: Sequence[str], name: str) -> str:
    if name not in header:
        raise DataError(f"{path} has no column {name!r}: {did_you_mean(name, header)}")
    return name


def _line(row: Any) -> int:
    return int(row) + 1 + _HEADER_LINES


def _check_ids(path: str | Path, ids: pd.Series[str]) -> None:
    if ids.empty:
        raise DataError(f"{path} has no nodes")
    if (ids == "").any():
        raise DataError(f"line {_line(ids.index[ids == ''][0])} of {path} has no node id")
    repeated = ids[ids.duplicated()]
    if len(repeated):
        raise DataError(f"line {_line(repeated.index[0])} of {path} has the node {repeated.iloc[0]!r} a second time")


def _features(path: str | Path, table: pd.DataFrame, wanted: Sequence[str] | None) -> NDArray[np.float32]:
    numeric = [str(name) for name in table.select_dtypes(include=["number", "bool"]).columns]
    for name in wanted or ():
        if name not in numeric:
            raise DataError(f"feature column {name!r} of {path} does not hold numbers only")
    if wanted is None:
        warn_of_mixed("column", str(path), _mixed(table.drop(columns=numeric)))
    chosen = numeric if wanted is None else list(wanted)
    if not chosen:
        raise DataError(f"{path} has no numeric column to take as feature: add one, or name them with features=")
    x: NDArray[np.float32] = table[chosen].to_numpy(dtype=np.float32, copy=True)
    return x


def _mixed(table: pd.DataFrame) -> list[tuple[str, str, object]]:
    """Columns that hold numbers as well as other things: their name, and the line and content of the first other."""
    import pandas as pd

    found: list[tuple[str, str, object]] = []
    for name, column in table.items():
        filled = column[column.notna()]
        wrong = pd.to_numeric(filled, errors="coerce").isna()
        if wrong.any() and not wrong.all():
            line = filled.index[wrong][0]
            found.append((str(name), f"line {_line(line)}", filled[line]))
    return found


def _edges(
    path: str | Path, nodes: str | Path, ids: pd.Series[str], source: str | None, target: str | None
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """The ends [E, 2] as row numbers of the nodes, and weights, probabilities and origins [E], None where none are."""
    import pandas as pd

    header = _header(path)
    if len(header) < 2:
        raise DataError(f"{path} needs two columns, one for each end of an edge")
    first, second = ("source", "target") if {"source", "target"} <= set(header) else header[:2]
    names = [_column(path, header, name) for name in (source or first, target or second)]
    table = _read(path, header, names)

    row_of = pd.Index(ids)
    ends = np.stack([row_of.get_indexer(pd.Index(table[name].str.strip())) for name in names], axis=1)
    unknown = np.argwhere(ends < 0)
    if len(unknown):
        row, end = unknown[0]
        missing = table[names[end]].iloc[row].strip()
        raise DataError(
            f"line {_line(table.index[row])} of {path} names the node {missing!r}, which {nodes} does not have"
        )
    weight, probability, given = (table.get(name) for name in ("weight", PROBABILITY, GIVEN))
    if weight is not None and not pd.api.types.is_numeric_dtype(weight):
        raise DataError(f"column 'weight' of {path} does not hold numbers only")
    likely = probability is not None and pd.api.types.is_numeric_dtype(probability)
    about = {
        "weight": None if weight is None else weight.to_numpy(dtype=np.float32, copy=True),
        "probability": probability.to_numpy(dtype=np.float32, copy=True) if likely else None,
        "given": given.to_numpy(copy=True) if given is not None and given.dtype == bool else None,
    }
    return ends.astype(np.int64), about
