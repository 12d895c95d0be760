"""Graphs of Python users: what is converted, what is refused, and what is told."""

import warnings

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset, TemporalData

from gumbel_mpnn.data import FeatureColumn, GraphFacts, check, from_npz, save_graph, with_identity_features
from gumbel_mpnn.data.check import (
    as_graph,
    check_kind,
    has_identity_features,
    joined,
    warn_of_empty_classes,
    warn_of_ignored,
)
from gumbel_mpnn.util import tensors
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError
from helpers import both_ways, changed, edges


def graph(**changes):
    """A path of four nodes."""
    data = Data(x=torch.ones(4, 2), y=torch.tensor([0, 1, 0, -1]), edge_index=edges((0, 1), (1, 2), (2, 3)))
    return changed(data, **changes)


@pytest.fixture
def odd():
    """A path 0-1-2 listed both ways, a self-loop at 2, the arc 0 to 1 a second time, node 3 alone and unlabelled."""
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 2, 1]])
    return Data(x=torch.ones(4, 2), edge_index=edge_index, y=torch.tensor([0, 2, 0, -1]))


class TestConverts:
    def test_nothing_that_is_right(self):
        data = graph()
        assert as_graph(data) is data

    @pytest.mark.parametrize(
        "y",
        [
            [0, 1, 0, -1],
            (0, 1, 0, -1),
            [0, 1, 0, None],
            np.array([0, 1, 0, -1], np.int8),
            torch.tensor([0, 1, 0, -1], dtype=torch.int32),
        ],
    )
    def test_numbers_in_lists_and_arrays(self, y):
        data = graph(y=y)
        converted = as_graph(data)
        assert converted.y.dtype == torch.int64
        assert converted.y.tolist() == [0, 1, 0, -1]
        assert data.y is y

    @pytest.mark.parametrize("y", [["b", "a", " b", ""], np.array(["b", "a", "b", ""]), ["b", "a", "b", float("nan")]])
    def test_names_of_classes(self, y):
        converted = as_graph(graph(y=y))
        assert (converted.y.tolist(), converted.class_names) == ([1, 0, 1, -1], ["a", "b"])

    @pytest.mark.parametrize("kind", [np.array, list, torch.tensor])
    @pytest.mark.parametrize("dtype", [">f4", np.uint8, np.float64])
    def test_features(self, kind, dtype):
        array = np.array([[0], [1], [2], [3]], dtype)
        x = torch.from_numpy(array.astype(np.uint8)) if kind is torch.tensor else kind(array.tolist())
        converted = as_graph(graph(x=array if kind is np.array else x)).x
        assert converted.is_floating_point()
        assert converted.tolist() == [[0], [1], [2], [3]]

    def test_edges_and_masks_of_arrays_that_are_read_only(self):
        mask, index = np.array([True, False, False, False]), np.array([[0, 1], [1, 2]])
        for array in (mask, index):
            array.flags.writeable = False
        converted = as_graph(graph(edge_index=index, edge_weight=[1.0, 2.0], train_mask=mask))
        assert converted.edge_index.tolist() == [[0, 1], [1, 2]]
        assert converted.edge_weight.tolist() == [1, 2]
        assert converted.train_mask.tolist() == mask.tolist()


ONE_GRAPH = "models classify the nodes of one graph"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": scipy.sparse.eye(4).tocsr()}, "data.x must be a tensor or an array of numbers, not a csr_matrix: conv"),
        ({"x": [["a"], ["b"], ["c"], ["d"]]}, "data.x must be a tensor or an array of numbers, not a list: convert it"),
        ({"x": 3.0}, "data.x must be a tensor or an array of numbers, not a float: convert it"),
        ({"y": [[0], [1, 2]]}, "data.y must have one whole number for each node, or one name, and None if"),
        ({"y": ["a", None, 2, 3]}, "data.y must have one whole number for each node, or one name"),
        ({"y": torch.tensor([0.5, 1.5, 3.5, 2])}, r"labels y must be .*, not torch.float32 \[4\]: .* bin quantities"),
        ({"y": [[0.5], [1.5], [3.5], [2]]}, r"labels y must be integers of shape \[N\], one class of each node, not"),
        ({"y": torch.eye(4)}, r"labels y must be .* or data.y.argmax\(1\) if they are one-hot"),
    ],
)
def test_what_is_refused(changes, message):
    with pytest.raises(DataError, match=message):
        as_graph(graph(**changes))


class TwoGraphs(InMemoryDataset):
    """A data set of PyG."""


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (HeteroData(), f"a HeteroData is not supported, since {ONE_GRAPH}: convert it, for example by data.to_homog"),
        (TemporalData(), f"a TemporalData is not supported, since {ONE_GRAPH}: give the edges up to one point in time"),
        (TwoGraphs(), f"a TwoGraphs is not supported, since {ONE_GRAPH}: give one graph of this data set, as dataset"),
        ([graph(), graph()], f"a list is not supported, since {ONE_GRAPH}: join graphs by Batch.from_data_list"),
    ],
    ids=["heterogeneous", "temporal", "data set", "list"],
)
def test_other_objects(dataset, message):
    with pytest.raises(UserError, match=message):
        check_kind(dataset)
    check_kind(graph())
    check_kind("cora")


class TestBatches:
    def test_of_one_graph_after_the_other(self):
        batch = as_graph(Batch.from_data_list([graph(), graph()]))
        assert type(batch) is Data
        assert (batch.y.tolist(), batch.batch.tolist()) == ([0, 1, 0, -1] * 2, [0] * 4 + [1] * 4)

    def test_what_all_graphs_share_is_kept(self):
        one, other = (
            graph(node_ids=list(ids), class_names=["a", "b"], metric="macro_f1", feature_columns=[FeatureColumn("f")])
            for ids in ("pqrs", "tuvw")
        )
        whole = joined(Batch.from_data_list([one, other]))
        assert whole.node_ids == list("pqrstuvw")
        assert (whole.class_names, whole.metric, whole.feature_columns) == (
            ["a", "b"],
            "macro_f1",
            [FeatureColumn("f")],
        )
        assert joined(Batch.from_data_list([one, one])).get("node_ids") is None
        other.x[2, 1] = torch.inf
        with pytest.raises(DataError, match=r"feature 1 of node 6 \('v'\) is inf"):
            check(Batch.from_data_list([one, other]))
        for change in ({"metric": "accuracy"}, {"class_names": ["b", "a"]}):
            with pytest.raises(DataError, match=f"the graphs of the batch have different {next(iter(change))}, such"):
                joined(Batch.from_data_list([one, changed(one, **change)]))

    def test_labels_of_graphs(self):
        batch = Batch.from_data_list([graph(y=torch.tensor([k])) for k in range(3)])
        with pytest.raises(DataError, match="graph classification is not supported by fit"):
            as_graph(batch)


class TestCheck:
    def test_oddities_are_accepted_and_counted(self, odd):
        expected = GraphFacts(
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
        assert check(odd) == expected
        assert check(changed(odd, edge_index=odd.edge_index.int())) == expected

    def test_keys_of_edges_do_not_overflow(self):
        edge_index = torch.tensor([[99_998, 0], [99_999, 1]], dtype=torch.int32)
        facts = check(Data(edge_index=edge_index, y=torch.zeros(100_000, dtype=torch.int64)))
        assert (facts.num_edges, facts.num_isolated) == (2, 99_996)

    def test_features_and_edges_may_be_absent(self, odd):
        facts = check(changed(odd, x=None, edge_index=torch.empty(2, 0, dtype=torch.int64)))
        assert (facts.num_edges, facts.num_isolated, facts.degree_max) == (0, 4, 0)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"y": None}, "no labels y"),
            ({"y": torch.full((4,), -1)}, "no node of the graph has a label"),
            ({"y": torch.empty(0, dtype=torch.int64)}, "no node of the graph has a label"),
            (
                {"y": [0, 1, 0, 1]},
                r"labels y must be integers of shape \[N\], one class of each node, not a list: number",
            ),
            ({"y": torch.zeros(4, 1).long()}, r"labels y must be .*, not torch.int64 \[4, 1\].* use data.y.view\(-1\)"),
            ({"y": torch.tensor([0, -2, 0, 1])}, "node 1 has the label -2: labels are 0 to 3, or -1 for unknown"),
            ({"class_names": ["no", "yes"]}, "node 1 has the label 2: labels are 0 to 1"),
            ({"x": [[1.0]] * 4}, r"features x must be floats of shape \[4, F\], not a list"),
            ({"x": torch.ones(5, 2)}, r"features x must be floats of shape \[4, F\], not torch.float32 \[5, 2\]"),
            (
                {"x": torch.tensor([[0, 1.0], [0, 0], [0, torch.nan], [0, torch.inf]])},
                "1 of node 2 is nan, the first of",
            ),
            ({"edge_index": None}, "no edge_index"),
            ({"edge_index": torch.zeros(3, 2).long()}, r"edge_index must be integers of shape \[2, E\]"),
            ({"edge_index": edges((0, 1), (2, 4))}, "edge 1 goes from node 2 to node 4, but nodes are 0 to 3"),
            ({"edge_weight": torch.ones(5)}, r"edge_weight must have shape \[6\], not \[5\]"),
            ({"edge_weight": torch.tensor([1, 1, 1, torch.nan, 1, 1])}, "weight of edge 3 is not finite"),
            ({"edge_weight": torch.tensor([1, 1, 1, -0.25, 1, 1])}, r"weight of edge 3 is negative \(-0.25\): weights"),
            ({"train_mask": torch.ones(3).bool()}, r"train_mask must be bool of shape \[4\]"),
        ],
    )
    def test_parts_that_are_missing_or_do_not_fit(self, odd, changes, message):
        with pytest.raises(DataError, match=message):
            check(changed(odd, **changes))


PATH = Data(x=torch.ones(4, 1), edge_index=both_ways(edges((0, 1), (1, 2), (2, 3))))
ONE_WAY = edges((0, 1), (1, 0), (1, 2), (2, 3), (0, 3), (0, 3))


@pytest.mark.parametrize(
    ("changes", "undirected", "told"),
    [
        ({}, True, None),
        ({"edge_weight": torch.ones(6)}, True, None),
        ({"edge_index": edges()}, True, None),
        (
            {"edge_attr": torch.ones(6, 2)},
            True,
            "the edge_attr of this graph is ignored, since models use edge weights",
        ),
        ({"edge_index": edges((2, 2), (2, 2))}, True, "this graph has 1 self-loop, which is left out: convolutions"),
        ({"edge_index": edges((0, 0), (2, 2))}, True, "this graph has 2 self-loops, which are left out: convolutions"),
        (
            {"undirected": False},
            True,
            "this graph is directed (undirected is false), but is treated as undirected: set",
        ),
        ({"undirected": False}, False, None),
        ({"edge_index": ONE_WAY}, True, "3 of the 5 edges of this graph have no reverse, but it is treated as"),
        ({"edge_index": ONE_WAY}, False, None),
        ({"edge_index": ONE_WAY, "undirected": True}, True, None),
        ({"edge_index": edges((0, 1), (1, 0), (1, 2), (3, 0))}, True, None),
    ],
)
def test_what_is_ignored_is_told(changes, undirected, told):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_ignored(changed(PATH, **changes), undirected)
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == (told is not None)
    assert all(message.startswith(told) for message in messages)


@pytest.mark.filterwarnings("error")
def test_classes_without_nodes_are_told():
    with pytest.raises(DataWarning, match="3 different numbers up to 9, so that there are 10 classes, 7 without"):
        warn_of_empty_classes(changed(PATH, y=torch.tensor([1, 5, 9, -1])))
    warn_of_empty_classes(changed(PATH, y=torch.tensor([0, 1, -1, 2])))
    warn_of_empty_classes(changed(PATH, y=torch.tensor([0, 2, 2, 0]), class_names=["a", "b", "c"]))


class TestIdentity:
    def test_every_node_has_a_feature_of_its_own(self, monkeypatch):
        data = Data(edge_index=edges((0, 1), (1, 0)), y=torch.tensor([0, 1, 0]))
        out = with_identity_features(data)
        assert torch.equal(out.x, torch.eye(3))
        assert out.identity_features
        assert "x" not in data
        assert with_identity_features(Data(edge_index=edges((0, 1)), num_nodes=4)).x.shape == (4, 4)
        monkeypatch.setattr(tensors, "MOST_DENSE", 8)
        x = with_identity_features(data).x
        assert x.layout is torch.sparse_coo
        assert torch.equal(x.to_dense(), torch.eye(3))
        assert has_identity_features(changed(data, x=x))

    @pytest.mark.parametrize(
        ("x", "answer"),
        [(torch.eye(3)[[2, 0, 1]], True), (torch.ones(3, 3), False), (torch.eye(3, 4), False), (None, False)],
    )
    def test_whether_features_say_nothing(self, x, answer):
        assert has_identity_features(changed(Data(y=torch.tensor([0, 1, 0])), x=x)) is answer

    def test_they_are_not_written_to_files(self, tmp_path):
        data = with_identity_features(Data(edge_index=edges((0, 1), (1, 0)), y=torch.tensor([0, 1, 0])))
        save_graph(data, tmp_path / "g.npz")
        stored = from_npz(tmp_path / "g.npz")
        assert (data.x is None, stored.x, stored.num_nodes) == (False, None, 3)
