"""Graphs from a table of nodes and a table of edges, in CSV or Parquet files."""

from __future__ import annotations

import io
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data

from gumbel_mpnn.data.check import set_edges
from gumbel_mpnn.data.columns import (
    NO_VALUE,
    FeatureColumn,
    Table,
    Wanted,
    as_text,
    classes_of,
    features_of,
    listed,
    trained_columns,
    warn,
)
from gumbel_mpnn.data.splits import IntArray, Masks, set_masks
from gumbel_mpnn.settings.registry import normal_name
from gumbel_mpnn.util.errors import DataError, as_data_error, unopened
from gumbel_mpnn.util.files import suffix_of

if TYPE_CHECKING:
    import pandas as pd

SPLIT = "split"
"""Column of nodes with the part of the split, one of `PARTS`."""
PARTS = ("train", "val", "test")
EDGE_ATTRIBUTES = {"weight": "edge_weight", "probability": "edge_probability", "given": "edge_origin"}
"""Columns of edges, and the attributes of a graph that they become."""
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def opened(path: str | Path) -> Path | io.BytesIO:
    """Return what other packages read: the path of a file, or the content of a pipe, which can be read only once."""
    try:
        with Path(path).open("rb") as file:
            return Path(path) if Path(path).is_file() else io.BytesIO(file.read())
    except FileNotFoundError:
        raise DataError(f"there is no file {path}: check the path") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder: give the path of a file") from None
    except OSError as error:
        raise unopened(str(path), error) from None


class TableFile:
    """A CSV or Parquet file: its header, and its rows once it is known which columns are text."""

    def __init__(self, path: str | Path) -> None:
        self.where, self._source = str(path), opened(path)
        self._is_parquet = suffix_of(path) in (".parquet", ".pq")
        self.header = Table(self._read_parquet() if self._is_parquet else self._read_header(), self.where)
        self.columns: list[str] = list(self.header.frame.columns)

    def read(self, text: Sequence[str]) -> Table:
        """Read all rows that are not blank; the columns `text` of a CSV file remain text."""
        import pandas as pd

        if self._is_parquet:
            return self.header
        empty = {name: [*NO_VALUE] for name in self.columns if name not in text}
        frame = self._read_csv(dtype=dict.fromkeys(text, str), na_values=empty)
        if not isinstance(frame.index, pd.RangeIndex):
            raise DataError(f"the lines of {self.where} have more cells than its header: add the missing column names")
        frame.index = pd.RangeIndex(2, len(frame) + 2, name="line")
        return Table(frame[~(frame.isna() | (frame == "")).all(axis=1)], self.where)

    def _read_header(self) -> pd.DataFrame:
        header = self._read_csv(nrows=0)
        names = list(header.columns)
        for separator, word in _OTHER_SEPARATORS.items():
            if len(names) == 1 and separator in names[0]:
                raise DataError(f"the cells of {self.where} are separated by {word}: use commas")
        if names:
            written = self._read_csv(nrows=1, header=None, dtype=str).iloc[0]  # pandas renames the second x to x.1
            for name in written[written.duplicated() & (written != "")]:
                raise DataError(f"{self.where} has two columns {name!r}: rename one")
        return header

    def _read_csv(self, **options: Any) -> pd.DataFrame:
        # NA can be the name of a node, and blank lines count as lines.
        return self._read("CSV", keep_default_na=False, skipinitialspace=True, skip_blank_lines=False, **options)

    def _read_parquet(self) -> pd.DataFrame:
        import pandas as pd

        frame = self._read("Parquet", engine="pyarrow")
        decimals = [name for name in frame if pd.api.types.infer_dtype(frame[name]) == "decimal"]
        frame = frame.astype(dict.fromkeys(decimals, float))
        frame = frame if frame.index.name is None else frame.reset_index()
        return frame.rename(columns=str).set_axis(pd.RangeIndex(1, len(frame) + 1, name="row"))

    def _read(self, kind: str, **options: Any) -> pd.DataFrame:
        import pandas as pd

        if isinstance(self._source, io.BytesIO):
            self._source.seek(0)
        with as_data_error(f"{self.where} is not a valid {kind} file"):
            try:
                frame: pd.DataFrame = getattr(pd, f"read_{kind.lower()}")(self._source, **options)
                return frame
            except pd.errors.EmptyDataError:
                return pd.DataFrame()
            except ImportError:
                raise DataError(f"{self.where} needs the package pyarrow: pip install 'gumbel-mpnn[parquet]'") from None
            except UnicodeError as error:
                raise DataError(f"{self.where} is not encoded in UTF-8: save it as UTF-8") from error


def from_csv(
    nodes: str | Path,
    edges: str | Path | None = None,
    label: str | None = None,
    features: Wanted = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    undirected: bool = True,
) -> Data:
    """Read a graph from two CSV files, each with a header line, or from files `.parquet`, which need pyarrow.

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
            They become one-hot, and a missing value is a category. Text and dates are left out with a warning. The
            `feature_columns` of another graph give the same columns and categories; the label may be missing then.
        id: column with the id of the node; by default the one called `id`, or else the first.
        source: column with the id of the source of an edge; by default the one called `source`, or else the first.
        target: column with the id of the target; by default the one called `target`, or else the second.
        undirected: whether every edge goes both ways.
    """
    file = TableFile(nodes)
    if not file.columns:
        raise DataError(f"{file.where} has no nodes: add a row for each")
    id = file.header.pick(id) if id else file.header.find("id") or file.columns[0]
    # A category of a trained model can have only values that look like numbers in another file.
    categorical = (file.header.find(column.name) for column in trained_columns(features) if column.categories)
    text = (id, label_column(file.header, label, features), file.header.find(SPLIT), *categorical)
    table = file.read([name for name in text if name is not None])
    ids = as_text(table.frame[id])
    empty, repeated = np.flatnonzero(ids == ""), np.flatnonzero(ids.duplicated())
    if ids.empty:
        raise DataError(f"{table.where} has no nodes: add a row for each")
    if len(empty):
        raise DataError(f"{table.place(empty[0])} has no node id: add one")
    if len(repeated):
        raise DataError(f"{table.place(repeated[0])} repeats the node {ids.iloc[repeated[0]]!r}")
    ends, links = _edges(edges, table, id, ids, source, target)
    data = graph_of_tables(table, label, features, ids.tolist(), ends, links, undirected, others=[id])
    columns = {"label": label_column(table, label, features), "id": id, "source": source, "target": target}
    describe_source(data, {"nodes": nodes, "edges": edges}, features, undirected, reader="csv", **columns)
    return data


from_parquet = from_csv


def label_column(table: Table, label: str | None, features: Wanted) -> str | None:
    """Return the column of the label, which may be missing if a trained model says which columns are features."""
    if label is None:
        return None
    return table.find(label) if trained_columns(features) else table.pick(label)


def _edges(
    path: str | Path | None, nodes: Table, id: str, ids: pd.Series[Any], source: str | None, target: str | None
) -> tuple[IntArray, Table | None]:
    """Return the edges [E, 2] as row numbers of nodes, and the table of their other columns."""
    import pandas as pd

    if path is None or not (file := TableFile(path)).columns:
        return np.empty((0, 2), dtype=np.int64), None
    if len(file.columns) < 2:
        raise DataError(f"{file.where} needs two columns separated by commas, one for each end of an edge")
    first, second = (file.header.find(name) for name in ("source", "target"))
    if first is None or second is None:
        first, second = file.columns[:2]
        written = [first.strip(), second.strip()]
        if not source and not target and ids.isin(written).sum() == len(set(written)):
            raise DataError(
                f"the header of {file.where} names the nodes {listed(written)}, so it seems to be an edge: add a header"
                " such as source,target"
            )
    ends = [file.header.pick(source) if source else first, file.header.pick(target) if target else second]
    table = file.read(ends)
    cells = [table.frame[end] for end in ends]
    if all(column.dtype.kind in "iu" for column in (nodes.frame[id], *cells)):  # of Parquet files, which is fast
        ids = nodes.frame[id]
    else:
        cells = [as_text(column) for column in cells]
    index = np.stack([pd.Index(ids).get_indexer(pd.Index(column)) for column in cells], axis=1).astype(np.int64)
    for row, end in np.argwhere(index < 0):
        name = str(cells[end].iloc[row])
        raise DataError(f"{table.place(row)} names the node {name!r}, which {nodes.where} does not have")
    return index, table._replace(frame=table.frame.drop(columns=ends))


def graph_of_tables(
    nodes: Table,
    label: str | None,
    features: Wanted,
    ids: Sequence[Hashable],
    ends: IntArray,
    edges: Table | None,
    undirected: bool,
    others: Sequence[str],
) -> Data:
    """Build a graph of its nodes and its edges `ends` [E, 2], whose other columns are in `edges`.

    The columns `others` of the nodes are no features.
    """
    label, split = label_column(nodes, label, features), nodes.find(SPLIT)
    taken = [name for name in (label, split, *others) if name is not None]
    x, feature_columns = features_of(nodes._replace(frame=nodes.frame.infer_objects()), features, taken)
    edge_index, count = torch.from_numpy(ends.T.copy()), len(ids) if x is None else None
    data = Data(x if x is None else torch.from_numpy(x), edge_index, num_nodes=count)
    data.node_ids, data.feature_columns = list(ids), feature_columns
    if label is not None:
        y, data.class_names = classes_of(as_text(nodes.frame[label]).tolist(), ids, nodes.where)
        data.y, data.label_name = torch.from_numpy(y), label
        if split is not None:
            parts = as_text(nodes.frame[split]).str.lower().to_numpy()
            for row in np.flatnonzero(~np.isin(parts, ("", *PARTS))).tolist():
                raise DataError(f"{nodes.place(row)} is in the split {parts[row]!r}: write train, val, test or nothing")
            set_masks(data, Masks(*(parts == name for name in PARTS)))
    if edges is not None:
        _set_edge_values(data, edges)
    return with_merged_edges(data, undirected)


def with_merged_edges(data: Data, undirected: bool) -> Data:
    """Merge and mirror the edges of a graph; `edges_listed` is their number before, and `undirected` may be False."""
    data.edges_listed = data.edge_index.shape[1]
    set_edges(data, undirected)
    if not undirected:
        data.undirected = False
    return data


def _set_edge_values(data: Data, edges: Table) -> None:
    """Set weights, probabilities and origins of edges; warn about other columns."""
    import pandas as pd

    frame = edges.frame.infer_objects()
    weight, probability, given = found = [edges.find(name) for name in EDGE_ATTRIBUTES]
    if weight is not None:
        numbers = pd.to_numeric(frame[weight], errors="coerce").to_numpy(dtype=np.float32, na_value=np.nan)
        for row in np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0))).tolist():
            value = frame[weight].iloc[row]
            has = "no weight" if pd.isna(value) else f"the weight {value}"
            raise DataError(f"{edges.place(row)} has {has}: weights must be finite and at least 0")
        data.edge_weight = torch.from_numpy(numbers.copy())
    if probability is not None and pd.api.types.is_numeric_dtype(frame[probability]):
        data.edge_probability = torch.from_numpy(frame[probability].to_numpy(dtype=np.float32).copy())
    if given is not None and frame[given].dtype == bool:
        data.edge_origin = torch.from_numpy(frame[given].to_numpy().copy())
    unused = [name for name in frame.columns if name not in found]
    if unused:
        warn(
            f"of the edges in {edges.where}, {listed(unused)} {'are' if len(unused) > 1 else 'is'} not used: models use"
            f" the {edges.what} weight only"
        )


def describe_source(
    data: Data, files: Mapping[str, str | Path | None], features: Wanted, undirected: bool, **options: str | None
) -> None:
    """Set the name of a graph, after its first file, and `source_files`, which says how to read it again, as JSON.

    Paths are absolute. `features` is None for all, and empty for none. A graph from a pipe, which cannot be read again,
    is called `own` and has no `source_files`. A graph is never called like a data set of the package, whose presets it
    would get.
    """
    from gumbel_mpnn.data.datasets import specs  # which reads npz files, as other modules that import this one

    paths = {name: Path(file).absolute() for name, file in files.items() if file is not None}
    if not all(path.is_file() for path in paths.values()):
        data.name = "own"
        return
    stem = next(iter(paths.values())).stem
    data.name = f"own-{stem}" if normal_name(stem) in specs else stem
    described = [asdict(each) if isinstance(each, FeatureColumn) else each for each in features or ()]
    data.source_files = {**options, **{name: str(paths[name]) if name in paths else None for name in files}}
    data.source_files |= {"features": None if features is None else described, "undirected": undirected}
