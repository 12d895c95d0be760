"""A graph of one's own: what the readers of CSV, npz, GraphML and NetworkX share."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn.config.registry import normal_name
from gumbel_mpnn.data.load import specs
from gumbel_mpnn.data.npz import read_graph
from gumbel_mpnn.data.raw import BoolArray, IntArray, Masks, RawGraph, set_edges
from gumbel_mpnn.data.validate import check
from gumbel_mpnn.graph import check_edges

SPLIT = "split"  # the column or attribute that says train, val or test
PROBABILITY = "probability"  # the column or attribute that says how likely a rewiring found an edge
GIVEN = "given"  # the column or attribute that says whether an edge was there before a rewiring
MOST_CLASSES_OF_DECIMALS = 20
"""More different decimals than this, and than half of the labelled nodes, are no classes but a quantity."""
MISSING = frozenset({"NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"})
"""What other programs write for a value that is missing."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def from_npz(
    path: str | Path,
    undirected: bool | None = None,
    features: bool = True,
    as_listed: bool = False,
    labels: bool = True,
) -> Data:
    """A graph from one npz file, which is never unpickled.

    Arrays: `edges` integer [E, 2]; `node_labels` integer [N], -1 for unlabelled; features either as `node_features`
    [N, F] or in CSR form as `features_shape`, `features_indptr`, `features_indices` and, unless all stored values are
    1, `features_data`. Optional: `train_masks`, `val_masks`, `test_masks` bool [S, N], or `train_idx`, `valid_idx`,
    `test_idx`; `class_names`; `node_ids`, a name for each node; `metric`, which models are judged by; `weight` and
    `probability`, a number for each edge; `given`, whether it was there before a rewiring, which becomes `edge_origin`;
    `directed`, whether edges have a direction: if not, each goes both ways, however often it is listed.

    Args:
        path: of the file.
        undirected: True lets every edge go both ways; None does unless the file says `directed`, and False only if it
            says that they have no direction.
        features: False leaves `x` out, which the file then need not have.
        as_listed: keep every edge as often as the file lists it, in its direction, whatever `undirected` says.
        labels: False takes a graph to measure, whose file may have no labels but then a number `num_nodes`.
    """
    graph = read_graph([Path(path)], labels)
    if not features:
        graph = replace(graph, x=None)
    elif graph.x is None:
        raise DataError(f"{path} has no features: add an array 'node_features' of shape [N, F]")
    unlabelled = not labels and (graph.y == -1).all()
    data = _without_labels(graph) if unlabelled else graph.to_data()
    both_ways = graph.directed is False or (not graph.directed if undirected is None else undirected)
    return named_after(Path(path), finish(data, both_ways, as_listed, where=str(path)))


def named_after(path: Path, data: Data) -> Data:
    """Name a graph after its file, but never like a data set of the package, whose presets it would get."""
    data.name = f"own-{path.stem}" if normal_name(path.stem) in specs else path.stem
    return data


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
    """A checked `Data` that remembers its ids (`node_ids`) and labels (`class_names`), to map predictions back."""
    about: dict[str, Any] = {"weight": weight, "probability": probability, "given": given}
    if labels is None:
        data = _without_labels(RawGraph(edges, np.full(len(ids), -1), x, **about))
    else:
        y, class_names = encode_labels(labels, ids, where)
        masks = None if split is None else _split_masks(split, ids, where)
        data = RawGraph(edges, y, x, masks, class_names, **about).to_data()
    data.node_ids = list(ids)
    return finish(data, undirected, as_listed, where)


def finish(data: Data, undirected: bool, as_listed: bool, where: str) -> Data:
    """Check the graph as it was listed, then merge and mirror its edges unless they stay so.

    Merged, it remembers how many were listed (`edges_listed`), so that a person can be told what was merged, and says
    that its edges have a direction (`undirected` is false) where they do.
    """
    try:
        if data.y is None:
            check_edges(data.edge_index, num_nodes=int(data.num_nodes or 0))
        else:
            check(data)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    if not as_listed:
        data.edges_listed = data.edge_index.shape[1]
        set_edges(data, undirected)
        if not undirected:
            data.undirected = False
    return data


def _without_labels(graph: RawGraph) -> Data:
    """A graph that can be measured, but not trained on: it has no `y` and no masks."""
    data = replace(graph, masks=None, class_names=None).to_data()
    data.num_nodes, data.y = len(graph.y), None
    return data


def encode_labels(labels: Sequence[str], ids: Sequence[Hashable], where: str) -> tuple[IntArray, list[str]]:
    """A class number per label, and the name of each class; empty labels become -1."""
    names = set(labels) - {""}
    _warn_of_missing(names, labels, where)
    if all(map(_is_number, names)):
        if all(float(name).is_integer() for name in names):
            _check_sign(labels, ids, where)
        if not all(map(_is_integer, names)):
            _check_decimals(names, labels, where)
        class_names = sorted(names, key=lambda name: (int(name) if _is_integer(name) else float(name), name))
    else:
        class_names = sorted(names)
    number = {name: k for k, name in enumerate(class_names)} | {"": -1}
    return np.array([number[label] for label in labels], dtype=np.int64), class_names


def warn_of_mixed(what: str, where: str, found: Sequence[tuple[str, str, object]]) -> None:
    """Say that what looks like features was not taken for them: (name, place, value that is no number) of each."""
    if found:
        name, place, value = found[0]
        more = f", and {len(found) - 1} more likewise" if len(found) > 1 else ""
        warnings.warn(
            f"the {what} {name!r} of {where} is not taken as a feature, since {place} has {value!r}, "
            f"which is no number{more}",
            DataWarning,
            stacklevel=4,
        )


def _warn_of_missing(names: set[str], labels: Sequence[str], where: str) -> None:
    """Remark on classes that are called as other programs write a value that is missing."""
    for name in sorted(names & MISSING):
        count = labels.count(name)
        warnings.warn(
            f"{count} node{'s have' if count > 1 else ' has'} the label {name!r} in {where}, which is taken as a class:"
            " if it means unlabelled, leave the label empty",
            DataWarning,
            stacklevel=5,
        )


def _check_sign(labels: Sequence[str], ids: Sequence[Hashable], where: str) -> None:
    negative = next((k for k, label in enumerate(labels) if label.startswith("-")), None)
    if negative is not None:
        # -1 may mean "unlabelled" or a class of that name: guessing wrong would spoil the training unnoticed.
        raise DataError(
            f"{where}: node {ids[negative]!r} has the label {labels[negative]}: leave the label of an unlabelled "
            "node empty and number classes from 0"
        )


def _check_decimals(names: set[str], labels: Sequence[str], where: str) -> None:
    """A quantity is refused, decimals that can be classes are remarked on."""
    first, last = min(names, key=float), max(names, key=float)
    labelled = sum(label != "" for label in labels)
    if len(names) > max(MOST_CLASSES_OF_DECIMALS, labelled / 2):
        raise DataError(
            f"{where}: the labels are {len(names)} different numbers from {first} to {last}, a quantity and no class: "
            "put them into classes first, such as low, middle and high"
        )
    if len(set(map(float, names))) < len(names):
        raise DataError(f"{where}: some label is written in two ways, as 1 and 1.0: write each class one way")
    warnings.warn(
        f"the labels of {where} are decimals, as {first}: each of them is taken as a class, {len(names)} in all",
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
