import datetime
import math
import warnings

import networkx
import pytest

from gumbel_mpnn.data import FeatureColumn, check, from_graphml, from_networkx
from gumbel_mpnn.runs.run import read_again
from gumbel_mpnn.util.errors import DataError, DataWarning


@pytest.fixture
def graph():
    graph = networkx.Graph()
    graph.add_node("a", kind="x", size=1, flag=True)
    graph.add_node("b", kind="y", size=2.5, flag=False)
    graph.add_node("c", size=3, flag=False)
    graph.add_edges_from([("a", "b"), ("b", "c"), ("c", "c")])
    return graph


def graph_of(**attributes):
    """A path of nodes 0, 1, … with these attributes; None leaves one out."""
    graph = networkx.path_graph(len(next(iter(attributes.values()))))
    for name, values in attributes.items():
        networkx.set_node_attributes(graph, {k: {name: value} for k, value in enumerate(values) if value is not None})
    return graph


def quietly(graph, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return from_networkx(graph, **options)


def test_attributes_become_features_and_labels(graph):
    data = quietly(graph, label="kind")
    assert (data.node_ids, data.class_names) == (["a", "b", "c"], ["x", "y"])
    assert data.y.tolist() == [0, 1, -1]
    assert data.x.tolist() == [[1, 1], [2.5, 0], [3, 0]]
    assert data.edge_index.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [2, 2]]


def test_any_nodes_masks_weights_and_direction():
    graph = networkx.DiGraph()
    graph.add_node((0, 0), kind=1, split="train")
    graph.add_node((0, 1), kind=1, split="test")
    graph.add_node((1, 1), kind=math.nan)
    graph.add_edge((0, 1), (0, 0), weight=0.5)
    graph.add_edge((1, 1), (0, 0))
    data = quietly(graph, label="kind")
    assert data.node_ids == [(0, 0), (0, 1), (1, 1)]
    assert (data.y.tolist(), data.class_names, data.x) == ([0, 0, -1], ["1"], None)
    assert data.edge_index.tolist() == [[1, 2], [0, 0]]
    assert data.edge_weight.tolist() == [0.5, 1]
    assert data.test_mask.tolist() == [False, True, False]


def test_words_booleans_and_missing_values():
    graph = graph_of(
        kind=["a", "b"] * 5,
        color=["red", None, "red", math.nan, "red", "", "red", "red", "red", None],
        wild=["Yes", "no"] * 5,
        big=[True, None] * 5,
        cost=[1, 2.5] * 5,
    )
    data = quietly(graph, label="kind")
    color, big = FeatureColumn("color", ("red", "")), FeatureColumn("big", ("true", ""))
    assert data.feature_columns == [color, FeatureColumn("wild"), big, FeatureColumn("cost")]
    assert data.x[:3].tolist() == [[1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 2.5], [1, 0, 1, 1, 0, 1]]


def test_no_label_in_any_case_is_a_feature_of_a_graph_without_labels(graph):
    networkx.set_node_attributes(graph, {"a": {"LABEL": 5, "label": 6}})
    assert from_networkx(graph, features=["size"]).x.tolist() == [[1], [2.5], [3]]
    assert [column.name for column in from_networkx(graph_of(label=[1, 2], f=[3, 4])).feature_columns] == ["f"]


def test_what_is_no_feature_is_told():
    graph = graph_of(kind=["a", "b"] * 5, tags=[["x", "y"]] * 10, born=[datetime.date(2020, 1, 31)] * 10)
    with pytest.warns(DataWarning, match="attribute 'born' of the NetworkX graph is not used") as told:
        data = from_networkx(graph_of(kind=["a", "b"] * 5, born=[datetime.date(2020, 1, 31)] * 10), label="kind")
    assert len(told) == 1
    assert data.x is None
    graph.nodes[3]["size"] = "large"
    networkx.set_node_attributes(graph, {node: 1 for node in graph if node != 3}, "size")
    with pytest.warns(DataWarning, match="attribute 'size' .* since node 3 of the NetworkX graph has 'large', which"):
        from_networkx(graph, label="kind")


@pytest.mark.parametrize(
    ("nodes", "edge", "options", "message"),
    [
        ({"Kind": "z"}, {}, {"label": "KIND"}, "graph has the attributes 'kind' and 'Kind', of which only one"),
        ({}, {}, {"label": "knd"}, "the NetworkX graph has no attribute 'knd': did you mean 'kind'"),
        ({}, {}, {"features": ["kind"]}, "attribute 'kind' of the NetworkX graph is the id, label or split, so it"),
        (
            {"age": 3},
            {},
            {},
            "node 'a' of the NetworkX graph has no finite number as feature 'age', the first of 2",
        ),
        ({}, {"weight": "heavy"}, {}, r"edge \('a', 'b'\) of the NetworkX graph has the weight heavy: weights must be"),
    ],
)
def test_faults(graph, nodes, edge, options, message):
    graph.nodes["b"].update(nodes)
    graph.add_edge("a", "b", **edge)
    with pytest.raises(DataError, match=message):
        from_networkx(graph, **{"label": "kind"} | options)


def test_parallel_edges_are_merged(graph):
    multi = networkx.MultiGraph(graph)
    multi.add_edge("a", "b")
    data = from_networkx(multi, label="kind")
    assert data.edge_index.shape == (2, 5)
    assert check(data).num_duplicate_edges == 0
    assert (data.edges_listed, from_networkx(multi, features=False).x) == (4, None)


def test_graphml_there_and_back(graph, tmp_path):
    for name in ("g.graphml", "g.graphml.gz"):
        networkx.write_graphml(graph, tmp_path / name)
        direct, stored = from_networkx(graph, label="kind"), from_graphml(tmp_path / name, label="kind")
        again = read_again(stored.source_files)
        for back in (stored, again, from_graphml(tmp_path / name, features=direct.feature_columns)):
            assert back.node_ids == direct.node_ids
            assert back.x.tolist() == direct.x.tolist()
            assert back.edge_index.tolist() == direct.edge_index.tolist()
        assert stored.y.tolist() == again.y.tolist() == direct.y.tolist()


def test_edge_attributes_that_are_not_used_are_told(graph, tmp_path):
    path = tmp_path / "g.graphml"
    for source, target in graph.edges:
        graph.edges[source, target].update(weight=1.0, since=2001, kind="road")
    networkx.write_graphml(graph, path)
    path.write_text(path.read_text().replace('<edge source="a"', '<edge id="e1" source="a"'))
    for read, given, where in ((from_networkx, graph, "the NetworkX graph"), (from_graphml, path, path)):
        with pytest.warns(DataWarning) as found:
            read(given, label="kind")
        assert [str(each.message) for each in found] == [
            f"of the edges in {where}, 'since' and 'kind' are not used: models use the attribute weight only"
        ]


def test_an_empty_graph():
    with pytest.raises(DataError, match="has no nodes"):
        from_networkx(networkx.Graph(), label="kind")


@pytest.mark.parametrize(
    "content", ["", "<graphml><graph>", "<html></html>", '<?xml version="1.0" encoding="rot13"?><graphml/>']
)
def test_a_file_that_is_no_graphml(tmp_path, content):
    (tmp_path / "g.graphml").write_text(content)
    with pytest.raises(DataError, match=r"g\.graphml is not a valid GraphML file"):
        from_graphml(tmp_path / "g.graphml", label="kind")
