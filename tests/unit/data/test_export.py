"""Graphs written to files: what is in them, and what comes back when they are read."""

import csv
import warnings
from functools import partial

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import gumbel_mpnn as gm
from gumbel_mpnn.data import from_csv, from_graphml, from_npz, save_graph
from gumbel_mpnn.data.export import MOST_FEATURES, is_directed
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring.learned_graph import as_data
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError
from helpers import edges

#     a – b – c    d (alone)      a – c was added; c has no label
GRAPH = Data(
    x=torch.tensor([[1.0, 0.5], [2, -1.25], [3, 1 / 3], [4, 0]]),
    y=torch.tensor([1, 0, -1, 1]),
    edge_index=edges((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)),
    edge_weight=torch.tensor([2.7, 0.6, 2.7, 0.7, 0.6, 0.7]),
    edge_probability=torch.tensor([0.9, 0.6, 0.9, 0.7, 0.6, 0.7]),
    edge_origin=torch.tensor([True, False, True, True, False, True]),
    train_mask=torch.tensor([True, True, False, False]),
    val_mask=torch.tensor([False, False, False, True]),
    test_mask=torch.tensor([False, False, False, False]),
    node_ids=["a", "b", "c", "d"],
    class_names=["cat", "dog"],
    metric="roc_auc",
)
OF_EDGES = ("edge_index", "edge_weight", "edge_probability", "edge_origin")
NAMES = ("node_ids", "class_names", "metric")
ARROWS = Data(edge_index=edges((0, 1), (2, 0), (2, 1)), edge_weight=torch.tensor([0.5, 0.75, 1.0]), num_nodes=3)


def equal(one, other, *names):
    for name in names:
        assert torch.equal(one[name], other[name]), name


def test_graphml_there_and_back(tmp_path):
    save_graph(GRAPH, tmp_path / "g.graphml")
    for label in (None, "label"):
        back = from_graphml(tmp_path / "g.graphml", label=label)
        equal(back, GRAPH, "x", "y", *OF_EDGES, "train_mask", "val_mask", "test_mask")
        assert [back[name] for name in NAMES] == [GRAPH[name] for name in NAMES]
    stored = networkx.read_graphml(tmp_path / "g.graphml")
    assert stored.edges["a", "c"]["given"] is False
    assert stored.edges["b", "c"]["given"] is True
    assert not stored.is_directed()


def test_npz_there_and_back(tmp_path):
    save_graph(GRAPH, tmp_path / "g.npz")
    back = from_npz(tmp_path / "g.npz")
    equal(back, GRAPH, "x", "y", *OF_EDGES)
    assert torch.equal(back.train_mask[:, 0], GRAPH.train_mask)
    assert [back[name] for name in NAMES] == [GRAPH[name] for name in NAMES]
    assert torch.equal(from_npz(tmp_path / "g.npz", undirected=False).edge_index, GRAPH.edge_index)
    with np.load(tmp_path / "g.npz") as file:
        assert file["given"].tolist() == [True, False, True]


def test_csv_edges_go_with_the_file_of_nodes(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,kind,f\na,dog,1\nb,cat,2\nc,,3\nd,dog,4\n")
    save_graph(GRAPH, str(tmp_path / "edges.csv"))
    back = from_csv(tmp_path / "nodes.csv", tmp_path / "edges.csv", label="kind")
    equal(back, GRAPH, "y", *OF_EDGES)
    with (tmp_path / "edges.csv").open() as file:
        line = next(csv.DictReader(file))
    assert line == {"source": "a", "target": "b", "weight": "2.7", "probability": "0.9", "given": "true"}


LEARNED = as_data(PairGraph.build(GRAPH.edge_index, 4, undirected=False), torch.full((6,), 0.75), GRAPH)


@pytest.mark.parametrize("read", [partial(from_npz, labels=False), from_graphml])
@pytest.mark.parametrize("graph", [ARROWS, LEARNED], ids=["arrows", "all both ways"])
def test_direction_is_kept(tmp_path, read, graph):
    path = tmp_path / ("g.graphml" if read is from_graphml else "g.npz")
    save_graph(graph, path)
    back = read(path)
    assert back.undirected is False
    equal(back, graph, *(name for name in OF_EDGES if name in graph))


def test_two_directions_of_different_weight_are_two_edges(tmp_path):
    data = Data(edge_index=edges((0, 1), (1, 0)), edge_weight=torch.tensor([0.5, 0.75]), num_nodes=2)
    assert is_directed(data)
    assert not is_directed(GRAPH)
    assert not is_directed(Data(edge_index=edges(), num_nodes=2))
    save_graph(data, tmp_path / "g.csv")
    assert (tmp_path / "g.csv").read_text().splitlines()[1:] == ["0,1,0.5", "1,0,0.75"]


def test_many_features_are_left_out_of_graphml_with_a_word(tmp_path):
    data = Data(x=torch.ones(2, MOST_FEATURES + 1), edge_index=edges((0, 1), (1, 0)), y=torch.tensor([0, 1]))
    with pytest.warns(DataWarning, match=r"without the 101 features, .* write \.npz to keep"):
        save_graph(data, tmp_path / "g.graphml")
    assert networkx.read_graphml(tmp_path / "g.graphml").nodes["0"] == {"label": 0}
    save_graph(data, tmp_path / "g.npz")
    assert from_npz(tmp_path / "g.npz").num_features == MOST_FEATURES + 1


@pytest.mark.parametrize("splits", [1, 2])
def test_several_splits_are_left_out_of_graphml_with_a_word(tmp_path, splits):
    graph = GRAPH.clone()
    for part in ("train", "val", "test"):
        graph[f"{part}_mask"] = torch.stack([GRAPH[f"{part}_mask"]] * splits, dim=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        save_graph(graph, tmp_path / "graph.graphml")
    assert ["the GraphML file is written without splits" in str(one.message) for one in caught] == [True] * (splits - 1)
    back = from_graphml(tmp_path / "graph.graphml")
    assert ("train_mask" in back) is (splits == 1)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"cannot write a graph as '\.gml': did you mean '\.graphml'"):
        save_graph(GRAPH, tmp_path / "g.gml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_index": None, "adj_t": 0}, r"this graph has no edge_index \(adj_t is not read\)"),
        ({"edge_index": GRAPH.edge_index + 1}, "edge 1 goes from node 1 to node 3, but nodes are 0 to 2"),
        ({"node_ids": ["a", "b"]}, "the 3 nodes need as many different node_ids: set data.node_ids, or delete it"),
        ({"node_ids": [1, "1", "b"]}, "the 3 nodes need as many different node_ids"),
        ({"y": torch.zeros(3, 1).long()}, r"labels y must be integers of shape \[N\].*data\.y\.view\(-1\)"),
    ],
)
@pytest.mark.parametrize("suffix", [".npz", ".csv", ".graphml"])
def test_what_could_not_be_read_again_is_not_written(tmp_path, change, message, suffix):
    data = Data(**{"x": torch.ones(3, 1), "edge_index": GRAPH.edge_index, **change})
    with pytest.raises(DataError, match=message):
        save_graph(data, tmp_path / f"g{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".npz", ".graphml"])
def test_nodes_without_edges_or_features_are_counted_by_their_labels(tmp_path, suffix):
    save_graph(Data(y=torch.tensor([0, 1, 1, 0]), edge_index=GRAPH.edge_index), tmp_path / f"g{suffix}")
    read = {".npz": from_npz, ".graphml": from_graphml}[suffix]
    assert read(tmp_path / f"g{suffix}", features=False).y.tolist() == [0, 1, 1, 0]


def test_the_graphs_of_a_batch_are_saved_one_by_one(tmp_path):
    batch = Batch.from_data_list([GRAPH, GRAPH])
    with pytest.raises(DataError, match=r"holds one graph, not a batch: save each graph of data.to_data_list\(\)"):
        save_graph(batch, tmp_path / "g.npz")
    save_graph(batch.to_data_list()[1], tmp_path / "g.npz")
    equal(from_npz(tmp_path / "g.npz"), GRAPH, "x", "y", *OF_EDGES)


def test_a_column_of_that_name_that_holds_no_numbers_is_passed_over(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,kind,f\na,dog,1\nb,cat,2\n")
    (tmp_path / "edges.csv").write_text("source,target,probability\na,b,high\n")
    assert "edge_probability" not in from_csv(tmp_path / "nodes.csv", tmp_path / "edges.csv", label="kind")
    graph = networkx.Graph([("a", "b", {"probability": "high"})])
    networkx.set_node_attributes(graph, 1.0, "f")
    assert "edge_probability" not in gm.from_networkx(graph)


@pytest.mark.parametrize(("suffix", "read"), [(".npz", from_npz), (".graphml", from_graphml)])
def test_what_a_run_learned_can_be_trained_on(tmp_path, suffix, read):
    data = gm.data.demo_graph()
    tables = {"model": {"hidden_channels": 8}, "train": {"epochs": 2}}
    rewired = gm.fit(data, "gumbel-mpnn", splits=[0], settings=tables, device="cpu").rewire()
    path = tmp_path / f"learned{suffix}"
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        if suffix == ".graphml":
            warnings.filterwarnings("ignore", "the GraphML file is written without splits")
        save_graph(rewired, path)
        back = read(path)
    equal(back, rewired, "x", "y", *OF_EDGES)
    assert back.num_nodes == 1000
