import numpy as np
import pytest
import torch
from graph_files import tiny_arrays, write_npz

from gumbel_mpnn.data import check, from_npz
from gumbel_mpnn.util.errors import DataError, DataWarning


def test_a_graph_with_masks(tmp_path):
    data, arrays = from_npz(write_npz(tmp_path / "g.npz")), tiny_arrays()
    assert np.array_equal(data.x, arrays["node_features"])
    assert data.edge_index.shape == (2, 10)
    assert data.is_undirected()
    assert np.array_equal(data.y, arrays["node_labels"])
    assert np.array_equal(data.val_mask, arrays["val_masks"].T)
    assert (data.name, data.get("class_names"), data.edges_listed) == ("g", None, 5)


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
        test_idx=np.array([5, 2]),
        class_names=np.array(["no", "yes"]),
    )
    data = from_npz(path)
    assert data.x.tolist() == [[0, 1], [0, 0], [1, 1], [0, 0], [0, 0], [1, 0]]
    assert data.edge_index.dtype == data.y.dtype == torch.int64
    assert data.test_mask[:, 0].tolist() == [False, False, True, False, False, True]
    assert not data.val_mask.any()
    assert data.class_names == ["no", "yes"]


def test_sparse_features_keep_their_values(tmp_path):
    sparse = {"features_shape": [6, 1], "features_indptr": [0, 1, 1, 1, 1, 1, 1], "features_indices": [0]}
    arrays = {name: np.array(value) for name, value in sparse.items()} | {"features_data": np.array([98], np.uint8)}
    data = from_npz(write_npz(tmp_path / "g.npz", node_features=None, **arrays))
    assert data.x[:, 0].tolist() == [98, 0, 0, 0, 0, 0]


def test_duplicates_are_merged_and_self_loops_stay(tmp_path):
    path = write_npz(tmp_path / "g.npz", edges=np.array([[0, 1], [0, 1], [1, 0], [2, 2]]), node_features=None)
    facts = check(from_npz(path))
    assert (facts.num_edges, facts.num_duplicate_edges, facts.num_self_loops, facts.num_isolated) == (1, 0, 1, 4)
    data = from_npz(path, features=False)
    assert (data.x, data.num_nodes, data.edges_listed) == (None, 6, 4)


def test_directions(tmp_path):
    path = write_npz(tmp_path / "g.npz")
    assert from_npz(path, undirected=False).edge_index.T.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]
    for said, asked, arcs in ((True, None, 5), (True, True, 10), (False, False, 10)):
        write_npz(path, directed=np.array(said))
        assert from_npz(path, undirected=asked).num_edges == arcs
    write_npz(path, directed=np.array("yes"))
    with pytest.raises(DataError, match=r"array 'directed' of .* must be booleans of shape \[\]"):
        from_npz(path)


@pytest.mark.parametrize("arrays", [{"num_nodes": 3}, {"node_features": np.ones((3, 2))}], ids=str)
def test_a_graph_to_measure_needs_no_labels(tmp_path, arrays):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], **arrays)
    data = from_npz(tmp_path / "g.npz", labels=False)
    assert (data.y, data.num_nodes) == (None, 3)
    write_npz(tmp_path / "g.npz", node_labels=np.full(6, -1))
    assert from_npz(tmp_path / "g.npz", labels=False).y is None
    with pytest.raises(DataError, match="no node of the graph has a label"):
        from_npz(tmp_path / "g.npz")


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (
            ["edge_attr"],
            "array 'edge_attr' of {} is not used: the arrays of a graph are edges of shape [E, 2] (not edge_",
        ),
        (
            ["edge_weight", "time", "y"],
            "arrays 'edge_weight', 'time' and 'y' of {} are not used: the arrays of a graph",
        ),
    ],
)
def test_arrays_that_are_not_used_are_told(tmp_path, arrays, said):
    path = write_npz(tmp_path / "g.npz", **{name: np.ones(5) for name in arrays})
    with pytest.warns(DataWarning) as found:
        from_npz(path)
    (warning,) = found
    assert str(warning.message).startswith("the " + said.format(path))


def test_all_missing_arrays_are_named_at_once(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, edge_index=np.zeros((2, 1), dtype=int), y=np.zeros(2, dtype=int), z=np.zeros(1))
    with pytest.raises(DataError) as caught:
        from_npz(path)
    assert str(caught.value) == (
        f"{path} has no arrays 'edges' and 'node_labels', only edge_index, y, z: the arrays of a graph are edges of"
        " shape [E, 2] (not edge_index), node_labels (not y), node_features (not x), weight (not edge_weight),"
        " train_masks, val_masks and test_masks; the help of from_npz lists all"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": np.zeros((2, 5), dtype=int)}, r"'edges' of .* must be integers of shape \[E, 2\], not int64 \["),
        ({"edges": np.zeros((5, 2))}, r"'edges' of .* must be integers of shape \[E, 2\], not float64"),
        ({"edges": np.array([[0, 1], [0, 6]])}, r"g\.npz: edge 1 goes from node 0 to node 6, but nodes are 0 to 5"),
        ({"node_labels": np.zeros((6, 1), dtype=int)}, r"'node_labels' of .* must be integers of shape \[N\]"),
        ({"node_labels": np.array([0, -2, 0, 1, 0, 1])}, r"g\.npz: labels are from -1, which means unknown, not -2"),
        (
            {"node_labels": np.array([0, "a", None], dtype=object)},
            "not a complete npz file of numbers and text .Object",
        ),
        ({"node_features": np.zeros(6)}, r"'node_features' of .* must be real numbers of shape \[N, F\]"),
        ({"node_features": np.ones((6, 1), complex)}, "'node_features' of .* must be real numbers .*, not complex128"),
        ({"val_masks": np.zeros((2, 7), dtype=bool)}, r"'val_masks' of .* of shape \[S, 6\], not bool \[2, 7\]"),
        ({"val_masks": np.zeros((1, 6), dtype=bool)}, "same number of splits"),
        ({"train_masks": None}, "train, validation and test masks"),
        ({"test_masks": None, "test_idx": np.array([6])}, "'test_idx' of .* names the nodes 6 to 6, but nodes"),
        ({"node_features": None, "features_indices": np.array([2])}, r"'features_\*' of .* are not a sparse matrix"),
        ({"class_names": np.array("no")}, r"'class_names' of .* must be names of shape \[C\]"),
        ({"node_ids": np.array(["a"])}, r"'node_ids' of .* must be names of shape \[6\]"),
        ({"weight": np.ones(4)}, r"'weight' of .* must be real numbers of shape \[5\]"),
        ({"probability": np.full(5, "a")}, "'probability' of .* must be real numbers"),
        ({"given": np.ones(5)}, r"'given' of .* must be booleans of shape \[5\]"),
        ({"edges": None}, r"g\.npz has no array 'edges', only node_features, node_labels"),
    ],
)
def test_arrays_of_another_shape_or_type(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        from_npz(write_npz(tmp_path / "g.npz", **changes))


def test_the_number_of_nodes_must_be_known(tmp_path):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], num_nodes=2.5)
    with pytest.raises(DataError, match=r"'num_nodes' of .* must be integers of shape \[\], not float64"):
        from_npz(tmp_path / "g.npz", labels=False)
    np.savez(tmp_path / "g.npz", edges=[[0, 1]])
    with pytest.raises(DataError, match="does not say how many nodes the graph has"):
        from_npz(tmp_path / "g.npz", labels=False)


def test_an_edge_was_given_if_one_of_its_lines_was(tmp_path):
    arrays = {"edges": np.array([[0, 1], [1, 0], [1, 2]]), "given": np.array([False, True, False])}
    np.savez(tmp_path / "g.npz", node_labels=np.array([0, 1, 1]), **arrays)
    assert from_npz(tmp_path / "g.npz").edge_origin.tolist() == [True, True, False, False]


class TestDamage:
    @pytest.mark.parametrize("content", [b"", b"not a zip file", b"\x93NUMPY"])
    def test_something_else(self, tmp_path, content):
        (tmp_path / "g.npz").write_bytes(content)
        with pytest.raises(DataError, match="not a complete npz file"):
            from_npz(tmp_path / "g.npz")

    @pytest.mark.parametrize("change", ["truncated", "flipped", "encrypted", "compression"])
    def test_a_changed_file(self, tmp_path, change):
        path = tmp_path / "g.npz"
        np.savez_compressed(path, edges=np.random.default_rng(0).integers(0, 9, (50, 2)))
        content = bytearray(path.read_bytes())
        if change == "truncated":
            del content[-30:]
        elif change == "flipped":
            content[len(content) // 2] ^= 255
        else:
            place, value = {"encrypted": (6, 1), "compression": (8, 97)}[change]
            content[place] = content[content.index(b"PK\x01\x02") + place + 2] = value
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"g\.npz is not a complete npz file of .* \(.+\): write it again"):
            from_npz(path)
