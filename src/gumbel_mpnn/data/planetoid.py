"""Reading Cora, CiteSeer and PubMed from the files of the Planetoid repository, and their geom-gcn splits.

Only numpy arrays, scipy sparse matrices and plain containers are unpickled.
"""

from __future__ import annotations

import collections
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.npz import read_npz
from gumbel_mpnn.data.raw import Masks, RawGraph, mask_of

# The part x is not needed: it repeats the first rows of allx.
PARTS = ("tx", "allx", "y", "ty", "ally", "graph", "test.index")


def read_planetoid(paths: Sequence[Path]) -> RawGraph:
    """Read a graph with the public split from the raw files, given in the order of `PARTS`.

    Self-loops are removed. Fifteen nodes of CiteSeer have neither features nor a label in the files; they get zeros
    and class 0, as in other libraries.
    """
    *pickles, index_path = paths
    try:
        tx, allx, y, ty, ally, graph = map(read_pickle, pickles)
        test = np.array(index_path.read_text().split(), dtype=np.int64)
        num_nodes, num_known = int(test.max()) + 1, allx.shape[0]

        features = np.zeros((num_nodes, allx.shape[1]), dtype=np.float32)
        features[:num_known] = _dense(allx)
        features[test] = _dense(tx)
        one_hot = np.zeros((num_nodes, ally.shape[1]))
        one_hot[:num_known] = ally
        one_hot[test] = ty

        edges = np.array([(node, other) for node, others in graph.items() for other in others], dtype=np.int64)
        edges = edges[edges[:, 0] != edges[:, 1]]
    except (AttributeError, IndexError, OSError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"the files beside {index_path} do not fit together ({error}): replace them by the published files"
        ) from error

    num_train = y.shape[0]
    val = np.arange(num_train, min(num_train + 500, num_known))
    public = (mask_of(nodes, num_nodes, index_path)[:, None] for nodes in (np.arange(num_train), val, test))
    return RawGraph(edges=edges, y=one_hot.argmax(axis=1), x=features, masks=Masks(*public))


def read_geom_gcn_splits(paths: Sequence[Path]) -> Masks:
    """Read masks [N, S] from one npz file per split."""
    names = ("train_mask", "val_mask", "test_mask")
    splits = [read_npz(path, required=names) for path in paths]
    return Masks.stack([Masks(*(split[name].astype(bool) for name in names)) for split in splits])


def _dense(matrix: Any) -> NDArray[Any]:
    matrix.check_format(full_check=True)
    dense: NDArray[Any] = matrix.toarray()
    return dense


def read_pickle(path: Path) -> Any:
    """Read a pickle of the Planetoid collection, written by Python 2 (hence latin1)."""
    try:
        with path.open("rb") as file:
            return _ArrayUnpickler(file, encoding="latin1").load()
    except DataError as error:
        raise DataError(f"{path} {error}") from None
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
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
