"""Graphs in npz files, which are never unpickled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.data.columns import listed, warn
from gumbel_mpnn.data.splits import Masks, mask_of, set_masks
from gumbel_mpnn.data.tables import EDGE_ATTRIBUTES, describe_source, opened, with_merged_edges
from gumbel_mpnn.graph import check_edges
from gumbel_mpnn.util.errors import DataError, as_data_error

Arrays = dict[str, NDArray[Any]]

_MASKS = {"train_masks": "train_idx", "val_masks": "valid_idx", "test_masks": "test_idx"}
_KNOWN = {
    *("edges", "node_labels", "num_nodes", "class_names", "node_ids", "metric", "directed", "node_features"),
    *("features_shape", "features_indptr", "features_indices", "features_data"),
    *(*EDGE_ATTRIBUTES, *_MASKS, *_MASKS.values()),
}
_NAMES = (
    "the arrays of a graph are edges of shape [E, 2] (not edge_index), node_labels (not y), node_features (not x),"
    " weight (not edge_weight), train_masks, val_masks and test_masks; the help of from_npz lists all"
)


def from_npz(
    path: str | Path,
    undirected: bool | None = None,
    features: bool = True,
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
        labels: False reads a graph for measures only; a file without labels then needs features or `num_nodes`.
    """
    arrays = read_npz(path, required=("edges", "node_labels") if labels else ("edges",))
    unused = [name for name in arrays if name not in _KNOWN]
    if unused:
        many = len(unused) > 1
        warn(f"the array{'s' * many} {listed(unused)} of {path} {'are' if many else 'is'} not used: {_NAMES}")
    data = graph_of(arrays, path)
    if not features:
        data.num_nodes, data.x = data.num_nodes, None
    if data.y is not None and (data.y < 0).all():
        if labels:
            raise DataError(f"{path}: no node of the graph has a label: give at least the training nodes one")
        data.num_nodes, data.y = len(data.y), None
    directed = bool(array(arrays, "directed", path, "b", ()).item()) if "directed" in arrays else None
    both_ways = directed is False or (not directed if undirected is None else undirected)
    with_merged_edges(data, both_ways)
    describe_source(data, {"path": path}, None if features else False, both_ways, reader="npz")
    return data


def read_graph(paths: Sequence[Path]) -> Data:
    """Read a graph from one npz file, the only path, in the layout documented in `from_npz`, with edges as listed."""
    (path,) = paths
    return graph_of(read_npz(path, required=("edges", "node_labels")), path)


def read_npz(path: str | Path, required: Sequence[str] = ()) -> Arrays:
    """Read all arrays of a file by name; raise a `DataError` if one of the `required` arrays is missing."""
    wrong = f"{path} is not a complete npz file of numbers and text"
    with as_data_error(wrong, ": write it again with np.savez"), np.load(opened(path), allow_pickle=False) as file:
        arrays: Arrays = {name: np.asarray(file[name]) for name in file}
    missing = [name for name in required if name not in arrays]
    if missing:
        has = ", ".join(sorted(arrays)) or "none at all"
        raise DataError(f"{path} has no array{'s' * (len(missing) > 1)} {listed(missing)}, only {has}: {_NAMES}")
    return arrays


def graph_of(arrays: Arrays, path: object) -> Data:
    """Make a graph of the arrays of the file `path`, with edges as listed; `y` is None without `node_labels`."""
    x = _features(arrays, path)
    y = torch.from_numpy(integers(arrays, "node_labels", path)) if "node_labels" in arrays else None
    if y is not None and (y < -1).any():
        raise DataError(f"{path}: labels are from -1, which means unknown, not {int(y.min())}")
    if (of_nodes := x if y is None else y) is not None:
        num_nodes = len(of_nodes)
    elif "num_nodes" in arrays:
        num_nodes = int(integers(arrays, "num_nodes", path, ()))
    else:
        raise DataError(
            f"{path} does not say how many nodes the graph has: add an array 'node_labels' or a number 'num_nodes'"
        )
    edges = integers(arrays, "edges", path, ("E", 2)) if arrays["edges"].size else np.empty((0, 2), dtype=np.int64)
    data = Data(x, torch.from_numpy(edges.T.copy()), y=y, num_nodes=num_nodes if x is None else None)
    try:
        check_edges(data.edge_index, num_nodes=num_nodes)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    for name, attribute in EDGE_ATTRIBUTES.items():
        if name in arrays:
            values = array(arrays, name, path, "b" if name == "given" else "iuf", (len(edges),))
            data[attribute] = torch.from_numpy(values if name == "given" else values.astype(np.float32))
    sizes: dict[str, int | str] = {"class_names": "C", "node_ids": num_nodes}
    for name in sizes.keys() & arrays.keys():
        data[name] = [str(each) for each in array(arrays, name, path, None, (sizes[name],))]
    if "metric" in arrays:
        data.metric = str(arrays["metric"])
    if y is not None and arrays.keys() & {*_MASKS, *_MASKS.values()}:
        set_masks(data, read_masks(arrays, num_nodes, path))
    return data


def array(
    arrays: Arrays, name: str, path: object, kinds: str | None, shape: Sequence[int | str] = ("N",)
) -> NDArray[Any]:
    """Return the array `name`, or raise a `DataError` if it has another type or shape; a letter is any size."""
    found = arrays[name]
    fits = found.ndim == len(shape) and all(
        isinstance(wanted, str) or wanted == size for wanted, size in zip(shape, found.shape, strict=True)
    )
    if not fits or (kinds is not None and found.dtype.kind not in kinds):
        what = {"iu": "integers", "b": "booleans", None: "names"}.get(kinds, "real numbers")
        wanted = f"{what} of shape [{', '.join(map(str, shape))}]"
        raise DataError(f"array {name!r} of {path} must be {wanted}, not {found.dtype} {list(found.shape)}")
    return found


def integers(arrays: Arrays, name: str, path: object, shape: Sequence[int | str] = ("N",)) -> NDArray[np.int64]:
    """Return an array as int64, since the small unsigned types in the files overflow in arithmetic."""
    return array(arrays, name, path, "iu", shape).astype(np.int64, copy=False)


def read_masks(arrays: Arrays, num_nodes: int, path: object) -> Masks:
    """Return the splits as masks [N, S], from masks [S, N] or lists of node numbers; empty without those of a part."""
    found = {}
    for name, index in _MASKS.items():
        if name in arrays:
            stored = {name: np.atleast_2d(arrays[name])}
            found[name] = np.ascontiguousarray(array(stored, name, path, "biu", ("S", num_nodes)).T.astype(bool))
        elif index in arrays:
            found[name] = mask_of(integers(arrays, index, path), num_nodes, f"array {index!r} of {path}")[:, None]
    if "train_masks" not in found or len({mask.shape for mask in found.values()}) > 1:
        raise DataError(f"{path} must have train, validation and test masks for the same number of splits, or none")
    none = np.zeros_like(found["train_masks"])
    return Masks(*(found.get(name, none) for name in _MASKS))


def _features(arrays: Arrays, path: object) -> Tensor | None:
    if "node_features" in arrays:
        features = array(arrays, "node_features", path, "biuf", ("N", "F"))
        return torch.from_numpy(features.astype(np.float32, copy=False))
    if "features_indices" not in arrays:
        return None
    from scipy.sparse import csr_matrix

    with as_data_error(f"the arrays 'features_*' of {path} are not a sparse matrix in CSR form"):
        indices = integers(arrays, "features_indices", path)
        values = array(arrays, "features_data", path, "biuf") if "features_data" in arrays else np.ones(len(indices))
        stored = (values.astype(np.float32), indices, arrays["features_indptr"])
        matrix = csr_matrix(stored, shape=tuple(arrays["features_shape"].tolist()))
        matrix.check_format(full_check=True)
    return torch.from_numpy(matrix.toarray())
