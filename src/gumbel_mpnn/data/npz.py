"""Reading npz files, which are never unpickled, and the graphs stored in them."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.errors import DataError, DataWarning, reason
from gumbel_mpnn.data.feature_columns import listed
from gumbel_mpnn.data.input_file import InputFile
from gumbel_mpnn.data.names import check_different, check_readable
from gumbel_mpnn.data.raw import Masks, RawGraph, label_hint, mask_of

MOST_NODES = 2**31 - 1
"""Limit set by the 32-bit node numbers in the files of runs."""

_GENDER = 1  # the column of Facebook's local_info that is the label

Arrays = dict[str, NDArray[Any]]

_KNOWN = frozenset(
    {
        *("edges", "node_labels", "num_nodes", "class_names", "node_ids", "metric", "directed"),
        *("weight", "probability", "given"),
        *("node_features", "features_shape", "features_indptr", "features_indices", "features_data"),
        *("train_masks", "val_masks", "test_masks", "train_idx", "valid_idx", "test_idx"),
    }
)
"""Arrays of which a graph is made."""
_OTHER_NAMES = {
    "edge_index": "edges",
    "edge_weight": "weight",
    "edge_weights": "weight",
    "weights": "weight",
    "x": "node_features",
    "features": "node_features",
    "y": "node_labels",
    "labels": "node_labels",
    "train_mask": "train_masks",
    "val_mask": "val_masks",
    "test_mask": "test_masks",
    "val_idx": "valid_idx",
}
"""Names of other programs for arrays of which a graph is made."""


def read_npz(path: Path | InputFile, required: Sequence[str] = ()) -> Arrays:
    """Read all arrays of a file by name; raise a `DataError` if one of the `required` arrays is missing."""
    with InputFile.of(path).open() as content:
        return arrays_in(content, path, required)


def arrays_in(content: BinaryIO, path: Path | InputFile, required: Sequence[str] = ()) -> Arrays:
    """Read the arrays of an open npz file; messages name `path`."""
    arrays: Arrays = {}
    try:
        with zipfile.ZipFile(content) as archive:
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                with archive.open(info) as member:
                    _check_member(member, info, name, path)
                with archive.open(info) as member:
                    arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # zipfile and numpy raise many kinds for files that they do not expect
        raise DataError(
            f"{path} is not a complete npz file ({reason(error)}): it is truncated or altered, so write it again"
        ) from error
    missing = [name for name in required if name not in arrays]
    if missing:
        has = ", ".join(sorted(arrays)) or "none at all"
        hint = _renaming([name for name in arrays if _OTHER_NAMES.get(name) in missing], arrays)
        raise DataError(
            f"{path} has no array{'s' * (len(missing) > 1)} {listed(missing)}, only {has}{hint and ': ' + hint}"
        )
    return arrays


def _check_member(member: IO[bytes], info: zipfile.ZipInfo, name: str, path: Path | InputFile) -> None:
    """Raise a `DataError` if a member is not an array of the size that it says, before memory is allocated for it."""
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if member.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
        raise DataError(f"{path} contains {info.filename!r}, which is not an array: write it with np.savez")
    version = tuple(member.read(2))
    if version not in read_header:
        raise DataError(f"array {name!r} of {path} has an unknown version or type: store it as numbers or text")
    shape, _, dtype = read_header[version](member)
    if dtype.hasobject:
        raise DataError(
            f"array {name!r} of {path} holds Python objects, which are never unpickled: store it as numbers or text"
        )
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != info.file_size - member.tell():
        raise DataError(
            f"array {name!r} of {path} says that it has the shape {list(shape)}, which is not its size: write it again"
        )


def read_graph(paths: Sequence[Path]) -> RawGraph:
    """Read a graph from one npz file, the only path, in the layout documented in `from_npz`."""
    (path,) = paths
    return graph_of(read_npz(path, required=("edges", "node_labels")), path)


def read_own_graph(path: InputFile, need_labels: bool = True) -> RawGraph:
    """Read a graph of the user as `read_graph` does, and warn about arrays that are not used.

    Unless labels are needed, they are -1 if the file has none.
    """
    arrays = read_npz(path, required=("edges", "node_labels") if need_labels else ("edges",))
    unused = [name for name in arrays if name not in _KNOWN]
    if unused:
        one = len(unused) == 1
        warnings.warn(
            f"the array{'' if one else 's'} {listed(unused)} of {path} {'is' if one else 'are'} not used:"
            f" {_renaming(unused, arrays) or 'the help of from_npz lists the arrays that are'}",
            DataWarning,
            stacklevel=3,
        )
    return graph_of(arrays, path)


def _renaming(names: Sequence[str], arrays: Arrays) -> str:
    """Say under which names arrays would be used; empty if there is nothing to say."""
    pairs = [(name, _OTHER_NAMES[name]) for name in names if _OTHER_NAMES.get(name, name) not in arrays]
    said = [f"{name} to {known}{' (shape [E, 2])' * (name == 'edge_index')}" for name, known in pairs]
    return f"rename {' and '.join(said)}" if said else ""


def graph_of(arrays: Arrays, path: object) -> RawGraph:
    """Make a graph of the arrays of the file `path`; without `node_labels`, all labels are -1."""
    x = _features(arrays, path)
    if "node_labels" not in arrays:
        arrays = {**arrays, "node_labels": np.full(_count_nodes(arrays, x, path), -1)}
    if arrays["node_labels"].dtype.kind == "f":
        raise DataError(f"array 'node_labels' of {path} holds decimals: {label_hint(arrays['node_labels'])}")
    labels = integers(arrays, "node_labels", path)
    if labels.ndim != 1:
        raise DataError(f"array 'node_labels' of {path} must have the shape [N], not {list(labels.shape)}")
    return RawGraph(
        edges=edges_of(arrays, "edges", path),
        y=labels,
        x=x,
        masks=read_masks(arrays, len(labels), path),
        class_names=_class_names(arrays, path),
        node_ids=_node_ids(arrays, len(labels), path),
        metric=str(arrays["metric"]) if "metric" in arrays else None,
        weight=_numbers(arrays, "weight", path),
        probability=_numbers(arrays, "probability", path),
        given=_given(arrays, path),
        directed=_directed(arrays, path),
    )


def read_binary_features(paths: Sequence[Path]) -> RawGraph:
    """Read a graph whose features are word counts, and set them to 0 and 1 as PyG does."""
    graph = read_graph(paths)
    if graph.x is None:
        raise DataError(f"{paths[0]} has no features: replace it by the published file")
    np.minimum(graph.x, 1, out=graph.x)  # in place: these features are large
    return graph


def read_facebook(paths: Sequence[Path]) -> RawGraph:
    """Read a Facebook100 graph.

    Each column of `local_info` except gender becomes one-hot features; 0 (missing) is a value like any other.
    """
    (path,) = paths
    info = integers(read_npz(path, required=("local_info",)), "local_info", path)
    columns = [info[:, column] for column in range(info.shape[1]) if column != _GENDER]
    one_hot = [column[:, None] == np.unique(column) for column in columns]
    return replace(read_graph(paths), x=np.concatenate(one_hot, axis=1, dtype=np.float32))


def _node_ids(arrays: Arrays, num_nodes: int, path: object) -> list[str] | None:
    if "node_ids" not in arrays:
        return None
    if arrays["node_ids"].shape != (num_nodes,):
        raise DataError(f"array 'node_ids' of {path} must have one name for each of the {num_nodes} nodes")
    names = [str(name) for name in arrays["node_ids"]]
    check_different(names, str(path))
    check_readable(names, "the node id", str(path))
    return names


def _class_names(arrays: Arrays, path: object) -> list[str] | None:
    if "class_names" not in arrays:
        return None
    if arrays["class_names"].ndim != 1:
        raise DataError(f"array 'class_names' of {path} must be a list of names")
    names = [str(name) for name in arrays["class_names"]]
    check_readable(names, "the class name", str(path))
    return names


def _count_nodes(arrays: Arrays, x: NDArray[np.float32] | None, path: object) -> int:
    """Return the number of nodes of a graph without labels."""
    if "num_nodes" in arrays:
        count = integers(arrays, "num_nodes", path)
        if count.size != 1 or not 0 <= count.item() <= MOST_NODES:
            raise DataError(f"array 'num_nodes' of {path} must be a single number from 0 to {MOST_NODES}")
        return int(count.item())
    if x is None:
        raise DataError(
            f"{path} does not say how many nodes the graph has: add an array 'node_labels' or a number 'num_nodes'"
        )
    return len(x)


def edges_of(arrays: Arrays, name: str, path: object) -> NDArray[np.int64]:
    """Return the array `name` as edges [E, 2]; an empty array of any type and shape means that there are none."""
    if arrays[name].size == 0:
        return np.empty((0, 2), dtype=np.int64)
    edges = integers(arrays, name, path)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise DataError(f"array {name!r} of {path} must have the shape [E, 2], not {list(edges.shape)}")
    return edges


def integers(arrays: Arrays, name: str, path: object) -> NDArray[np.int64]:
    """Return the array `name` as int64, since the small unsigned types in the files overflow in arithmetic."""
    if arrays[name].dtype.kind not in "iu":  # numpy counts timedelta among the integers
        raise DataError(f"array {name!r} of {path} must hold integers, not {arrays[name].dtype}")
    return arrays[name].astype(np.int64, copy=False)


def read_masks(arrays: Arrays, num_nodes: int, path: object) -> Masks | None:
    """Return the splits as masks [N, S], from masks [S, N] or lists of node numbers; None if there are none.

    Without validation or test masks, these are empty.
    """
    found = {}
    for mask, index in (("train_masks", "train_idx"), ("val_masks", "valid_idx"), ("test_masks", "test_idx")):
        if mask in arrays:
            stored = np.atleast_2d(arrays[mask])
            if stored.ndim != 2 or stored.shape[1] != num_nodes:
                raise DataError(
                    f"array {mask!r} of {path} must have the shape [S, {num_nodes}], not {list(stored.shape)}"
                )
            found[mask] = np.ascontiguousarray(stored.T.astype(bool))
        elif index in arrays:
            nodes = integers(arrays, index, path)
            found[mask] = mask_of(nodes, num_nodes, f"array {index!r} of {path}")[:, None]
    if not found:
        return None
    if "train_masks" not in found or len({mask.shape for mask in found.values()}) > 1:
        raise DataError(f"{path} must have train, validation and test masks for the same number of splits, or none")
    none = np.zeros_like(found["train_masks"])
    return Masks(found["train_masks"], found.get("val_masks", none), found.get("test_masks", none))


def _numbers(arrays: Arrays, name: str, path: object) -> NDArray[np.float32] | None:
    """Return the array `name`, which has one number per edge, or None if there is no such array."""
    if name not in arrays:
        return None
    if arrays[name].dtype.kind not in "iuf":
        raise DataError(f"array {name!r} of {path} must hold numbers, not {arrays[name].dtype}")
    if arrays[name].shape != arrays["edges"].shape[:1]:
        raise DataError(f"array {name!r} of {path} must have one number per edge, not {list(arrays[name].shape)}")
    return arrays[name].astype(np.float32)


def _given(arrays: Arrays, path: object) -> NDArray[np.bool_] | None:
    if "given" not in arrays:
        return None
    if arrays["given"].dtype != bool or arrays["given"].shape != arrays["edges"].shape[:1]:
        raise DataError(f"array 'given' of {path} must be bool of shape [E], one value per edge")
    return arrays["given"]


def _directed(arrays: Arrays, path: object) -> bool | None:
    said = arrays.get("directed")
    if said is None:
        return None
    if said.dtype != bool or said.size != 1:
        raise DataError(f"array 'directed' of {path} must be a single bool")
    return bool(said.item())


def _features(arrays: Arrays, path: object) -> NDArray[np.float32] | None:
    if "node_features" in arrays:
        features = arrays["node_features"]
        if features.ndim != 2 or features.dtype.kind not in "biuf":
            form = f"{features.dtype} {list(features.shape)}"
            raise DataError(f"array 'node_features' of {path} must hold real numbers in the shape [N, F], not {form}")
        return features.astype(np.float32, copy=False)
    if "features_indices" not in arrays:
        return None
    from scipy.sparse import csr_matrix

    indices = arrays["features_indices"]
    values = arrays.get("features_data", np.ones(len(indices)))
    if values.dtype.kind not in "biuf":
        raise DataError(f"array 'features_data' of {path} must hold real numbers, not {values.dtype}")
    try:
        stored = (values.astype(np.float32), integers(arrays, "features_indices", path), arrays["features_indptr"])
        matrix = csr_matrix(stored, shape=tuple(arrays["features_shape"].tolist()))
        matrix.check_format(full_check=True)
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"the arrays 'features_*' of {path} are not a sparse matrix in CSR form ({error})") from error
    dense: NDArray[np.float32] = matrix.toarray()
    return dense
