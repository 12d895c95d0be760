"""Graphs of Python users: what is converted, and what is refused by name."""

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset, TemporalData

from gumbel_mpnn._util.errors import DataError, DataWarning, UserError
from gumbel_mpnn.data import check
from gumbel_mpnn.data.given import as_graph, check_kind
from helpers import changed, edges


def graph(**changes):
    """A path of four nodes."""
    data = Data(x=torch.ones(4, 2), y=torch.tensor([0, 1, 0, -1]), edge_index=edges((0, 1), (1, 2), (2, 3)))
    return changed(data, **changes)


class TestConverts:
    def test_nothing_that_is_right(self):
        data = graph()
        assert as_graph(data) is data

    @pytest.mark.parametrize("y", [[0, 1, 0, -1], (0, 1, 0, -1), np.array([0, 1, 0, -1], np.int8), [0, 1, 0, None]])
    def test_numbers_in_lists_and_arrays(self, y):
        data = graph(y=y)
        converted = as_graph(data)
        assert converted.y.dtype == torch.int64
        assert converted.y.tolist() == [0, 1, 0, -1]
        assert data.y is y

    @pytest.mark.parametrize(
        "y",
        [["b", "a", " b", ""], np.array(["b", "a", "b", ""]), ["b", "a", "b", None], ["b", "a", "b", float("nan")]],
    )
    def test_names_of_classes(self, y):
        converted = as_graph(graph(y=y))
        assert converted.y.tolist() == [1, 0, 1, -1]
        assert converted.class_names == ["a", "b"]

    def test_names_in_the_order_of_the_class_names_of_the_graph(self):
        converted = as_graph(graph(y=["b", "a", "b", ""], class_names=["b", "c", "a"]))
        assert converted.y.tolist() == [0, 2, 0, -1]
        assert converted.class_names == ["b", "c", "a"]

    def test_numbers_that_are_written_as_text(self):
        assert as_graph(graph(y=["10", "9", "10", ""])).class_names == ["9", "10"]

    def test_a_word_for_missing_is_remarked_on(self):
        with pytest.warns(DataWarning, match=r"1 node has the label 'NA' in data\.y, which is used as a class: if it"):
            as_graph(graph(y=["NA", "a", "a", ""]))

    @pytest.mark.parametrize(
        "x",
        [
            np.array([[0.0], [1], [2], [3]]),
            np.array([[0], [1], [2], [3]], dtype=np.uint8),
            [[0], [1], [2], [3]],
            torch.tensor([[0], [1], [2], [3]]),
        ],
    )
    def test_features(self, x):
        converted = as_graph(graph(x=x)).x
        assert converted.is_floating_point()
        assert converted.tolist() == [[0], [1], [2], [3]]

    def test_booleans_as_features(self):
        assert as_graph(graph(x=torch.eye(4).bool())).x.tolist() == torch.eye(4).tolist()

    def test_edges_and_masks(self):
        mask = np.array([True, False, False, False])
        converted = as_graph(graph(edge_index=np.array([[0, 1], [1, 2]]), edge_weight=[1.0, 2.0], train_mask=mask))
        assert converted.edge_index.tolist() == [[0, 1], [1, 2]]
        assert converted.edge_weight.tolist() == [1, 2]
        assert converted.train_mask.tolist() == mask.tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"x": scipy.sparse.eye(4).tocsr()},
            "data.x must be a tensor or an array of numbers, not a csr_matrix: convert it",
        ),
        (
            {"x": [["a"], ["b"], ["c"], ["d"]]},
            "data.x must be a tensor or an array of numbers, not a list of <U1: convert it",
        ),
        ({"y": [[0], [1, 2]]}, "data.y must have one number or name per node, not a list of object: convert it"),
        ({"y": [1.5, None, 2, 3]}, "data.y must have one number or name per node, but has other objects: convert them"),
        (
            {"y": ["a", "b", "a", "d"], "class_names": ["a", "b"]},
            "data.y has the class 'd', which is not among data.class_names: add it there",
        ),
        (
            {"y": torch.tensor([0.5, 1.25, 3.5, 2.0])},
            "regression is not supported: y has 4 different decimal numbers, but models classify the nodes of one"
            " graph, so bin them into classes first, for example low, middle and high",
        ),
        (
            {"y": [[0.5], [1.25], [3.5], [2.0]]},
            "regression is not supported: y has 4 different decimal numbers, but models classify the nodes of one"
            " graph, so bin them into classes first, for example low, middle and high",
        ),
        (
            {"y": torch.tensor([[1, 1, 0], [0, 0, 0], [1, 0, 1], [1, 1, 1]])},
            "multi-label classification is not supported: y has 3 labels of 0 and 1 per node, but models classify the"
            " nodes of one graph into one class each, so choose one column, as data.y[:, 0].long()",
        ),
        ({"y": torch.eye(4)}, "the labels y are one-hot: use data.y.argmax(1)"),
        (
            {"y": torch.tensor([2])},
            "graph classification is not supported by fit: y has one label per graph, but models classify the nodes of"
            " one graph, so use gm.GumbelMPNN in a training loop of your own, as in examples/graph_classification.py",
        ),
        (
            {"y": None, "edge_label_index": edges((0, 2)), "edge_label": torch.ones(1)},
            "link prediction is not supported: models classify the nodes of one graph, so delete edge_label_index and"
            " edge_label if the nodes have labels y",
        ),
    ],
)
def test_refuses(changes, message):
    with pytest.raises(DataError) as caught:
        as_graph(graph(**changes))
    assert str(caught.value) == message


class TestBatches:
    def test_of_labelled_nodes(self):
        batch = Batch.from_data_list([graph(), graph()])
        assert as_graph(batch) is batch

    def test_of_labelled_graphs(self):
        batch = Batch.from_data_list([graph(y=torch.tensor([k])) for k in range(3)])
        with pytest.raises(DataError, match="graph classification is not supported by fit: y has one label per graph"):
            as_graph(batch)

    def test_whose_labels_are_lists(self):
        batch = Batch.from_data_list([graph(y=[0, 1, 0, 1]), graph(y=[0, 1, 0, 1])])
        with pytest.raises(DataError) as caught:
            as_graph(batch)
        assert str(caught.value) == (
            "the labels y of a batch must be tensors: convert those of each graph before joining them"
        )


class TwoGraphs(InMemoryDataset):
    """A data set of PyG."""


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (
            HeteroData(),
            "heterogeneous graphs (HeteroData) are not supported: models classify the nodes of one graph with one type"
            " of nodes and edges, so convert it, for example by data.to_homogeneous()",
        ),
        (
            TemporalData(),
            "temporal graphs (TemporalData) are not supported: models classify the nodes of one graph, so give the"
            " edges up to one point in time as a Data",
        ),
        (TwoGraphs(), "a TwoGraphs is a data set of PyG, not a graph: give one of its graphs, as dataset[0]"),
        (
            [graph(), graph()],
            "a list of graphs is not supported: models classify the nodes of one graph, so join them by"
            " Batch.from_data_list if their nodes have labels",
        ),
    ],
    ids=["heterogeneous", "temporal", "data set", "list"],
)
def test_other_objects(dataset, message):
    with pytest.raises(UserError) as caught:
        check_kind(dataset)
    assert str(caught.value) == message
    check_kind(graph())
    check_kind("cora")


class TestAsScikitLearn:
    """What scikit-learn takes is taken, or refused with the name of the attribute."""

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.int8, torch.int32])
    def test_labels_of_any_integers(self, dtype):
        """The faults: uint8 gave a message about the label 0, uint16 a NotImplementedError."""
        converted = as_graph(graph(y=torch.tensor([0, 1, 0, 2], dtype=dtype)))
        assert (converted.y.dtype, converted.y.tolist()) == (torch.int64, [0, 1, 0, 2])
        check(converted)

    @pytest.mark.parametrize("dtype", [">f4", "<f8", np.longdouble, object, np.uint16, ">i4"])
    def test_features_and_edges_of_any_numbers(self, dtype):
        x, index = np.array([[0], [1], [2], [3]]).astype(dtype), np.array([[0, 1], [1, 2]])
        assert as_graph(graph(x=x)).x.tolist() == [[0], [1], [2], [3]]
        assert as_graph(graph(edge_index=index.astype(">i8"))).edge_index.tolist() == index.tolist()

    def test_arrays_that_are_read_only(self):
        x, y, index = np.ones((4, 1)), np.array([0, 1, 0, 1]), np.array([[0], [1]])
        for array in (x, y, index):
            array.flags.writeable = False
        converted = as_graph(graph(x=x, y=y, edge_index=index))
        converted.x += 1
        assert x.max() == 1

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"x": 3.0}, "data.x must be a tensor or an array, not a single value"),
            ({"x": torch.tensor(3.0)}, "data.x must be a tensor or an array, not a single value"),
            ({"x": np.zeros((4, 1), "m8[s]")}, "data.x must be .* numbers, not a ndarray of timedelta64"),
            ({"x": np.zeros((4, 1), complex)}, "features x must be floats of shape .*, not torch.complex128"),
            ({"x": "text"}, "data.x must be .* numbers, not a str of <U4"),
            ({"edge_index": np.array([["0"], ["1"]])}, "data.edge_index must be .* numbers, not a ndarray of <U1"),
            ({"y": np.zeros(4, "m8[s]")}, "data.y must have one number or name per node, not a ndarray of timedelta64"),
            ({"y": ["1", "01", "2", "1"]}, "data.y: a label is written in two ways, 01 and 1: write each class"),
            ({"y": [1, "1", "2", "1"]}, "data.y has both names and other values, such as 1: write all of them as"),
        ],
    )
    def test_or_refused_by_name(self, changes, message):
        with pytest.raises(DataError, match=message):
            check(as_graph(graph(**changes)))
