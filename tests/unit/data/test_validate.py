import pytest
import torch
from torch_geometric.data import Batch, Data

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data import GraphFacts, check


@pytest.fixture
def data():
    """A path 0-1-2 listed both ways, a self-loop at 2, the arc 0 to 1 a second time, node 3 alone and unlabelled."""
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 2, 1]])
    return Data(x=torch.ones(4, 2), edge_index=edge_index, y=torch.tensor([0, 2, 0, -1]))


def test_oddities_are_accepted_and_counted(data):
    assert check(data) == GraphFacts(
        num_nodes=4,
        num_edges=2,
        num_self_loops=1,
        num_duplicate_edges=1,
        num_isolated=1,
        num_classes=2,
        num_unlabelled=1,
        degree_min=0,
        degree_mean=1.0,
        degree_max=2,
    )


@pytest.mark.parametrize("kind", [torch.int32, torch.uint8])
def test_edges_are_any_integers(data, kind):
    expected = check(data)
    data.edge_index = data.edge_index.to(kind)
    assert check(data) == expected


def test_keys_of_edges_do_not_overflow():
    edge_index = torch.tensor([[99_998, 0], [99_999, 1]], dtype=torch.int32)
    facts = check(Data(edge_index=edge_index, y=torch.zeros(100_000, dtype=torch.int64)))
    assert (facts.num_edges, facts.num_isolated) == (2, 99_996)


def test_features_and_edges_may_be_absent(data):
    del data.x
    data.edge_index = torch.empty(2, 0, dtype=torch.int64)
    facts = check(data)
    assert (facts.num_edges, facts.num_isolated, facts.degree_max) == (0, 4, 0)


@pytest.mark.parametrize(("value", "word"), [(float("nan"), "NaN"), (float("inf"), "infinite"), (-float("inf"), "inf")])
def test_features_that_are_not_finite(data, value, word):
    data.x[2, 1] = value
    with pytest.raises(DataError, match=f"feature 1 of node 2 is {word}"):
        check(data)
    data.node_ids = ["a", "b", "c", "d"]
    data.x[3, 1] = value
    with pytest.raises(DataError, match=rf"node 2 \('c'\) is {word}\w*, the first of 2 such nodes: give every node"):
        check(data)


@pytest.mark.parametrize("node", [-1, 4])
def test_an_edge_to_a_node_that_does_not_exist(data, node):
    data.edge_index[1, 3] = node
    with pytest.raises(DataError, match=f"edge 3 goes from node 2 to node {node}, but nodes are 0 to 3"):
        check(data)


@pytest.mark.parametrize("label", [-2, 4])
def test_labels_out_of_range(data, label):
    data.y[1] = label
    with pytest.raises(DataError, match=f"node 1 has the label {label}: labels are 0 to 3, or -1 for unknown"):
        check(data)


def test_a_label_without_a_class_name(data):
    data.class_names = ["no", "yes"]
    with pytest.raises(DataError, match="node 1 has the label 2: labels are 0 to 1"):
        check(data)


@pytest.mark.parametrize(
    ("y", "hint"),
    [
        (torch.zeros(4), "convert these whole numbers to integers"),
        (torch.zeros(4, dtype=torch.bfloat16), "convert these whole numbers"),
        (torch.tensor([1.0, torch.nan, 2, 0]), "convert these whole numbers to integers, with -1 for"),
        (torch.tensor([1.0, 0.5, 2, 0]), "a quantity is not a class, so bin it first"),
        (torch.zeros(4, 1, dtype=torch.int64), r"use data.y.view\(-1\)"),
        (torch.zeros(4, dtype=torch.bool), "number the classes from 0"),
    ],
)
def test_labels_that_are_not_integers(data, y, hint):
    data.y = y
    with pytest.raises(DataError, match=rf"labels y must be integers of shape \[N\], not .*: {hint}"):
        check(data)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("y", None, "no labels y"),
        ("y", torch.full((4,), -1), "no node of the graph has a label"),
        ("y", torch.empty(0, dtype=torch.int64), "no nodes"),
        ("y", [0, 1, 0, 1], r"labels y must be a tensor of integers of shape \[N\], not a list: convert it"),
        ("x", [[1.0]] * 4, r"features x must be a tensor of shape \[N, F\], not a list: convert it"),
        ("x", torch.ones(5, 2), "features x for 5 nodes, but labels y for 4"),
        ("x", torch.ones(4), r"x must be floats of shape \[N, F\]"),
        ("x", torch.ones(4, 2, dtype=torch.int64), "x must be floats"),
        ("edge_index", None, "no edge_index"),
        ("edge_index", torch.zeros(3, 2, dtype=torch.int64), r"edge_index must be integers of shape \[2, E\]"),
        ("edge_index", torch.zeros(2, 3), "edge_index must be integers"),
        ("edge_weight", torch.ones(5), r"edge_weight must have shape \[6\], not \[5\]"),
        (
            "edge_weight",
            torch.tensor([1, 1, 1, float("nan"), 1, 1]),
            "weight of edge 3 from node 2 to node 1 is not finite",
        ),
        (
            "edge_weight",
            torch.tensor([1, 1, 1, -0.25, 1, 1]),
            r"edge 3 from node 2 to node 1 is negative \(-0.25\): weights",
        ),
        ("train_mask", torch.ones(3, dtype=torch.bool), r"train_mask must be bool of shape \[4\]"),
    ],
)
def test_parts_that_are_missing_or_do_not_fit(data, name, value, message):
    data[name] = value
    with pytest.raises(DataError, match=message):
        check(data)


def test_faults_of_a_batch_are_told_by_the_ids_of_its_graphs(data):
    data.node_ids, data.class_names = ["a", "b", "c", "d"], ["no", "maybe", "yes"]
    other = data.clone()
    other.node_ids = ["e", "f", "g", "h"]
    other.x[2, 1] = torch.inf
    with pytest.raises(DataError, match=r"feature 1 of node 6 \('g'\) is infinite"):
        check(Batch.from_data_list([data, other]))
    other.node_ids = ["a", "f", "g", "h"]
    with pytest.raises(DataError, match="feature 1 of node 6 is infinite"):
        check(Batch.from_data_list([data, other]))
    other.x[2, 1], other.y[1] = 0, 3
    with pytest.raises(DataError, match="node 5 has the label 3: labels are 0 to 2"):
        check(Batch.from_data_list([data, other]))


def test_masks_are_checked_too(data):
    data.train_mask = torch.tensor([True, True, False, False])
    data.val_mask = data.test_mask = torch.tensor([False, True, True, False])
    with pytest.raises(DataError, match=r"2 nodes are in more than one of .* masks of the split"):
        check(data)
