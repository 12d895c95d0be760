import numpy as np
import pytest
from graph_files import tiny_arrays, write_npz

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data import from_npz
from gumbel_mpnn.data.input_file import InputFile
from gumbel_mpnn.data.npz import read_binary_features, read_facebook, read_graph, read_npz, read_own_graph


def test_a_graph_with_masks_is_read_as_stored(tmp_path):
    graph = read_graph([write_npz(tmp_path / "g.npz")])
    arrays = tiny_arrays()
    assert np.array_equal(graph.x, arrays["node_features"])
    assert np.array_equal(graph.edges, arrays["edges"])
    assert np.array_equal(graph.y, arrays["node_labels"])
    assert np.array_equal(graph.masks.val, arrays["val_masks"].T)
    assert graph.class_names is None


def test_sparse_features_small_types_and_node_lists(tmp_path):
    path = write_npz(
        tmp_path / "g.npz",
        node_features=None,
        features_shape=np.array([6, 2]),
        features_indptr=np.array([0, 1, 1, 3, 3, 3, 4], dtype=np.int32),
        features_indices=np.array([1, 0, 1, 0], dtype=np.uint16),
        edges=tiny_arrays()["edges"].astype(np.uint16),
        node_labels=np.array([0, 1, 0, 1, -1, 1], dtype=np.int8),
        train_masks=None,
        val_masks=None,
        test_masks=None,
        train_idx=np.array([0, 3]),
        valid_idx=np.array([1]),
        test_idx=np.array([5, 2]),
        class_names=np.array(["no", "yes"]),
    )
    graph = read_graph([path])
    assert graph.x.tolist() == [[0, 1], [0, 0], [1, 1], [0, 0], [0, 0], [1, 0]]
    assert graph.x.dtype == np.float32
    assert graph.edges.dtype == graph.y.dtype == np.int64
    assert graph.masks.test.tolist() == [[False], [False], [True], [False], [False], [True]]
    assert graph.class_names == ["no", "yes"]


def test_sparse_features_keep_their_values(tmp_path):
    sparse = {
        "features_shape": np.array([6, 1]),
        "features_indptr": np.array([0, 1, 1, 1, 1, 1, 1]),
        "features_indices": np.array([0]),
        "features_data": np.array([98], dtype=np.uint8),
    }
    graph = read_graph([write_npz(tmp_path / "g.npz", node_features=None, **sparse)])
    assert graph.x[:, 0].tolist() == [98, 0, 0, 0, 0, 0]


def test_objects_are_refused_by_name(tmp_path):
    path = write_npz(tmp_path / "g.npz", node_labels=np.array([0, "a", None], dtype=object))
    with pytest.raises(DataError, match=r"array 'node_labels' of .*g\.npz holds Python objects"):
        read_npz(path)


def test_a_truncated_file_is_named(tmp_path):
    path = write_npz(tmp_path / "g.npz")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"g\.npz is not a complete npz file .* truncated or altered"):
        read_npz(path)


def test_a_flipped_byte_is_noticed(tmp_path):
    path = write_npz(tmp_path / "g.npz", node_features=np.random.default_rng(0).random((6, 50)))
    content = bytearray(path.read_bytes())
    content[400] ^= 255
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"g\.npz is not a complete npz file"):
        read_npz(path)


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"\x93NUMPY"])
def test_something_else_is_not_an_npz(tmp_path, content):
    (tmp_path / "g.npz").write_bytes(content)
    with pytest.raises(DataError, match="not a complete npz file"):
        read_npz(tmp_path / "g.npz")


def test_no_file(tmp_path):
    with pytest.raises(DataError, match=r"there is no file .*nowhere\.npz"):
        read_npz(tmp_path / "nowhere.npz")


def test_a_missing_array_is_named_beside_those_there(tmp_path):
    path = write_npz(tmp_path / "g.npz", edges=None)
    with pytest.raises(DataError, match=r"g\.npz has no array 'edges', only node_features, node_labels"):
        read_graph([path])


def test_all_missing_arrays_are_named_at_once(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, edge_index=np.zeros((2, 1), dtype=int), y=np.zeros(2, dtype=int), z=np.zeros(1))
    with pytest.raises(DataError) as caught:
        read_graph([path])
    assert str(caught.value) == (
        f"{path} has no arrays 'edges' and 'node_labels', only edge_index, y, z: rename edge_index to edges (shape"
        " [E, 2]) and y to node_labels"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": np.zeros((2, 5), dtype=int)}, r"'edges' of .* must have the shape \[E, 2\], not \[2, 5\]"),
        ({"edges": np.zeros((5, 2))}, "'edges' of .* must hold integers, not float64"),
        ({"node_labels": np.zeros((6, 1), dtype=int)}, r"'node_labels' of .* must have the shape \[N\]"),
        ({"node_features": np.zeros(6)}, r"'node_features' of .* numbers in the shape \[N, F\]"),
        ({"node_features": np.full((6, 1), "a")}, r"'node_features' of .* numbers"),
        ({"val_masks": np.zeros((2, 7), dtype=bool)}, r"'val_masks' of .* must have the shape \[S, 6\], not \[2, 7\]"),
        ({"val_masks": np.zeros((1, 6), dtype=bool)}, "same number of splits"),
        ({"train_masks": None}, "train, validation and test masks"),
        (
            {"test_masks": None, "test_idx": np.array([6])},
            "'test_idx' of .* names the nodes 6 to 6, but nodes",
        ),
        (
            {
                "node_features": None,
                "features_shape": np.array([6, 2]),
                "features_indptr": np.array([0, 1, 1, 1, 1, 1, 1]),
                "features_indices": np.array([2]),
            },
            r"'features_\*' of .* are not a sparse matrix",
        ),
        ({"class_names": np.array("no")}, "'class_names' of .* must be a list of names"),
        ({"node_features": None, "features_indices": np.array([2])}, r"'features_\*' of .* are not a sparse matrix"),
    ],
)
def test_arrays_of_another_shape_or_type(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        read_graph([write_npz(tmp_path / "g.npz", **changes)])


@pytest.mark.parametrize("count", [-3, [], [2, 3], 10**12], ids=str)
def test_a_number_of_nodes_that_cannot_be(tmp_path, count):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], num_nodes=np.array(count, dtype=np.int64))
    with pytest.raises(DataError, match=r"'num_nodes' of .* must be a single number from 0 to 2147483647"):
        read_own_graph(InputFile(tmp_path / "g.npz"), need_labels=False)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"num_nodes": np.array(2.5)}, "'num_nodes' of .* must hold integers, not float64"),
        ({"node_features": np.array(1.0)}, r"'node_features' of .* numbers in the shape \[N, F\]"),
        ({}, "does not say how many nodes the graph has"),
    ],
)
def test_nodes_that_cannot_be_counted(tmp_path, arrays, message):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], **arrays)
    with pytest.raises(DataError, match=message):
        read_own_graph(InputFile(tmp_path / "g.npz"), need_labels=False)


@pytest.mark.parametrize("arrays", [{"num_nodes": 3}, {"num_nodes": [3]}, {"node_features": np.ones((3, 2))}], ids=str)
def test_nodes_without_labels_are_counted(tmp_path, arrays):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], **arrays)
    assert read_own_graph(InputFile(tmp_path / "g.npz"), need_labels=False).y.tolist() == [-1, -1, -1]


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


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [
        ("node_features", complex, "must hold real numbers in the shape .*, not complex128"),
        ("node_features", "m8[s]", "must hold real numbers in the shape .*, not timedelta64"),
        ("node_labels", "m8[s]", "must hold integers, not timedelta64"),
        ("edges", "m8[s]", "must hold integers, not timedelta64"),
    ],
)
def test_complex_numbers_and_durations_are_refused(tmp_path, name, dtype, message):
    """The faults: imaginary parts were dropped, and durations taken as numbers."""
    arrays = {"edges": np.array([[0, 1]]), "node_labels": np.array([0, 1]), "node_features": np.ones((2, 1))}
    np.savez(tmp_path / "graph.npz", **{**arrays, name: arrays[name].astype(dtype)})
    with pytest.raises(DataError, match=message):
        from_npz(tmp_path / "graph.npz")
