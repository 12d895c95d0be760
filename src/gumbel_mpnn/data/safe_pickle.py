"""An unpickler restricted to numpy arrays, scipy sparse matrices and plain containers."""

from __future__ import annotations

import collections
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from gumbel_mpnn._util.errors import DataError


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
