import gzip

import numpy as np
import pytest
from graph_files import write_ogb

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.ogb import FEATURES, STRUCTURE, read_ogb, read_structure


@pytest.fixture
def paths(tmp_path):
    written = write_ogb(tmp_path)
    return [written[name] for name in (*STRUCTURE, FEATURES)]


def test_the_raw_folder(paths):
    graph = read_ogb(paths)
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 0]]
    assert graph.y.tolist() == [0, 1, 1, 0]
    assert np.allclose(graph.x, [[0.5, 1], [-1, 2], [0, 3], [0.001, 4]])
    assert graph.x.dtype == np.float32
    assert [np.flatnonzero(mask).tolist() for mask in graph.masks] == [[0, 1], [2], [3]]


def test_the_raw_folder_without_features(paths):
    assert read_ogb(paths[:-1]).x is None


def test_a_truncated_table_is_named(paths):
    paths[-1].write_bytes(paths[-1].read_bytes()[:-10])
    with pytest.raises(DataError, match=r"node-feat\.csv\.gz is not a complete table of numbers"):
        read_ogb(paths)


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        (0, "0,1,2\n", r"edge\.csv\.gz has 3 columns instead of 2"),
        (1, "a\nb\n", r"node-label\.csv\.gz is not a complete table of numbers"),
        (4, "4\n", r"test\.csv\.gz names the nodes 4 to 4, but nodes are 0 to 3"),
    ],
)
def test_a_table_of_another_kind(paths, part, text, message):
    paths[part].write_bytes(gzip.compress(text.encode()))
    with pytest.raises(DataError, match=message):
        read_ogb(paths)


def test_the_structure_alone(tmp_path):
    np.savez(
        tmp_path / "s.npz",
        indptr=np.array([0, 2, 3, 3, 3], dtype=np.int32),
        indices=np.array([1, 2, 0], dtype=np.int32),
        node_labels=np.array([0, 1, 1, 0], dtype=np.int8),
        train_idx=np.array([0, 1]),
        valid_idx=np.array([2]),
        test_idx=np.array([3]),
        class_names=np.array(["cs.AI", "cs.LG"]),
    )
    graph = read_structure([tmp_path / "s.npz"])
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 0]]
    assert graph.x is None
    assert graph.masks.val[:, 0].tolist() == [False, False, True, False]
    assert graph.class_names == ["cs.AI", "cs.LG"]
