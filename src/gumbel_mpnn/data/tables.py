"""A graph from a CSV file of nodes and one of edges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.csv_file import Header, check_column, known_column, line_of, read_header, read_table
from gumbel_mpnn.data.own import GIVEN, PROBABILITY, SPLIT, assemble, named_after, warn_of_mixed

if TYPE_CHECKING:
    import pandas as pd


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
    `edge_weight`, `edge_probability` and `edge_origin`. An edge that is listed several times becomes one with the mean
    of its weights; models leave self-loops out, since convolutions add their own. Columns are found by their names
    whatever the case and the blanks around them.

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
    header = read_header(nodes)
    id = check_column(nodes, header, id) if id else known_column(nodes, header, "id") or next(iter(header))
    label = None if label is None else check_column(nodes, header, label)
    part = known_column(nodes, header, SPLIT)
    text = [name for name in (id, label, part) if name is not None]
    if features:
        features = [check_column(nodes, header, name) for name in features]
        for name in features:
            if name in text:
                raise DataError(f"column {name!r} of {nodes} is the id, label or split, so it cannot be a feature")

    table = read_table(nodes, header, text)
    ids = table[id].str.strip()
    _check_ids(nodes, ids)
    ends, about = _edges(edges, nodes, ids, source, target)
    data = assemble(
        where=str(nodes),
        ids=ids.tolist(),
        labels=None if label is None else table[label].str.strip().tolist(),
        x=None if features is False else _features(nodes, table.drop(columns=text), features, ids),
        edges=ends,
        **about,
        split=None if part is None else table[part].str.strip().str.lower().tolist(),
        undirected=undirected,
        as_listed=as_listed,
    )
    return named_after(Path(nodes), data)


def _check_ids(path: str | Path, ids: pd.Series[str]) -> None:
    if ids.empty:
        raise DataError(f"{path} has no nodes")
    if (ids == "").any():
        raise DataError(f"line {line_of(ids.index[ids == ''][0])} of {path} has no node id")
    repeated = ids[ids.duplicated()]
    if len(repeated):
        raise DataError(f"line {line_of(repeated.index[0])} of {path} has the node {repeated.iloc[0]!r} a second time")


def _features(
    path: str | Path, table: pd.DataFrame, wanted: Sequence[str] | None, ids: pd.Series[str]
) -> NDArray[np.float32]:
    numeric = [str(name) for name in table.select_dtypes(include=["number", "bool"]).columns]
    for name in wanted or ():
        if name not in numeric:
            raise DataError(f"feature column {name!r} of {path} does not hold numbers only")
    if wanted is None:
        warn_of_mixed("column", str(path), _mixed(table.drop(columns=numeric)))
    chosen = numeric if wanted is None else list(wanted)
    if not chosen:
        raise DataError(f"{path} has no numeric column to take as feature: add one")
    x: NDArray[np.float32] = table[chosen].to_numpy(dtype=np.float32, copy=True)
    wrong = np.argwhere(~np.isfinite(x))
    if len(wrong):
        row, column = wrong[0]
        found = "no number" if np.isnan(x[row, column]) else "an infinite number"
        raise DataError(
            f"line {line_of(table.index[row])} of {path} has {found} as the feature {chosen[column]!r} of the node "
            f"{ids.iloc[row]!r}: give every node finite features"
        )
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
            found.append((str(name), f"line {line_of(line)}", filled[line]))
    return found


def _edges(
    path: str | Path, nodes: str | Path, ids: pd.Series[str], source: str | None, target: str | None
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """The ends [E, 2] as row numbers of the nodes, and weights, probabilities and origins [E], None where none are."""
    import pandas as pd

    header = read_header(path)
    if len(header) < 2:
        raise DataError(f"{path} needs two columns with a comma between them, one for each end of an edge")
    names = _ends(path, header, source, target, ids)
    columns = [known_column(path, header, name) for name in ("weight", PROBABILITY, GIVEN)]
    table = read_table(path, header, names)

    row_of = pd.Index(ids)
    ends = np.stack([row_of.get_indexer(pd.Index(table[name].str.strip())) for name in names], axis=1)
    unknown = np.argwhere(ends < 0)
    if len(unknown):
        row, end = unknown[0]
        missing = table[names[end]].iloc[row].strip()
        has = "has in its first line, where the header should be" if missing == ids.name else "does not have"
        raise DataError(f"line {line_of(table.index[row])} of {path} names the node {missing!r}, which {nodes} {has}")
    weight, probability, given = (None if name is None else table[name] for name in columns)
    if probability is not None and not pd.api.types.is_numeric_dtype(probability):
        probability = None
    about = {
        "weight": None if weight is None else _weights(path, weight),
        "probability": None if probability is None else probability.to_numpy(dtype=np.float32, copy=True),
        "given": given.to_numpy(copy=True) if given is not None and given.dtype == bool else None,
    }
    return ends.astype(np.int64), about


def _ends(
    path: str | Path, header: Header, source: str | None, target: str | None, ids: pd.Series[str]
) -> tuple[str, str]:
    """The columns of the two ends of an edge."""
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


def _check_header(path: str | Path, written: Sequence[str], ids: pd.Series[str]) -> None:
    """Refuse columns that are called as nodes are: the first edge would be taken for the header, and be lost."""
    ends = [name.strip() for name in written]
    if ids.isin(ends).sum() == len(set(ends)):
        raise DataError(
            f"the first line of {path} names the nodes {' and '.join(map(repr, ends))}, so it seems to be an edge and "
            "no header: put a line source,target above it"
        )


def _weights(path: str | Path, weight: pd.Series[Any]) -> NDArray[np.float32]:
    """The weight of every edge [E]."""
    import pandas as pd

    numbers: NDArray[np.float32] = pd.to_numeric(weight, errors="coerce").to_numpy(dtype=np.float32, copy=True)
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        value = weight.iloc[wrong[0]]
        found = "no weight" if pd.isna(value) else f"the weight {value}"
        raise DataError(
            f"line {line_of(weight.index[wrong[0]])} of {path} has {found}: weights are finite numbers of at least 0"
        )
    return numbers
