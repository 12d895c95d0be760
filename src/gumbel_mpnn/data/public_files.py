"""Readers of the public raw files of benchmarks: Planetoid, OGB, Facebook100 and npz files of other projects.

Only numpy arrays, scipy sparse matrices and plain containers are unpickled.
"""

from __future__ import annotations

import collections
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn.data.npz import integers, read_graph, read_masks, read_npz
from gumbel_mpnn.data.splits import Masks, mask_of, set_masks
from gumbel_mpnn.util.errors import DataError

_GENDER = 1  # the column of Facebook's local_info that is the label


def read_planetoid(paths: Sequence[Path]) -> Data:
    """Read Cora, CiteSeer or PubMed, with the public split, from the parts tx, allx, y, ty, ally, graph and test.index.

    The part x is not needed: it repeats the first rows of allx. Self-loops are removed. Fifteen nodes of CiteSeer have
    neither features nor a label in the files; they get zeros and class 0, as in other libraries.
    """
    *pickles, index_path = paths
    try:
        tx, allx, y, ty, ally, graph = map(_unpickled, pickles)
        test = np.array(index_path.read_text().split(), dtype=np.int64)
        num_nodes, num_known, num_train = int(test.max()) + 1, allx.shape[0], y.shape[0]
        x = np.zeros((num_nodes, allx.shape[1]), dtype=np.float32)
        x[:num_known], x[test] = allx.toarray(), tx.toarray()
        one_hot = np.zeros((num_nodes, ally.shape[1]))
        one_hot[:num_known], one_hot[test] = ally, ty
        edges = np.array([(node, other) for node, others in graph.items() for other in others], dtype=np.int64)
    except (AttributeError, IndexError, OSError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"the files beside {index_path} do not fit together ({error}): replace them by the published files"
        ) from error
    val = np.arange(num_train, min(num_train + 500, num_known))
    public = (mask_of(nodes, num_nodes, index_path)[:, None] for nodes in (np.arange(num_train), val, test))
    data = _graph(edges[edges[:, 0] != edges[:, 1]], one_hot.argmax(axis=1), x)
    set_masks(data, Masks(*public))
    return data


def read_geom_gcn_splits(paths: Sequence[Path]) -> Masks:
    """Read masks [N, S] from one npz file per split."""
    names = ("train_mask", "val_mask", "test_mask")
    splits = [read_npz(path, required=names) for path in paths]
    return Masks.stack([Masks(*(split[name].astype(bool) for name in names)) for split in splits])


def read_ogb(paths: Sequence[Path]) -> Data:
    """Read ogbn-arxiv from edges, labels, three parts of the split and features; edges point to the cited paper.

    An npz file in place of these has the citations in CSR form, labels and the split, but no features.
    """
    if len(paths) == 1:
        return _read_structure(paths[0])
    edges, y, train, valid, test = (_table(path, np.int64) for path in paths[:5])
    data = _graph(edges, y[:, 0], _table(paths[5], np.float32))
    set_masks(data, Masks(*(mask_of(part[:, 0], len(y), "the split")[:, None] for part in (train, valid, test))))
    return data


def read_binary(paths: Sequence[Path]) -> Data:
    """Read an npz file whose features are word counts, and set them to 0 and 1 as PyG does."""
    data = read_graph(paths)
    data.x.clamp_(max=1)  # in place, since these features are large
    return data


def read_facebook(paths: Sequence[Path]) -> Data:
    """Read a Facebook100 graph; each column of `local_info` but gender is one-hot, 0 (missing) like any other value."""
    data = read_graph(paths)
    info = integers(read_npz(paths[0], required=("local_info",)), "local_info", paths[0], ("N", "columns"))
    columns = [info[:, column] for column in range(info.shape[1]) if column != _GENDER]
    one_hot = [column[:, None] == np.unique(column) for column in columns]
    data.x = torch.from_numpy(np.concatenate(one_hot, axis=1, dtype=np.float32))
    return data


def _read_structure(path: Path) -> Data:
    arrays = read_npz(path, required=("indptr", "indices", "node_labels", "train_idx", "valid_idx", "test_idx"))
    y, indptr = integers(arrays, "node_labels", path), integers(arrays, "indptr", path)
    citing = np.repeat(np.arange(len(y)), np.diff(indptr))
    data = _graph(np.stack([citing, integers(arrays, "indices", path)], axis=1), y, None)
    masks = read_masks(arrays, len(y), path)
    if masks is not None:
        set_masks(data, masks)
    return data


def _graph(edges: NDArray[np.int64], y: NDArray[np.int64], x: NDArray[np.float32] | None) -> Data:
    edge_index = torch.from_numpy(np.ascontiguousarray(edges.T))
    data = Data(x=None if x is None else torch.from_numpy(x), edge_index=edge_index, y=torch.from_numpy(y))
    if x is None:
        data.num_nodes = len(y)
    return data


def _table(path: Path, dtype: type) -> NDArray[Any]:
    import pandas as pd

    try:
        table: NDArray[Any] = pd.read_csv(path, header=None, dtype=dtype).to_numpy(copy=True)
    except Exception as error:  # pandas and gzip raise many kinds for damaged files
        raise DataError(
            f"{path} is not a complete table of numbers ({error}): it is truncated or altered, so delete it"
        ) from error
    return table


def _unpickled(path: Path) -> Any:
    """Read a pickle of the Planetoid collection, written by Python 2 (hence latin1)."""
    try:
        with path.open("rb") as file:
            return _ArrayUnpickler(file, encoding="latin1").load()
    except DataError as error:
        raise DataError(f"{path} {error}") from None
    except Exception as error:  # a damaged pickle can raise any exception
        raise DataError(
            f"{path} is not a complete pickle ({error}): it is truncated or altered, so delete it"
        ) from error


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = _allowed().get((module, name))
        if found is None:
            raise DataError(f"contains {module}.{name}, which is not a numpy or scipy array type: replace the file")
        return found


def _allowed() -> dict[tuple[str, str], Any]:
    """Return the allowed classes, under current module paths and those of the time the files were written."""
    from numpy._core.multiarray import _reconstruct
    from scipy.sparse import csr_matrix

    reconstruct = dict.fromkeys(("numpy.core.multiarray", "numpy._core.multiarray"), _reconstruct)
    sparse = dict.fromkeys(("scipy.sparse.csr", "scipy.sparse._csr"), csr_matrix)
    return {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        **{(module, "_reconstruct"): build for module, build in reconstruct.items()},
        **{(module, "csr_matrix"): build for module, build in sparse.items()},
        ("collections", "defaultdict"): collections.defaultdict,
        ("__builtin__", "list"): list,
        ("builtins", "list"): list,
    }
