"""An unpickler that can build numpy arrays, scipy sparse matrices and plain containers, and nothing else."""

from __future__ import annotations

import collections
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from gumbel_mpnn._util.errors import DataError


def read_pickle(path: Path) -> Any:
    """The object in a pickle of the Planetoid collection (Python 2, hence latin1)."""
    try:
        with path.open("rb") as file:
            return _ArrayUnpickler(file, encoding="latin1").load()
    except DataError as error:
        raise DataError(f"{path} {error}") from None
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except Exception as error:  # a damaged pickle can raise anything at all
        raise DataError(f"{path} is not a whole pickle ({error}): it is truncated or altered") from error


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = _admitted().get((module, name))
        if found is None:
            raise DataError(f"asks for {module}.{name}, which is neither a numpy nor a scipy array type: not opened")
        return found


def _admitted() -> dict[tuple[str, str], Any]:
    """What may be built, under the module paths of today and of the years the files were written in."""
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
