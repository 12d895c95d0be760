import pickle

import numpy as np
import pytest
from graph_files import write_planetoid

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.planetoid import PARTS, read_geom_gcn_splits, read_planetoid


@pytest.fixture
def paths(tmp_path):
    written = write_planetoid(tmp_path)
    assert tuple(path.name.removeprefix("ind.tiny.") for path in written) == PARTS
    return written


def test_test_nodes_go_where_the_index_says_and_skipped_ones_are_zero(paths):
    graph = read_planetoid(paths)
    assert graph.x.tolist() == [[1, 0], [0, 1], [1, 1], [3, 0], [0, 0], [0, 5], [6, 0]]
    assert graph.y.tolist() == [1, 0, 0, 0, 0, 1, 1]
    assert graph.x.dtype == np.float32


def test_the_public_split(paths):
    masks = read_planetoid(paths).masks
    assert [np.flatnonzero(mask).tolist() for mask in masks] == [[0], [1, 2], [3, 5, 6]]
    assert masks.train.shape == (7, 1)


def test_self_loops_are_left_out(paths):
    assert read_planetoid(paths).edges.tolist() == [[0, 1], [0, 1], [1, 0], [2, 6], [6, 2]]


def test_files_that_do_not_fit_together(paths):
    paths[3].write_bytes(pickle.dumps(np.zeros((2, 2)), protocol=3))
    with pytest.raises(DataError, match=r"files beside .*test\.index do not fit together"):
        read_planetoid(paths)


def test_a_graph_that_is_no_graph(paths):
    paths[5].write_bytes(pickle.dumps([1, 2, 3]))
    with pytest.raises(DataError, match="do not fit together"):
        read_planetoid(paths)


def test_the_cause_in_one_file_is_kept(paths):
    paths[0].write_bytes(b"cos\nsystem\n.")
    with pytest.raises(DataError, match=r"ind\.tiny\.tx contains os\.system"):
        read_planetoid(paths)


def test_geom_gcn_splits_are_stacked(tmp_path):
    for k in range(2):
        part = np.roll([0, 0, 1, 2], k)
        arrays = {f"{name}_mask": (part == i).astype(np.uint8) for i, name in enumerate(("train", "val", "test"))}
        np.savez(tmp_path / f"{k}.npz", **arrays)
    masks = read_geom_gcn_splits([tmp_path / "0.npz", tmp_path / "1.npz"])
    assert masks.train.T.tolist() == [[True, True, False, False], [False, True, True, False]]
    assert masks.test.dtype == bool
