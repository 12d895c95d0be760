"""Graphs from a table of nodes and a table of edges, in CSV or Parquet files."""

from __future__ import annotations

import io
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data

from gumbel_mpnn.data.check import set_edges
from gumbel_mpnn.data.columns import (
    NO_VALUE,
    FeatureColumn,
    Table,
    Wanted,
    classes_of,
    features_of,
    find_name,
    listed,
    pick_name,
    text_features,
    trained_columns,
    warn,
)
from gumbel_mpnn.data.splits import IntArray, Masks, set_masks
from gumbel_mpnn.settings.registry import normal_name
from gumbel_mpnn.util.errors import DataError, reason, unopened

if TYPE_CHECKING:
    import pandas as pd

SPLIT = "split"
"""Column of nodes with the part of the split, one of `PARTS`."""
PARTS = ("train", "val", "test")
EDGE_ATTRIBUTES = {"weight": "edge_weight", "probability": "edge_probability", "given": "edge_origin"}
"""Columns of edges, and the attributes of a graph that they become."""
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class InputFile:
    """A file of the user; a pipe, which can be read only once, is read when it is opened."""

    path: Path
    content: bytes | None = None
    """Content of a pipe."""

    @classmethod
    def of(cls, path: str | Path | InputFile) -> InputFile:
        """Open `path`; an open file is returned as it is, so that a pipe is not read again."""
        if isinstance(path, InputFile):
            return path
        try:
            is_file = Path(path).is_file()
            return cls(Path(path), None if is_file else Path(path).read_bytes())
        except FileNotFoundError:
            raise DataError(f"there is no file {path}: check the path") from None
        except IsADirectoryError:
            raise DataError(f"{path} is a folder: give the path of a file") from None
        except OSError as error:
            raise unopened(str(path), error) from None

    def __str__(self) -> str:
        return str(self.path)

    @property
    def source(self) -> Path | io.BytesIO:
        """What other packages read: the path, or the content of a pipe."""
        return self.path if self.content is None else io.BytesIO(self.content)

    def begins_with(self, mark: bytes) -> bool:
        """Whether these are the first bytes of the file."""
        if self.content is not None:
            return self.content.startswith(mark)
        try:
            with self.path.open("rb") as file:
                return file.read(len(mark)) == mark
        except OSError as error:
            raise unopened(str(self), error) from None


class TableFile:
    """A CSV or Parquet file: the names of its columns, and its cells."""

    def __init__(self, path: str | Path | InputFile) -> None:
        self.file = InputFile.of(path)
        self.where = str(self.file)
        self._parquet = self._read_parquet() if self.file.begins_with(b"PAR1") else None
        header = self._read_csv(nrows=0) if self._parquet is None else self._parquet
        self.columns: list[str] = [str(name) for name in header.columns]
        self._check_header()

    def _check_header(self) -> None:
        for separator, word in _OTHER_SEPARATORS.items():
            if len(self.columns) == 1 and separator in self.columns[0]:
                raise DataError(f"the cells of {self.where} are separated by {word}: use commas")
        if self._parquet is None and self.columns:
            written = self._read_csv(nrows=1, header=None, dtype=str).iloc[0]  # pandas renames the second x to x.1
            twice = written[written.duplicated() & (written != "")]
            if len(twice):
                raise DataError(f"{self.where} has two columns {twice.iloc[0]!r}: rename one")

    def find(self, name: str) -> str | None:
        """Return the column that matches `name`, or None."""
        return find_name(self.columns, name, self.where)

    def pick(self, name: str) -> str:
        """Return the column that the user asked for, or raise a `DataError`."""
        return pick_name(self.columns, name, self.where)

    def read(self, text: Sequence[str]) -> Table:
        """Read all rows that are not blank; the columns `text` become text, empty where it is missing.

        Integers of a Parquet file remain integers.
        """
        import pandas as pd

        if self._parquet is not None:
            table = self._parquet.assign(**{name: self._text(self._parquet[name]) for name in text})
            table.index = pd.RangeIndex(1, len(table) + 1, name="row")
            return Table(table, self.where)
        empty = {name: [*NO_VALUE] for name in self.columns if name not in text}
        table = self._read_csv(dtype=dict.fromkeys(text, str), na_values=empty)
        if not isinstance(table.index, pd.RangeIndex):
            raise DataError(f"the lines of {self.where} have more cells than its header: add the missing column names")
        table.index = pd.RangeIndex(2, len(table) + 2, name="line")
        blank = (table.isna() | (table == "")).all(axis=1)
        return Table(table[~blank].infer_objects() if blank.any() else table, self.where)

    def _read_csv(self, **options: Any) -> pd.DataFrame:
        import pandas as pd

        # NA can be the name of a node, and blank lines count as lines.
        common: dict[str, Any] = {"keep_default_na": False, "skipinitialspace": True, "skip_blank_lines": False}
        try:
            return pd.read_csv(self.file.source, **common, **options)
        except pd.errors.EmptyDataError:
            return pd.DataFrame()
        except UnicodeError as error:
            raise DataError(f"{self.where} is not encoded in UTF-8: save it as UTF-8") from error
        except MemoryError:
            raise
        except Exception as error:  # pandas and decompressors raise many kinds for files that they do not expect
            raise DataError(f"{self.where} is not a valid CSV file ({reason(error)})") from error

    def _read_parquet(self) -> pd.DataFrame:
        import pandas as pd

        try:
            table = pd.read_parquet(self.file.source, engine="pyarrow")
        except ImportError:
            raise DataError(
                f"{self.where} is a Parquet file, which needs pyarrow: pip install 'gumbel-mpnn[parquet]'"
            ) from None
        except MemoryError:
            raise
        except Exception as error:  # as above
            raise DataError(f"{self.where} is not a complete Parquet file ({reason(error)}): write it again") from error
        decimals = [name for name in table if pd.api.types.infer_dtype(table[name]) == "decimal"]
        table = table.astype(dict.fromkeys(decimals, float))
        return table if table.index.name is None else table.reset_index()

    def _text(self, cells: pd.Series[Any]) -> pd.Series[Any]:
        import pandas as pd

        if pd.api.types.is_integer_dtype(cells) and not cells.hasnans:
            return cells.astype(np.int64)
        if pd.api.types.is_float_dtype(cells):
            raise DataError(
                f"column {cells.name!r} of {self.where} holds decimals: store ids and labels as text or whole numbers"
            )
        return cells.astype(object).where(cells.notna(), "").astype(str)


def from_csv(
    nodes: str | Path | InputFile,
    edges: str | Path | InputFile | None = None,
    label: str | None = None,
    features: Wanted = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    undirected: bool = True,
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
            They become one-hot, and a missing value is a category. Text and dates are left out with a warning. The
            `feature_columns` of another graph give the same columns and categories; the label may be missing then.
        id: column with the id of the node; by default the one called `id`, or else the first.
        source: column with the id of the source of an edge; by default the one called `source`, or else the first.
        target: column with the id of the target; by default the one called `target`, or else the second.
        undirected: whether every edge goes both ways.
    """
    node_file, edge_file = TableFile(nodes), None if edges is None else TableFile(edges)
    if not node_file.columns:
        raise DataError(f"{node_file.where} has no nodes: add a row for each")
    id = node_file.pick(id) if id else node_file.find("id") or node_file.columns[0]
    columns = NodeColumns.of(node_file.columns, label, features, node_file.where, others=(id,))
    table = node_file.read([*columns.taken, *text_features(features, node_file.columns, node_file.where)])
    ids = _ids(table, id)
    ends, links = _edges(edge_file, ids, node_file.where, source, target)
    data = graph_of_tables(table, columns, ids.astype(str).tolist(), ends, links, undirected)
    files = {"nodes": node_file.file, "edges": None if edge_file is None else edge_file.file}
    names = {"label": columns.label, "id": id, "source": source, "target": target}
    describe_source(data, "csv", files, names, features, undirected)
    return data


from_parquet = from_csv


class NodeColumns(NamedTuple):
    """What the columns of a table of nodes are."""

    label: str | None
    split: str | None
    features: Wanted
    others: tuple[str, ...] = ()
    """Columns that are none of these, and no features."""

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        label: str | None,
        features: Wanted,
        where: str,
        what: str = "column",
        others: tuple[str, ...] = (),
    ) -> NodeColumns:
        """Find the label, which may be missing if a trained model says which columns are features, and the split."""
        trained = trained_columns(features)
        if label is not None:
            label = find_name(names, label, where, what) if trained else pick_name(names, label, where, what)
        return cls(label, find_name(names, SPLIT, where, what), features, others)

    @property
    def taken(self) -> list[str]:
        """Columns that are not features."""
        return [name for name in (self.label, self.split, *self.others) if name is not None]


def _ids(table: Table, id: str) -> pd.Series[Any]:
    """Return the ids of the nodes, each different."""
    ids = table.frame[id] if table.frame[id].dtype.kind in "iu" else table.frame[id].str.strip()
    if ids.empty:
        raise DataError(f"{table.where} has no nodes: add a row for each")
    empty, repeated = np.flatnonzero(ids == ""), np.flatnonzero(ids.duplicated())
    if len(empty):
        raise DataError(f"{table.place(empty[0])} has no node id: add one")
    if len(repeated):
        raise DataError(f"{table.place(repeated[0])} repeats the node {str(ids.iloc[repeated[0]])!r}")
    return ids


def _edges(
    file: TableFile | None, ids: pd.Series[Any], nodes: str, source: str | None, target: str | None
) -> tuple[IntArray, Table | None]:
    """Return the edges [E, 2] as row numbers of nodes, and the table of their other columns."""
    import pandas as pd

    if file is None or not file.columns:
        return np.empty((0, 2), dtype=np.int64), None
    if len(file.columns) < 2:
        raise DataError(f"{file.where} needs two columns separated by commas, one for each end of an edge")
    first, second = (file.find(name) for name in ("source", "target"))
    if first is None or second is None:
        first, second = file.columns[:2]
        written = [first.strip(), second.strip()]
        if not source and not target and ids.astype(str).isin(written).sum() == len(set(written)):
            raise DataError(
                f"the header of {file.where} names the nodes {listed(written)}, so it seems to be an edge: add a header"
                " such as source,target"
            )
    ends = [file.pick(source) if source else first, file.pick(target) if target else second]
    table = file.read(ends)
    places = []
    for name in ends:
        cells = table.frame[name]
        known, wanted = (ids, cells) if cells.dtype.kind == ids.dtype.kind else (ids.astype(str), cells.astype(str))
        places.append(
            pd.Index(known).get_indexer(pd.Index(wanted if wanted.dtype.kind in "iu" else wanted.str.strip()))
        )
    index = np.stack(places, axis=1).astype(np.int64)
    if (index < 0).any():
        row, end = np.argwhere(index < 0)[0]
        missing = str(table.frame[ends[end]].iloc[row]).strip()
        raise DataError(f"{table.place(row)} names the node {missing!r}, which {nodes} does not have")
    return index, table._replace(frame=table.frame.drop(columns=ends))


def graph_of_tables(
    nodes: Table,
    columns: NodeColumns,
    ids: Sequence[Hashable],
    ends: IntArray,
    edges: Table | None,
    undirected: bool,
) -> Data:
    """Build a graph of its nodes and its edges `ends` [E, 2], with `node_ids` and `class_names`.

    `edges` has a row for each edge, with its weight, probability and origin.
    """
    x, feature_columns = features_of(nodes, columns.features, columns.taken)
    data = Data(x=None if x is None else torch.from_numpy(x), edge_index=torch.from_numpy(ends.T.copy()))
    if x is None:
        data.num_nodes = len(ids)
    data.node_ids, data.feature_columns = list(ids), feature_columns
    if columns.label is not None:
        labels = nodes.frame[columns.label].astype(str).str.strip().tolist()
        y, data.class_names = classes_of(labels, ids, nodes.where)
        data.y, data.label_name = torch.from_numpy(y), columns.label
        if columns.split is not None:
            set_masks(data, _masks(nodes, columns.split))
    if edges is not None:
        _set_edge_values(data, edges)
    return with_merged_edges(data, undirected)


def with_merged_edges(data: Data, undirected: bool) -> Data:
    """Merge and mirror the edges of a graph; `edges_listed` is their number before.

    If the edges have a direction, `data.undirected` is False.
    """
    data.edges_listed = data.edge_index.shape[1]
    set_edges(data, undirected)
    if not undirected:
        data.undirected = False
    return data


def _masks(nodes: Table, part: str) -> Masks:
    parts = nodes.frame[part].astype(str).str.strip().str.lower().to_numpy()
    unknown = np.flatnonzero(~np.isin(parts, ("", *PARTS)))
    if len(unknown):
        raise DataError(
            f"{nodes.place(unknown[0])} is in the split {parts[unknown[0]]!r}: write train, val, test or nothing"
        )
    return Masks(*(parts == name for name in PARTS))


def _set_edge_values(data: Data, edges: Table) -> None:
    """Set weights, probabilities and origins of edges; warn about other columns."""
    import pandas as pd

    frame = edges.frame
    weight, probability, given = (find_name(frame.columns, name, edges.where, edges.what) for name in EDGE_ATTRIBUTES)
    if weight is not None:
        numbers = pd.to_numeric(frame[weight], errors="coerce").to_numpy(dtype=np.float32, na_value=np.nan)
        wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
        if len(wrong):
            value = frame[weight].iloc[wrong[0]]
            has = "no weight" if pd.isna(value) else f"the weight {value}"
            raise DataError(f"{edges.place(wrong[0])} has {has}: weights must be finite and at least 0")
        data.edge_weight = torch.from_numpy(numbers.copy())
    if probability is not None and pd.api.types.is_numeric_dtype(frame[probability]):
        data.edge_probability = torch.from_numpy(frame[probability].to_numpy(dtype=np.float32).copy())
    if given is not None and frame[given].dtype == bool:
        data.edge_origin = torch.from_numpy(frame[given].to_numpy().copy())
    unused = [str(name) for name in frame.columns if name not in (weight, probability, given)]
    if unused:
        warn(
            f"of the edges in {edges.where}, {listed(unused)} {'are' if len(unused) > 1 else 'is'} not used: models use"
            f" the {edges.what} weight only"
        )


def describe_source(
    data: Data,
    reader: str,
    files: Mapping[str, InputFile | None],
    columns: Mapping[str, str | None],
    features: Wanted,
    undirected: bool,
) -> None:
    """Set the name of a graph, after its file, and `source_files`, which says how to read it again, as plain JSON.

    Paths are absolute. `features` is None for all, and empty for none. A graph from a pipe, which cannot be read again,
    is called `own` and has no `source_files`. A graph is never called like a data set of the package, whose presets it
    would get.
    """
    from gumbel_mpnn.data.datasets import specs  # which reads npz files, as other modules that import this one

    given = {name: file for name, file in files.items() if file is not None}
    is_stream = any(file.content is not None for file in given.values())
    name = "own" if is_stream else next(iter(given.values())).path.stem
    data.name = f"own-{name}" if normal_name(name) in specs else name
    described = [each.to_dict() if isinstance(each, FeatureColumn) else each for each in features or ()]
    if not is_stream:
        data.source_files = {
            "reader": reader,
            **{name: None if file is None else str(file.path.absolute()) for name, file in files.items()},
            **columns,
            "features": None if features is None else described,
            "undirected": undirected,
        }
