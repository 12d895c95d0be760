"""Graphs from the user's own npz files, and what all readers of own graphs share."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn.config.registry import normal_name
from gumbel_mpnn.data.feature_columns import FeatureColumn, Wanted
from gumbel_mpnn.data.input_file import InputFile
from gumbel_mpnn.data.load import specs
from gumbel_mpnn.data.names import check_readable
from gumbel_mpnn.data.npz import read_own_graph
from gumbel_mpnn.data.raw import BoolArray, IntArray, Masks, RawGraph, set_edges
from gumbel_mpnn.data.validate import validate
from gumbel_mpnn.graph import check_edges

SPLIT = "split"  # column or attribute with the values train, val and test
PROBABILITY = "probability"  # column or attribute with the probability that rewiring gave an edge
GIVEN = "given"  # column or attribute that says whether an edge existed before rewiring
MOST_CLASSES = 10_000
"""A column with more different values is hardly a label."""
MOST_CLASSES_OF_DECIMALS = 20
"""Decimal labels are taken as a quantity if they have more values than this and than half of the labelled nodes."""
MISSING = frozenset({"NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"})
"""What other programs write for a missing value."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def from_npz(
    path: str | Path | InputFile,
    undirected: bool | None = None,
    features: bool = True,
    as_listed: bool = False,
    labels: bool = True,
) -> Data:
    """Read a graph from an npz file, which is never unpickled; a warning names arrays that are not used.

    Required arrays:

    - `edges`, integer [E, 2];
    - `node_labels`, integer [N], -1 for unlabelled nodes.

    Optional arrays:

    - the features, either as `node_features` [N, F] or in CSR form as `features_shape`, `features_indptr`,
      `features_indices` and `features_data`, which can be omitted if all stored values are 1;
    - `train_masks`, `val_masks` and `test_masks`, bool [S, N], or `train_idx`, `valid_idx` and `test_idx`;
    - `class_names` and `node_ids`, one name per class and per node;
    - `metric`, by which models are evaluated;
    - `weight` and `probability`, one number per edge;
    - `given`, whether each edge existed before rewiring, which becomes `edge_origin`;
    - `directed`, whether edges have a direction. If not, every edge goes both ways, even if it is listed once.

    Args:
        path: path of the file.
        undirected: whether every edge goes both ways. None makes edges undirected unless the file says `directed`.
            False keeps directions unless the file says that there are none.
        features: False leaves `x` out.
        as_listed: keep every edge as often as the file lists it, and in the direction listed, whatever `undirected`.
        labels: False reads a graph for measures only; a file without labels then needs features or `num_nodes`.
    """
    path = InputFile.of(path)
    graph = read_own_graph(path, labels)
    if not features:
        graph = replace(graph, x=None)
    unlabelled = not labels and (graph.y == -1).all()
    data = _without_labels(graph) if unlabelled else graph.to_data()
    both_ways = graph.directed is False or (not graph.directed if undirected is None else undirected)
    data = named_after(path, finish(data, both_ways, as_listed, where=str(path)))
    data.source_files = source_files(
        "npz", {"path": path}, {}, features=None if features else [], undirected=both_ways, as_listed=as_listed
    )
    return data


def named_after(file: InputFile, data: Data) -> Data:
    """Name a graph after its file, but never like a data set of the package, whose presets it would get.

    A pipe has no name, only a number that may be another one the next time.
    """
    name = "own" if file.is_stream else file.path.stem
    data.name = f"own-{name}" if normal_name(name) in specs else name
    return data


def source_files(
    reader: str,
    paths: Mapping[str, InputFile | None],
    columns: Mapping[str, str | None],
    features: Wanted | Literal[False] | None,
    undirected: bool,
    as_listed: bool,
) -> dict[str, Any]:
    """Describe how to read a graph again: the reader (`csv`, `npz` or `graphml`) and its arguments, as plain JSON.

    Paths are absolute. `features` is None for all, and empty for none. All readers have the same keys with values of
    the same type, since PyG cannot join other graphs in a `Batch`. A graph from a pipe, which cannot be read again, has
    no description.
    """
    if any(file is not None and file.is_stream for file in paths.values()):
        return {}
    files = dict.fromkeys(("nodes", "edges", "path")) | {
        name: None if file is None else str(file.path.absolute()) for name, file in paths.items()
    }
    return {
        "reader": reader,
        **files,
        **dict.fromkeys(("label", "id", "source", "target")),
        **columns,
        "features": None
        if features is None
        else [each.to_dict() if isinstance(each, FeatureColumn) else each for each in features or ()],
        "undirected": undirected,
        "as_listed": as_listed,
    }


def described(data: Data, columns: list[FeatureColumn], label: str | None) -> None:
    """Set `feature_columns` and, if there are labels, `label_name`, with which other files can be read alike."""
    data.feature_columns = columns
    if label is not None:
        data.label_name = str(label)


def assemble(
    where: str,
    ids: Sequence[Hashable],
    labels: Sequence[str] | None,
    x: NDArray[np.float32] | None,
    edges: IntArray,
    weight: NDArray[np.float32] | None,
    probability: NDArray[np.float32] | None,
    given: BoolArray | None,
    split: Sequence[str] | None,
    undirected: bool,
    as_listed: bool,
) -> Data:
    """Build a validated `Data` with `node_ids` and `class_names`, which map predictions back to the input."""
    check_readable(ids, "the node id", where)
    check_readable(dict.fromkeys(labels or ()), "the label", where)
    about: dict[str, Any] = {"weight": weight, "probability": probability, "given": given}
    if labels is None:
        data = _without_labels(RawGraph(edges, np.full(len(ids), -1), x, **about))
    else:
        check_classes(labels, where)
        y, class_names = encode_labels(labels, ids, where)
        masks = None if split is None else _split_masks(split, ids, where)
        data = RawGraph(edges, y, x, masks, class_names, **about).to_data()
    data.node_ids = list(ids)
    return finish(data, undirected, as_listed, where)


def check_classes(labels: Iterable[str], where: str) -> None:
    """Raise a `DataError` if there are too many classes to be classes."""
    found = len(set(labels))
    if found > MOST_CLASSES:
        raise DataError(
            f"{where}: the label has {found:,} different values, and at most {MOST_CLASSES:,} classes can be learned:"
            " choose another column"
        )


def finish(data: Data, undirected: bool, as_listed: bool, where: str) -> Data:
    """Validate a graph as listed, then merge and mirror its edges unless `as_listed`.

    A merged graph has the number of listed edges in `edges_listed`, for messages about merged duplicates. If its edges
    have a direction, `data.undirected` is False.
    """
    try:
        if data.y is None:
            check_edges(data.edge_index, num_nodes=int(data.num_nodes or 0))
        else:
            validate(data)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    if not as_listed:
        data.edges_listed = data.edge_index.shape[1]
        set_edges(data, undirected)
        if not undirected:
            data.undirected = False
    return data


def _without_labels(graph: RawGraph) -> Data:
    """Return a graph without `y` and masks, which can be measured but not trained on."""
    data = replace(graph, masks=None, class_names=None).to_data()
    data.num_nodes, data.y = len(graph.y), None
    return data


def warn_of_unused(where: str, what: str, names: Sequence[object]) -> None:
    """Warn about columns or attributes of edges that are not used."""
    if names:
        shown = " and ".join(repr(str(name)) for name in names[:3])
        warnings.warn(
            f"of the edges in {where}, {shown}{f' and {len(names) - 3} more' * (len(names) > 3)}"
            f" {'are' if len(names) > 1 else 'is'} not used: models use {what} called weight only",
            DataWarning,
            stacklevel=4,
        )


def encode_labels(labels: Sequence[str], ids: Sequence[Hashable], where: str) -> tuple[IntArray, list[str]]:
    """Return the class number of each label and the name of each class; empty labels become -1."""
    names = set(labels) - {""}
    _warn_of_missing(names, labels, where)
    if all(map(_is_number, names)):
        _check_one_way(names, where)
        if all(float(name).is_integer() for name in names):
            _check_sign(labels, ids, where)
        if not all(map(_is_integer, names)):
            _check_decimals(names, labels, where)
        class_names = sorted(names, key=lambda name: (int(name) if _is_integer(name) else float(name), name))
    else:
        class_names = sorted(names)
    number = {name: k for k, name in enumerate(class_names)} | {"": -1}
    return np.array([number[label] for label in labels], dtype=np.int64), class_names


def _warn_of_missing(names: set[str], labels: Sequence[str], where: str) -> None:
    """Warn about class names that mean a missing value in other programs."""
    for name in sorted(names & MISSING):
        count = labels.count(name)
        warnings.warn(
            f"{count} node{'s have' if count > 1 else ' has'} the label {name!r} in {where}, which is used as a class:"
            " if it means unlabelled, leave the label empty",
            DataWarning,
            stacklevel=5,
        )


def _check_one_way(names: set[str], where: str) -> None:
    """Raise a `DataError` if a number is written in two ways, such as 1 and 01."""
    first: dict[Decimal, str] = {}
    for name in sorted(names):
        other = first.setdefault(Decimal(name), name)
        if other != name:
            raise DataError(f"{where}: a label is written in two ways, {other} and {name}: write each class in one way")


def _check_sign(labels: Sequence[str], ids: Sequence[Hashable], where: str) -> None:
    negative = next((k for k, label in enumerate(labels) if label.startswith("-")), None)
    if negative is not None:
        # -1 can mean "unlabelled" or be the name of a class, and a wrong guess would silently spoil training.
        raise DataError(
            f"{where}: node {ids[negative]!r} has the label {labels[negative]}: leave the label of an unlabelled "
            "node empty and number classes from 0"
        )


def _check_decimals(names: set[str], labels: Sequence[str], where: str) -> None:
    """Raise a `DataError` if the labels are a quantity, and warn if they are decimals that could be classes."""
    first, last = min(names, key=float), max(names, key=float)
    labelled = sum(label != "" for label in labels)
    if len(names) > max(MOST_CLASSES_OF_DECIMALS, labelled / 2):
        raise DataError(
            f"{where}: the labels are {len(names)} different numbers from {first} to {last}, a quantity: "
            "bin them into classes first, for example low, middle and high"
        )
    warnings.warn(
        f"the labels of {where} are decimals like {first}: each value is used as a class, {len(names)} in total",
        DataWarning,
        stacklevel=5,
    )


def _is_integer(label: str) -> bool:
    return label.removeprefix("-").isdecimal()


def _is_number(label: str) -> bool:
    return _NUMBER.fullmatch(label) is not None and math.isfinite(float(label))


def _split_masks(split: Sequence[str], ids: Sequence[Hashable], where: str) -> Masks:
    for node, part in zip(ids, split, strict=True):
        if part not in ("train", "val", "test", ""):
            raise DataError(f"{where}: node {node!r} is in the split {part!r}: write train, val, test or nothing")
    parts: NDArray[Any] = np.array(split)
    found: list[BoolArray] = [parts == part for part in ("train", "val", "test")]
    return Masks(*found)
