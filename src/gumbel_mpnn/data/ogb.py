"""Reading ogbn-arxiv from OGB's raw files, without the ogb package, or its structure from an npz file."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.npz import integers, read_masks, read_npz
from gumbel_mpnn.data.raw import Masks, RawGraph, mask_of

STRUCTURE = (
    "raw/edge.csv.gz",
    "raw/node-label.csv.gz",
    *(f"split/time/{part}.csv.gz" for part in ("train", "valid", "test")),
)
FEATURES = "raw/node-feat.csv.gz"


def read_ogb(paths: Sequence[Path]) -> RawGraph:
    """Read the files `STRUCTURE` and, if given, `FEATURES`; edges point from the citing to the cited paper."""
    edge, label, train, valid, test, *features = paths
    y = _table(label, np.int64, columns=1)[:, 0]
    masks = (mask_of(_table(part, np.int64, columns=1)[:, 0], len(y), part)[:, None] for part in (train, valid, test))
    return RawGraph(
        edges=_table(edge, np.int64, columns=2),
        y=y,
        x=_table(features[0], np.float32) if features else None,
        masks=Masks(*masks),
    )


def read_structure(paths: Sequence[Path]) -> RawGraph:
    """Read an npz file with the citations in CSR form (`indptr`, `indices`), labels and lists of nodes."""
    (path,) = paths
    arrays = read_npz(path, required=("indptr", "indices", "node_labels", "train_idx", "valid_idx", "test_idx"))
    y, indptr = integers(arrays, "node_labels", path), integers(arrays, "indptr", path)
    citing = np.repeat(np.arange(len(y)), np.diff(indptr))
    return RawGraph(
        edges=np.stack([citing, integers(arrays, "indices", path)], axis=1),
        y=y,
        masks=read_masks(arrays, len(y), path),
        class_names=[str(name) for name in arrays["class_names"]] if "class_names" in arrays else None,
    )


def _table(path: Path, dtype: type, columns: int | None = None) -> NDArray[Any]:
    import pandas as pd

    try:
        table: NDArray[Any] = pd.read_csv(path, header=None, dtype=dtype, compression="gzip").to_numpy(copy=True)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DataError(
            f"{path} is not a complete table of numbers ({error}): it is truncated or altered, so delete it"
        ) from error
    if columns is not None and table.shape[1] != columns:
        raise DataError(f"{path} has {table.shape[1]} columns instead of {columns}: replace it by the published file")
    return table
