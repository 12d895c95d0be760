"""Graphs that the user gives in Python: arrays and lists are converted, and other tasks are refused by name."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data, Dataset, HeteroData, TemporalData

from gumbel_mpnn._util.errors import DataError, UserError
from gumbel_mpnn.data.names import class_names_of, node_ids_of
from gumbel_mpnn.data.own import MOST_CLASSES_OF_DECIMALS, encode_labels
from gumbel_mpnn.graph.edge_list import is_whole

OURS = "models classify the nodes of one graph"
_ARRAYS = ("x", "edge_index", "edge_weight", "train_mask", "val_mask", "test_mask", "candidate_index", "batch")
_LONG_DOUBLES = {"g": np.float64, "G": np.complex128}
"""Types of numpy that torch does not have, by their character."""


def check_kind(dataset: object) -> None:
    """Raise a `UserError` for a heterogeneous or temporal graph, a PyG data set, or a list of graphs."""
    match dataset:
        case HeteroData():
            raise UserError(
                f"heterogeneous graphs (HeteroData) are not supported: {OURS} with one type of nodes and edges, so"
                " convert it, for example by data.to_homogeneous()"
            )
        case TemporalData():
            raise UserError(
                f"temporal graphs (TemporalData) are not supported: {OURS}, so give the edges up to one point in time"
                " as a Data"
            )
        case Dataset():
            raise UserError(
                f"a {type(dataset).__name__} is a data set of PyG, not a graph: give one of its graphs, as dataset[0]"
            )
        case list() | tuple() if any(isinstance(graph, Data) for graph in dataset):
            raise UserError(
                f"a list of graphs is not supported: {OURS}, so join them by Batch.from_data_list if their nodes have"
                " labels"
            )


def as_graph(data: Data) -> Data:
    """Return a graph whose features, labels, edges and masks are tensors: a copy if something had to be converted.

    Labels may be a list or an array of numbers or of names, which become `class_names`; features may be integers or
    booleans.

    Raises:
        DataError: for what cannot be converted, and for labels of another task: regression, multi-label classification,
            link prediction and the classification of whole graphs.
    """
    if data.get("edge_label_index") is not None or data.get("edge_label") is not None:
        raise DataError(
            f"link prediction is not supported: {OURS}, so delete edge_label_index and edge_label if the nodes have"
            " labels y"
        )
    data, y = as_tensors(data), data.get("y")
    if y is not None and not isinstance(y, Tensor):
        data = _changed(data, _labels(data, y))
    elif y is not None and is_whole(y) and y.dtype != torch.int64:
        data = _changed(data, {"y": y.long()})  # uint8 has no -1, and torch cannot compare uint16
    if data.get("y") is not None:
        _check_task(data, data.y)
    return data


def as_tensors(data: Data) -> Data:
    """Return a graph whose features, edges and masks are tensors; labels are left alone.

    It is a copy if something had to be converted. A `DataError` is raised for what cannot be. What is not a graph is
    returned as it is, for later checks.
    """
    if not isinstance(data, Data):
        return data
    changes: dict[str, Any] = {}
    for name in _ARRAYS:
        value = data.get(name)
        if value is not None and not isinstance(value, Tensor):
            value = changes[name] = _tensor(name, value)
        if value is not None and value.dim() == 0:
            raise DataError(f"data.{name} must be a tensor or an array, not a single value")
    x = changes.get("x", data.get("x"))
    if x is not None and not (x.is_floating_point() or x.is_complex()):
        changes["x"] = x.float()
    return _changed(data, changes) if changes else data


def _changed(data: Data, changes: Mapping[str, Any]) -> Data:
    data = copy.copy(data)
    for name, value in changes.items():
        data[name] = value
    return data


def _tensor(name: str, value: object) -> Tensor:
    try:
        array: NDArray[Any] = np.array(value)  # a copy, since torch cannot hold arrays that are read-only
        if array.dtype.kind == "O":  # Python numbers get the type that a list of them has
            array = np.array(array.tolist())
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.dtype.kind not in "biufc":
        kind = type(value).__name__ if array.dtype.kind == "O" else f"{type(value).__name__} of {array.dtype}"
        raise DataError(f"data.{name} must be a tensor or an array of numbers, not a {kind}: convert it")
    here = _LONG_DOUBLES.get(array.dtype.char, array.dtype.newbyteorder("="))
    tensor = torch.from_numpy(array.astype(here, copy=False))
    # Python's numbers have no precision of their own.
    return tensor.float() if isinstance(value, list | tuple) and tensor.is_floating_point() else tensor


def _labels(data: Data, y: Any) -> dict[str, Any]:
    """Return `y` as a tensor [N] and, if it holds names, `class_names`; missing labels become -1."""
    if isinstance(data, Batch) and isinstance(y, list) and all(isinstance(part, list | np.ndarray) for part in y):
        raise DataError("the labels y of a batch must be tensors: convert those of each graph before joining them")
    try:
        values: NDArray[Any] = np.array(y)
    except ValueError:  # rows of different lengths
        values = np.array(None)
    if values.dtype.kind in "biuf":
        return {"y": torch.from_numpy(values.astype(np.int64) if values.dtype.kind in "iu" else values)}
    if values.dtype.kind in "UT" and isinstance(y, list | tuple):
        values = np.array(y, dtype=object)  # numpy would write None and NaN as text
    if values.ndim != 1 or values.dtype.kind not in "OUT":
        raise DataError(
            f"data.y must have one number or name per node, not a {type(y).__name__} of {values.dtype}: convert it"
        )
    missing = [value is None or value != value for value in values.tolist()]
    if not any(isinstance(value, str) for value in values.tolist()):
        if all(gap or isinstance(value, int) for gap, value in zip(missing, values.tolist(), strict=True)):
            known = [-1 if gap else int(value) for gap, value in zip(missing, values.tolist(), strict=True)]
            return {"y": torch.tensor(known)}
        raise DataError("data.y must have one number or name per node, but has other objects: convert them")
    given = ["" if gap else value for gap, value in zip(missing, values.tolist(), strict=True)]
    other = next((value for value in given if not isinstance(value, str)), None)
    if other is not None:
        raise DataError(f"data.y has both names and other values, such as {other!r}: write all of them as names")
    return _numbered(data, [value.strip() for value in given])


def _numbered(data: Data, names: Sequence[str]) -> dict[str, Any]:
    """Number the names of classes: in the order of `class_names` if the graph has them, otherwise sorted."""
    given = class_names_of(data)
    if given is None:
        y, class_names = encode_labels(names, node_ids_of(data) or range(len(names)), "data.y")
        return {"y": torch.from_numpy(y), "class_names": class_names}
    number = {str(name): k for k, name in enumerate(given)} | {"": -1}
    unknown = next((name for name in names if name not in number), None)
    if unknown is not None:
        raise DataError(f"data.y has the class {unknown!r}, which is not among data.class_names: add it there")
    return {"y": torch.tensor([number[name] for name in names])}


def _check_task(data: Data, y: Tensor) -> None:
    """Raise a `DataError` that names the task if `y` are labels of another one."""
    num_nodes = int(data.num_nodes or 0)
    of_graphs = len(y) if y.dim() else 1
    if of_graphs < num_nodes and of_graphs == (data.num_graphs if isinstance(data, Batch) else 1):
        raise DataError(
            f"graph classification is not supported by fit: y has one label per graph, but {OURS}, so use"
            " gm.GumbelMPNN in a training loop of your own, as in examples/graph_classification.py"
        )
    if y.dim() == 2 and y.shape[1] > 1 and bool(((y == 0) | (y == 1)).all()):
        if bool((y.sum(1) == 1).all()):
            raise DataError("the labels y are one-hot: use data.y.argmax(1)")
        raise DataError(
            f"multi-label classification is not supported: y has {y.shape[1]} labels of 0 and 1 per node, but {OURS}"
            " into one class each, so choose one column, as data.y[:, 0].long()"
        )
    if y.is_floating_point() and y.numel() == len(y):
        known = y[torch.isfinite(y)]
        distinct = len(known.unique())
        if bool((known != known.round()).any()) and distinct > min(MOST_CLASSES_OF_DECIMALS, len(known) / 2):
            raise DataError(
                f"regression is not supported: y has {distinct} different decimal numbers, but {OURS}, so bin them into"
                " classes first, for example low, middle and high"
            )
