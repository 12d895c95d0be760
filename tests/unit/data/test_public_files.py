import gzip
import os
import pickle

import numpy as np
import pytest
import scipy.sparse
import torch
from graph_files import write_npz, write_ogb, write_planetoid

from gumbel_mpnn.data.public_files import (
    read_binary,
    read_facebook,
    read_ogb,
    read_planetoid,
)
from gumbel_mpnn.util.errors import DataError


def chosen(data):
    return [mask.any(1).nonzero().flatten().tolist() for mask in (data.train_mask, data.val_mask, data.test_mask)]


class TestPlanetoid:
    @pytest.fixture
    def paths(self, tmp_path):
        return write_planetoid(tmp_path)

    def test_test_nodes_go_where_the_index_says_and_skipped_ones_are_zero(self, paths):
        data = read_planetoid(paths)
        assert data.x.tolist() == [[1, 0], [0, 1], [1, 1], [3, 0], [0, 0], [0, 5], [6, 0]]
        assert data.y.tolist() == [1, 0, 0, 0, 0, 1, 1]
        assert data.x.dtype == torch.float32
        assert chosen(data) == [[0], [1, 2], [3, 5, 6]]
        assert data.edge_index.T.tolist() == [[0, 1], [0, 1], [1, 0], [2, 6], [6, 2]]  # without self-loops

    def test_files_of_old_module_paths(self, paths):
        content = pickle.dumps(scipy.sparse.csr_matrix([[6.0, 0.0], [3.0, 0.0], [0.0, 5.0]]), protocol=3)
        paths[0].write_bytes(content.replace(b"numpy._core.", b"numpy.core.").replace(b"sparse._csr", b"sparse.csr"))
        assert read_planetoid(paths).x[6].tolist() == [6, 0]

    def test_a_command_is_named_and_not_run(self, paths, tmp_path):
        class Command:
            def __reduce__(self):
                return os.system, (f"touch {tmp_path / 'trace'}",)

        paths[0].write_bytes(pickle.dumps(Command(), protocol=3))
        with pytest.raises(DataError, match=r"contains \w+\.system, which is no array: replace"):
            read_planetoid(paths)
        assert not (tmp_path / "trace").exists()

    @pytest.mark.parametrize("content", [b"cbuiltins\neval\n.", b"cnumpy\nload\n.", b"cscipy.sparse\nload_npz\n."])
    def test_other_names_of_known_packages_are_refused(self, paths, content):
        paths[0].write_bytes(content)
        with pytest.raises(DataError, match=r"contains .*: replace the file"):
            read_planetoid(paths)


class TestOGB:
    @pytest.fixture
    def paths(self, tmp_path):
        return list(write_ogb(tmp_path).values())

    @pytest.mark.parametrize("content", [b"a\nb\n", b"\x00"])
    def test_a_table_of_another_kind_is_named(self, paths, content):
        paths[1].write_bytes(gzip.compress(content) if b"a" in content else content)
        with pytest.raises(DataError, match=r"node-label\.csv\.gz is not a complete table of numbers"):
            read_ogb(paths)

    def test_the_structure_alone(self, tmp_path):
        np.savez(
            tmp_path / "s.npz",
            indptr=np.array([0, 2, 3, 3, 3], dtype=np.int32),
            indices=np.array([1, 2, 0], dtype=np.int32),
            node_labels=np.array([0, 1, 1, 0], dtype=np.int8),
            train_idx=np.array([0, 1]),
            valid_idx=np.array([2]),
            test_idx=np.array([3]),
        )
        data = read_ogb([tmp_path / "s.npz"])
        assert data.edge_index.T.tolist() == [[0, 1], [0, 2], [1, 0]]
        assert data.x is None
        assert data.num_nodes == 4
        assert chosen(data) == [[0, 1], [2], [3]]


def test_counts_become_zero_and_one(tmp_path):
    data = read_binary([write_npz(tmp_path / "g.npz", node_features=np.array([[0, 3]] * 6))])
    assert data.x.tolist() == [[0, 1]] * 6


def test_facebook_columns_but_gender_are_one_hot(tmp_path):
    info = np.array([[1, 1, 0], [1, 2, 5], [2, 1, 5], [1, 2, 0], [1, 1, 7], [1, 1, 0]], dtype=np.uint16)
    data = read_facebook([write_npz(tmp_path / "g.npz", node_features=None, local_info=info)])
    assert data.x.tolist() == [
        [1, 0, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 1, 0, 1, 0],
        [1, 0, 1, 0, 0],
        [1, 0, 0, 0, 1],
        [1, 0, 1, 0, 0],
    ]
