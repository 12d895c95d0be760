import numpy as np
import pytest
from graph_files import write_npz

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.collection import read_binary_features, read_facebook


def test_word_counts_become_zero_and_one(tmp_path):
    path = write_npz(tmp_path / "g.npz", node_features=np.array([[0, 3]] * 6, dtype=np.uint8))
    assert read_binary_features([path]).x.tolist() == [[0, 1]] * 6


def test_word_counts_must_be_there(tmp_path):
    with pytest.raises(DataError, match=r"g\.npz has no features"):
        read_binary_features([write_npz(tmp_path / "g.npz", node_features=None)])


def test_each_facebook_column_but_gender_becomes_one_hot(tmp_path):
    info = np.array([[1, 1, 0], [1, 2, 5], [2, 0, 9], [1, 1, 9], [1, 2, 0], [1, 1, 0]], dtype=np.uint16)
    path = write_npz(tmp_path / "g.npz", node_features=None, local_info=info)
    assert read_facebook([path]).x[:3].tolist() == [[1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [0, 1, 0, 0, 1]]
