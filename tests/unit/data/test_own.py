import numpy as np
import pytest
import torch
from graph_files import write_npz

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn.data import check, from_npz, save_graph
from gumbel_mpnn.data.own import encode_labels


def test_a_graph_from_npz(tmp_path):
    data = from_npz(write_npz(tmp_path / "g.npz"))
    assert data.x.shape == (6, 3)
    assert data.is_undirected()
    assert data.edge_index.shape == (2, 10)
    assert data.train_mask.shape == (6, 2)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (["edge_attr"], "array 'edge_attr' of {} is not used: the help of from_npz lists the arrays that are"),
        (["edge_weight"], "array 'edge_weight' of {} is not used: rename edge_weight to weight"),
        (
            ["edge_weight", "time", "val_idx", "y"],
            "arrays 'edge_weight', 'time', 'val_idx' and 'y' of {} are not used: rename edge_weight to weight and"
            " val_idx to valid_idx",
        ),
    ],
)
def test_arrays_that_are_not_used_are_told(tmp_path, arrays, said):
    path = write_npz(tmp_path / "g.npz", **{name: np.ones(5) for name in arrays})
    with pytest.warns(DataWarning) as found:
        from_npz(path)
    assert [str(each.message) for each in found] == ["the " + said.format(path)]


@pytest.mark.filterwarnings("error::gumbel_mpnn._util.errors.DataWarning")
def test_arrays_of_a_saved_graph_are_all_known(tmp_path):
    data = from_npz(write_npz(tmp_path / "g.npz", weight=np.ones(5), node_ids=np.array(list("abcdef"))))
    data.edge_probability, data.edge_origin, data.metric = data.edge_weight, data.edge_weight > 0, "macro_f1"
    save_graph(data, tmp_path / "again.npz")
    assert from_npz(tmp_path / "again.npz").edge_origin.all()


def test_masks_are_optional_and_direction_can_be_kept(tmp_path):
    path = write_npz(tmp_path / "g.npz", train_masks=None, val_masks=None, test_masks=None)
    data = from_npz(path, undirected=False)
    assert "train_mask" not in data
    assert data.edge_index.T.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]


@pytest.mark.parametrize(
    ("ids", "edge"),
    [(None, "edge 3 from node 3 to node 4"), (np.array(list("abcdef")), "the edge from 'd' to 'e'")],
)
def test_a_faulty_weight_is_named_by_the_ends_of_its_edge(tmp_path, ids, edge):
    path = write_npz(tmp_path / "g.npz", weight=np.array([1, 1, 1, -2, 1]), node_ids=ids)
    with pytest.raises(DataError, match=rf"g.npz: the weight of {edge} is negative \(-2\)"):
        from_npz(path)


def test_duplicates_are_merged_and_self_loops_stay(tmp_path):
    path = write_npz(tmp_path / "g.npz", edges=np.array([[0, 1], [0, 1], [1, 0], [2, 2]]))
    data = from_npz(path)
    assert data.edge_index.tolist() == [[0, 1, 2], [1, 0, 2]]
    facts = check(data)
    assert (facts.num_edges, facts.num_duplicate_edges, facts.num_self_loops, facts.num_isolated) == (1, 0, 1, 4)


def test_edges_can_stay_as_listed_and_features_be_left_out(tmp_path):
    path = write_npz(tmp_path / "g.npz", edges=np.array([[0, 1], [0, 1], [1, 0], [2, 2]]), node_features=None)
    data = from_npz(path, features=False, as_listed=True)
    assert data.edge_index.T.tolist() == [[0, 1], [0, 1], [1, 0], [2, 2]]
    assert (data.x, data.num_nodes) == (None, 6)
    assert check(data).num_duplicate_edges == 1


@pytest.mark.parametrize("changes", [{"num_nodes": np.int64(6), "node_features": None}, {}, {"node_labels": [-1] * 6}])
def test_a_graph_to_measure_needs_no_labels(tmp_path, changes):
    path = write_npz(tmp_path / "g.npz", **{"node_labels": None, **changes})
    data = from_npz(path, features=False, labels=False)
    assert (data.y, data.num_nodes, data.edge_index.shape) == (None, 6, (2, 10))
    with pytest.raises(DataError, match="label"):
        from_npz(path)


def test_features_and_edges_may_be_absent(tmp_path):
    data = from_npz(write_npz(tmp_path / "g.npz", node_features=None, edges=np.array([])))
    assert data.x is None
    assert data.num_nodes == 6
    assert data.edge_index.shape == (2, 0)
    assert data.edge_index.dtype == torch.int64


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"node_features": None}, "how many nodes"), ({"edges": np.array([[0, 6]])}, "edge 0 goes from node 0 to node 6")],
)
def test_what_is_wrong_with_a_graph_without_labels(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        from_npz(write_npz(tmp_path / "g.npz", node_labels=None, **changes), features=False, labels=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_features": np.full((6, 1), np.nan)}, "feature 0 of node 0 is NaN, the first of 6 such nodes"),
        ({"node_features": np.ones((5, 1))}, "features x for 5 nodes, but labels y for 6"),
        ({"edges": np.array([[0, 6]])}, "edge 0 goes from node 0 to node 6"),
        (
            {"node_labels": np.array([0, 1.0, 0, 1, 0, 1])},
            "holds decimals: convert these whole numbers to integers",
        ),
        ({"node_labels": np.array([0, 1.5, 0, 1, 0, 1])}, "holds decimals: a quantity is not a class"),
        ({"node_labels": np.array([0, 1, 0, -3, 0, 1])}, "node 3 has the label -3"),
        ({"node_labels": np.array([0, 1, 0, 1, 0, 9])}, "node 5 has the label 9"),
        ({"val_masks": np.ones((2, 6), dtype=bool)}, "4 nodes are in more than one of .* split 0"),
        ({"train_masks": np.zeros((2, 6), dtype=bool)}, "training mask of split 0 is empty"),
        ({"node_labels": np.array([0, 0, 0, 1, 0, 1])}, "class 1 is to be predicted in split 0"),
    ],
)
def test_faults_are_told_with_the_file(tmp_path, changes, message):
    with pytest.raises(DataError, match=rf"g\.npz.*{message}"):
        from_npz(write_npz(tmp_path / "g.npz", **changes))


def test_labels_are_numbered_in_their_natural_order():
    assert encode_labels(["10", "9", "", "10"], "abcd", "f")[1] == ["9", "10"]
    y, names = encode_labels(["b", "", "a", "10", "b"], "abcde", "f")
    assert names == ["10", "a", "b"]
    assert y.tolist() == [2, -1, 1, 0, 2]


def test_large_whole_numbers_keep_their_order():
    assert encode_labels([str(10**17 + 1), str(10**17)], "ab", "f")[1] == [str(10**17), str(10**17 + 1)]


def test_what_looks_like_a_number_but_is_text():
    for labels in (["1_0", "2"], ["inf", "1"], ["1.0.0", "2.0"], ["", "x"]):
        assert encode_labels(labels, "ab", "f")[1] == sorted(set(labels) - {""})
    with pytest.warns(DataWarning, match="1 node has the label 'nan' in f, which is used as a class"):
        assert encode_labels(["nan", "1"], "ab", "f")[1] == ["1", "nan"]


def test_a_few_decimals_are_classes():
    with pytest.warns(
        DataWarning, match=r"labels of f are decimals like \.5: each value is used as a class, 3 in total"
    ):
        y, names = encode_labels(["1.5", ".5", "2"], "abc", "f")
    assert (y.tolist(), names) == ([1, 0, 2], [".5", "1.5", "2"])


def test_a_negative_number_is_no_label():
    with pytest.raises(DataError, match="f: node 'b' has the label -1: leave the label of an unlabelled node empty"):
        encode_labels(["0", "-1", "1"], "abc", "f")
    assert encode_labels(["-1", "x"], "ab", "f")[1] == ["-1", "x"]


def test_edge_weights_of_an_edge_listed_twice_are_averaged():
    from torch_geometric.data import Data

    from gumbel_mpnn.data.raw import set_edges

    data = Data(edge_index=torch.tensor([[0, 1, 1], [1, 0, 2]]), edge_weight=torch.tensor([1.0, 3.0, 5.0]), num_nodes=3)
    set_edges(data, undirected=True)
    assert data.edge_index.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert data.edge_weight.tolist() == [2, 2, 5, 5]
