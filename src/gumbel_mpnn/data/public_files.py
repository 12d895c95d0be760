"""The public files of benchmarks, found or downloaded: Planetoid, OGB, Facebook100 and npz files of other projects.

Only numpy arrays, scipy sparse matrices and plain containers are unpickled.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import pickle
import urllib.request
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy._core.multiarray import _reconstruct
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch_geometric.data import Data

from gumbel_mpnn.data.npz import integers, read_graph, read_masks, read_npz
from gumbel_mpnn.data.splits import Masks, mask_of, set_masks
from gumbel_mpnn.util.errors import DataError, MissingDataError, UserError, as_data_error
from gumbel_mpnn.util.files import cache_root, write_atomically

_TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class File:
    """One file of a data set."""

    path: str
    """Path relative to a data folder, with forward slashes."""
    url: str | None = None
    """Address of the public original; None if it is not published in this form."""
    sha256: str | None = None
    """Checksum of the public original, if known."""
    member: str | None = None
    """Name of the file inside the zip archive at `url`; None if `url` is the file itself."""

    def matches(self, content: bytes) -> bool:
        """Whether the content has the published checksum; true if no checksum is known."""
        return self.sha256 in (None, hashlib.sha256(content).hexdigest())


def search_roots(root: str | Path | None = None) -> list[Path]:
    """Return the folders to search, in order: `root`, the one named by GUMBEL_MPNN_DATA, the cache."""
    if root and not Path(root).expanduser().is_dir():
        raise UserError(f"there is no folder {root}, in which data files are searched: correct --data-root (root=)")
    named = (root, os.environ.get("GUMBEL_MPNN_DATA"))
    return [*(Path(folder).expanduser() for folder in named if folder), cache_root()]


def find(file: File, root: str | Path | None = None) -> Path | None:
    """Return the path of the file, or None if it was not found."""
    return next((folder / file.path for folder in search_roots(root) if (folder / file.path).is_file()), None)


def obtain(name: str, files: Sequence[File], root: str | Path | None = None) -> list[Path]:
    """Return the paths of the files of the data set `name`, after downloading missing ones and verifying checksums."""
    missing, why = [file for file in files if find(file, root) is None], ""
    if missing and all(file.url for file in missing):
        try:
            _download(missing)
            missing = []
        except (OSError, http.client.HTTPException) as error:
            why = f" and could not be downloaded ({error})"
    if missing:
        roots = search_roots(root)
        raise MissingDataError(
            f"data set {name!r} lacks {', '.join(file.path for file in missing)}, found under none of"
            f" {', '.join(map(str, roots))}{why}: put the missing files in {roots[0]} under these names"
        )
    paths = [path for file in files if (path := find(file, root)) is not None]
    for file, path in zip(files, paths, strict=True):
        if not file.matches(path.read_bytes()):
            raise DataError(
                f"{path} is not the published file (its sha256 differs), so it is truncated or altered: delete it"
            )
    return paths


def _download(files: Sequence[File]) -> None:
    """Download the public originals of files to the user's cache, complete and verified or not at all."""
    for url in dict.fromkeys(str(file.url) for file in files):
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:
            received = response.read()
        contents = {file: received for file in files if file.url == url}
        for file in contents:
            if file.member:
                with as_data_error(f"{url} did not return the expected zip archive", ": try again later"):
                    contents[file] = zipfile.ZipFile(io.BytesIO(received)).read(file.member)
        for file, content in contents.items():
            if not file.matches(content):
                raise DataError(f"{url} did not return the published {file.path} (its sha256 differs): try again later")
        for file, content in contents.items():
            write_atomically(cache_root() / file.path, content)


def read_planetoid(paths: Sequence[Path]) -> Data:
    """Read Cora, CiteSeer or PubMed, with the public split, from the parts tx, allx, y, ty, ally, graph and test.index.

    The part x is not needed: it repeats the first rows of allx. Self-loops are removed. Fifteen nodes of CiteSeer have
    neither features nor a label in the files; they get zeros and class 0, as in other libraries.
    """
    *pickles, index_path = paths
    tx, allx, y, ty, ally, graph = (
        _Unpickler(io.BytesIO(path.read_bytes()), encoding="latin1").load() for path in pickles
    )
    test = np.array(index_path.read_text().split(), dtype=np.int64)
    num_nodes, num_known, num_train = int(test.max()) + 1, allx.shape[0], y.shape[0]
    x = np.zeros((num_nodes, allx.shape[1]), dtype=np.float32)
    x[:num_known], x[test] = allx.toarray(), tx.toarray()
    one_hot = np.zeros((num_nodes, ally.shape[1]))
    one_hot[:num_known], one_hot[test] = ally, ty
    edges = np.array([(node, other) for node, others in graph.items() for other in others], dtype=np.int64)
    val = np.arange(num_train, min(num_train + 500, num_known))
    public = (mask_of(nodes, num_nodes, index_path)[:, None] for nodes in (np.arange(num_train), val, test))
    data = _graph(edges[edges[:, 0] != edges[:, 1]], one_hot.argmax(axis=1), x)
    set_masks(data, Masks(*public))
    return data


class _Unpickler(pickle.Unpickler):
    """Reads arrays, sparse matrices and plain containers, whose modules had other names when they were written."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = {
            "_reconstruct": _reconstruct,
            "csr_matrix": csr_matrix,
            "defaultdict": defaultdict,
            "dtype": np.dtype,
            "list": list,
            "ndarray": np.ndarray,
        }
        if name not in allowed:
            raise DataError(f"a file of the data set contains {module}.{name}, which is no array: replace the file")
        return allowed[name]


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
        (path,) = paths
        arrays = read_npz(path, required=("indptr", "indices", "node_labels", "train_idx", "valid_idx", "test_idx"))
        y, indptr = integers(arrays, "node_labels", path), integers(arrays, "indptr", path)
        citing = np.repeat(np.arange(len(y)), np.diff(indptr))
        data = _graph(np.stack([citing, integers(arrays, "indices", path)], axis=1), y, None)
        set_masks(data, read_masks(arrays, len(y), path))
        return data
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
    one_hot = [column[:, None] == np.unique(column) for column in np.delete(info, 1, axis=1).T]
    data.x = torch.from_numpy(np.concatenate(one_hot, axis=1, dtype=np.float32))
    return data


def _graph(edges: NDArray[np.int64], y: NDArray[np.int64], x: NDArray[np.float32] | None) -> Data:
    edge_index, labels = torch.from_numpy(np.ascontiguousarray(edges.T)), torch.from_numpy(y)
    return Data(x if x is None else torch.from_numpy(x), edge_index, y=labels, num_nodes=len(y) if x is None else None)


def _table(path: Path, dtype: type) -> NDArray[Any]:
    import pandas as pd

    with as_data_error(f"{path} is not a complete table of numbers", ": it is truncated or altered, so delete it"):
        table: NDArray[Any] = pd.read_csv(path, header=None, dtype=dtype).to_numpy(copy=True)
    return table
