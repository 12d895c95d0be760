"""Readers of the repacked data sets, where the stored features are not yet the usual ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.npz import integers, read_graph, read_npz
from gumbel_mpnn.data.raw import RawGraph

_GENDER = 1  # the column of Facebook's local_info that is the label


def read_binary_features(paths: Sequence[Path]) -> RawGraph:
    """A graph whose features are word counts, set to 0 and 1 as PyG does."""
    graph = read_graph(paths)
    if graph.x is None:
        raise DataError(f"{paths[0]} has no features")
    np.minimum(graph.x, 1, out=graph.x)  # in place: these features are large
    return graph


def read_facebook(paths: Sequence[Path]) -> RawGraph:
    """A Facebook100 graph; each column of `local_info` but gender becomes one-hot, 0 (missing) being a value too."""
    (path,) = paths
    info = integers(read_npz(path, required=("local_info",)), "local_info", path)
    columns = [info[:, column] for column in range(info.shape[1]) if column != _GENDER]
    one_hot = [column[:, None] == np.unique(column) for column in columns]
    return replace(read_graph(paths), x=np.concatenate(one_hot, axis=1, dtype=np.float32))
