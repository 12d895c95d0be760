"""Small files in the formats of the real ones."""

import collections
import gzip
import pickle
from pathlib import Path

import numpy as np
import scipy.sparse

from gumbel_mpnn.data import DatasetSpec, File
from gumbel_mpnn.data.npz import read_graph


def tiny_arrays(**changes):
    """Six nodes in two classes, five undirected edges, three features, two splits; None leaves an array out."""
    part = np.array([[0, 0, 1, 1, 2, 2], [2, 2, 0, 0, 1, 1]])
    arrays = {
        "node_features": np.arange(18, dtype=np.float32).reshape(6, 3),
        "node_labels": np.array([0, 1, 0, 1, 0, 1]),
        "edges": np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]),
        "train_masks": part == 0,
        "val_masks": part == 1,
        "test_masks": part == 2,
    } | changes
    return {name: array for name, array in arrays.items() if array is not None}


def write_npz(path: Path, **changes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **tiny_arrays(**changes))
    return path


def tiny_spec(**changes) -> DatasetSpec:
    """The data set of `tiny_arrays`, in the file tiny/tiny.npz."""
    fields = {
        "name": "tiny",
        "metric": "accuracy",
        "protocols": ("heterophilous", "per-class-20-30", "random-60-20-20"),
        "num_nodes": 6,
        "num_edges": 5,
        "num_features": 3,
        "num_classes": 2,
        "source": "this test",
        "licence": "none",
        "read": read_graph,
        "files": (File("tiny/tiny.npz"),),
    }
    return DatasetSpec(**fields | changes)


def write_planetoid(folder: Path) -> list[Path]:
    """Seven nodes: 0 trains, 0 to 2 are known, 6, 3 and 5 are the test nodes in this order, 4 is skipped."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = {
        "tx": scipy.sparse.csr_matrix(np.array([[6.0, 0.0], [3.0, 0.0], [0.0, 5.0]])),
        "allx": scipy.sparse.csr_matrix(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])),
        "y": np.array([[0, 1]]),
        "ty": np.array([[0, 1], [1, 0], [0, 1]]),
        "ally": np.array([[0, 1], [1, 0], [1, 0]]),
        "graph": collections.defaultdict(list, {0: [1, 1, 0], 1: [0], 2: [6], 3: [], 4: [], 5: [], 6: [2]}),
    }
    for part, content in parts.items():
        (folder / f"ind.tiny.{part}").write_bytes(pickle.dumps(content, protocol=3))
    (folder / "ind.tiny.test.index").write_text("6\n3\n5\n")
    return [folder / f"ind.tiny.{part}" for part in (*parts, "test.index")]


def write_ogb(folder: Path) -> dict[str, Path]:
    """Four papers, of which one cites two and another cites it back."""
    tables = {
        "raw/edge": "0,1\n0,2\n1,0\n",
        "raw/node-label": "0\n1\n1\n0\n",
        "split/time/train": "0\n1\n",
        "split/time/valid": "2\n",
        "split/time/test": "3\n",
        "raw/node-feat": "0.5,1\n-1,2\n0,3\n1e-3,4\n",
    }
    paths = {f"{name}.csv.gz": folder / f"{name}.csv.gz" for name in tables}
    for path, text in zip(paths.values(), tables.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    return paths
