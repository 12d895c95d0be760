import collections
import os
import pickle

import numpy as np
import pytest
import scipy.sparse

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.planetoid import read_pickle


class Command:
    def __init__(self, line):
        self.line = line

    def __reduce__(self):
        return os.system, (self.line,)


@pytest.fixture
def stored(tmp_path):
    def store(content):
        path = tmp_path / "ind.tiny.x"
        path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol=3))
        return path

    return store


def test_arrays_matrices_and_containers_are_built(stored):
    assert read_pickle(stored(np.eye(3))).tolist() == np.eye(3).tolist()
    assert read_pickle(stored(scipy.sparse.csr_matrix([[0, 2.0]]))).toarray().tolist() == [[0, 2]]
    assert read_pickle(stored(collections.defaultdict(list, {0: [1, 2]}))) == {0: [1, 2]}


def test_the_module_paths_of_old_files_are_known(stored):
    content = pickle.dumps(scipy.sparse.csr_matrix([[0, 2.0]]), protocol=3)
    old = content.replace(b"numpy._core.", b"numpy.core.").replace(b"scipy.sparse._csr", b"scipy.sparse.csr")
    assert old != content
    assert read_pickle(stored(old)).toarray().tolist() == [[0, 2]]


def test_a_command_is_named_and_not_run(stored, tmp_path):
    trace = tmp_path / "trace"
    with pytest.raises(DataError, match=r"ind\.tiny\.x contains \w+\.system, which is not a numpy or scipy"):
        read_pickle(stored(Command(f"touch {trace}")))
    assert not trace.exists()


@pytest.mark.parametrize("content", [b"cbuiltins\neval\n.", b"cnumpy\nload\n.", b"cscipy.sparse\nload_npz\n."])
def test_other_names_of_admitted_packages_are_refused(stored, content):
    with pytest.raises(DataError, match=r"contains .*: replace the file"):
        read_pickle(stored(content))


def test_a_truncated_pickle_is_named(stored):
    with pytest.raises(DataError, match=r"ind\.tiny\.x is not a complete pickle .* truncated or altered"):
        read_pickle(stored(pickle.dumps(np.eye(3), protocol=3)[:-20]))


def test_no_file(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        read_pickle(tmp_path / "ind.tiny.x")
