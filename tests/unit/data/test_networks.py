import math
import sys
import warnings

import networkx
import pytest

from gumbel_mpnn._util.errors import DataError, DataWarning, UserError
from gumbel_mpnn.data import check, from_graphml, from_networkx


@pytest.fixture
def graph():
    graph = networkx.Graph()
    graph.add_node("a", kind="x", size=1, flag=True, name="first")
    graph.add_node("b", kind="y", size=2.5, flag=False, name="second")
    graph.add_node("c", size=3, flag=False, name="third")
    graph.add_edges_from([("a", "b"), ("b", "c"), ("c", "c")])
    return graph


def test_attributes_become_features_and_labels(graph):
    data = from_networkx(graph, label="kind")
    assert data.node_ids == ["a", "b", "c"]
    assert data.class_names == ["x", "y"]
    assert data.y.tolist() == [0, 1, -1]
    assert data.x.tolist() == [[1, 1], [2.5, 0], [3, 0]]
    assert data.edge_index.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [2, 2]]


def test_vectors_masks_weights_and_direction():
    graph = networkx.DiGraph()
    graph.add_node((0, 0), kind=1, x=[1.0, 2.0], split="train")
    graph.add_node((0, 1), kind=1, x=[3.0, 4.0], split="test")
    graph.add_node((1, 1), kind=math.nan, x=[5.0, 6.0])
    graph.add_edge((0, 1), (0, 0), weight=0.5)
    graph.add_edge((1, 1), (0, 0))
    data = from_networkx(graph, label="kind", features=["x"])
    assert data.node_ids == [(0, 0), (0, 1), (1, 1)]
    assert data.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert data.y.tolist() == [0, 0, -1]
    assert data.edge_index.tolist() == [[1, 2], [0, 0]]
    assert data.edge_weight.tolist() == [0.5, 1]
    assert data.test_mask.tolist() == [False, True, False]


@pytest.mark.parametrize("written", [str, str.upper, str.title, "  {}  ".format])
def test_attributes_are_found_whatever_their_case_and_the_blanks_around(written, tmp_path):
    graph = networkx.DiGraph()
    for node, kind, split, size in (("a", "x", "train", 1), ("b", "y", "train", 2), ("c", "x", "test", 3)):
        graph.add_node(node, **{written("kind"): kind, written("split"): split, written("size"): size})
    graph.add_edge("a", "b", **{written("weight"): 2.0, written("probability"): 0.75, written("given"): False})
    graph.add_edge("c", "a", **{written("weight"): 0.5, written("probability"): 0.25, written("given"): True})
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    for data in (
        from_networkx(graph, label="kind", features=["size"]),
        from_networkx(graph, label="kind"),
        from_graphml(tmp_path / "g.graphml", label="KIND"),
    ):
        assert (data.class_names, data.x.tolist()) == (["x", "y"], [[1], [2], [3]])
        assert data.train_mask.tolist() == [True, True, False]
        assert data.edge_index.tolist() == [[0, 2], [1, 0]]
        assert [data[key].tolist() for key in ("edge_weight", "edge_probability")] == [[2, 0.5], [0.75, 0.25]]
        assert data.edge_origin.tolist() == [False, True]


def test_an_attribute_that_is_named_is_first_the_one_written_so(graph):
    for node, (kind, size) in enumerate([("u", 7), ("v", 8), ("v", 9)]):
        graph.nodes["abc"[node]].update({"Kind": kind, "Size": size, 0: node})
    data = from_networkx(graph, label="Kind", features=["Size", 0])
    assert (data.class_names, data.x.tolist()) == (["u", "v"], [[7, 0], [8, 1], [9, 2]])
    assert from_networkx(graph, label="kind", features=["size"]).x.tolist() == [[1], [2.5], [3]]


def test_no_label_in_any_case_is_a_feature_of_a_graph_without_labels(graph):
    networkx.set_node_attributes(graph, {"a": {"LABEL": 5, "label": 6}})
    assert from_networkx(graph).x.tolist() == [[1, 1], [2.5, 0], [3, 0]]


@pytest.mark.parametrize(
    ("nodes", "edge", "options", "message"),
    [
        ({}, {"weight": 1, "Weight": 2}, {}, "graph has the edge attributes 'weight' and 'Weight', of which only one"),
        ({}, {" given": 1, "GIVEN": 2}, {}, "graph has the edge attributes ' given' and 'GIVEN', of which only one"),
        ({"split": "", "Split": ""}, {}, {}, "graph has the node attributes 'split' and 'Split', of which only one"),
        ({"Kind": "z"}, {}, {"label": "KIND"}, "graph has the node attributes 'kind' and 'Kind', of which only one"),
        ({"Size": 1}, {}, {"features": ["SIZE"]}, "graph has the node attributes 'size' and 'Size', of which only one"),
    ],
)
def test_two_attributes_of_the_same_name_are_refused(graph, nodes, edge, options, message):
    graph.nodes["b"].update(nodes)
    graph.add_edge("a", "b", **edge)
    with pytest.raises(DataError, match=message):
        from_networkx(graph, **{"label": "kind"} | options)


def test_edges_that_write_the_weight_in_two_ways_are_refused(graph):
    graph.add_edge("a", "b", weight=1)
    graph.add_edge("b", "c", Weight=2)
    with pytest.raises(DataError, match="'weight' and 'Weight', of which only one can be used: rename or delete the"):
        from_networkx(graph, label="kind")


def test_parallel_edges_are_merged(graph):
    multi = networkx.MultiGraph(graph)
    multi.add_edge("a", "b")
    data = from_networkx(multi, label="kind")
    assert data.edge_index.shape == (2, 5)
    assert check(data).num_duplicate_edges == 0


def test_a_graph_to_measure_needs_no_labels_or_features(graph):
    multi = networkx.MultiGraph([("a", "b"), ("b", "a"), ("c", "c")])
    data = from_networkx(multi, features=False, as_listed=True)
    assert (data.x, data.y, data.num_nodes) == (None, None, 3)
    assert data.edge_index.T.tolist() == [[0, 1], [0, 1], [2, 2]]
    assert from_networkx(graph, features=False).edge_index.tolist() == from_networkx(graph, "kind").edge_index.tolist()


def test_graphml_there_and_back(graph, tmp_path):
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    direct, stored = from_networkx(graph, label="kind"), from_graphml(tmp_path / "g.graphml", label="kind")
    assert stored.node_ids == direct.node_ids
    for name in ("x", "y", "edge_index"):
        assert stored[name].tolist() == direct[name].tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "knd"}, "no node of the NetworkX graph has the attribute 'knd': did you mean 'kind'"),
        ({"label": "kind", "features": ["sise"]}, "attribute 'sise': did you mean 'size'"),
        (
            {"label": "kind", "features": ["name"]},
            "feature attribute 'name' of .* are not numbers, and 3 different",
        ),
        ({"label": "kind", "features": ["kind"]}, "'kind' of the NetworkX graph is the label"),
    ],
)
def test_attributes_that_cannot_be_taken(graph, options, message):
    with pytest.raises(DataError, match=message):
        from_networkx(graph, **options)


def test_an_attribute_that_is_a_number_at_some_nodes_only_is_remarked_on(graph):
    graph.nodes["b"]["size"] = "large"
    with pytest.warns(DataWarning) as told:
        data = from_networkx(graph, label="kind")
    message, _ = (str(warning.message) for warning in told)
    assert message == (
        "the attribute 'size' of the NetworkX graph is not used as a feature, "
        "since node 'b' has 'large', which is not a number: write a number there, or words everywhere "
        "if the values are categories"
    )
    assert data.x.tolist() == [[1], [0], [0]]


def test_a_feature_that_only_some_nodes_have(graph):
    graph.nodes["a"]["age"] = 3
    with pytest.raises(
        DataError, match="node 'b' of the NetworkX graph has no feature 'age', the first of 2 such nodes: give"
    ):
        from_networkx(graph, label="kind")


def test_a_graph_without_attributes_has_no_features():
    graph = networkx.Graph([("a", "b"), ("b", "c")])
    networkx.set_node_attributes(graph, {"a": "x", "b": "y", "c": "x"}, "kind")
    data = from_networkx(graph, label="kind")
    assert data.x is None
    assert data.num_nodes == 3
    assert from_networkx(graph, label="kind", features=[]).x is None


def test_a_graph_without_edges(tmp_path):
    graph = networkx.Graph()
    graph.add_node("a", kind="x", size=1.0)
    graph.add_node("b", kind="y", size=2.0)
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    for data in (from_networkx(graph, label="kind"), from_graphml(tmp_path / "g.graphml", label="kind")):
        assert data.edge_index.shape == (2, 0)


def test_vectors_of_different_length(graph):
    graph.nodes["b"]["size"] = [1, 2]
    with pytest.raises(DataError, match=r"feature 'size' of node 'b' .* has another length"):
        from_networkx(graph, label="kind")


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("heavy", "edge from 'b' to 'c' of the NetworkX graph has the weight 'heavy', which is not a number"),
        ([1, 2], r"edge from 'b' to 'c' of the NetworkX graph has the weight \[1, 2\], which is not a number"),
        (-0.25, r"the weight of the edge from 'b' to 'c' is negative \(-0.25\)"),
        (float("nan"), "the weight of the edge from 'b' to 'c' is not finite"),
    ],
)
def test_a_faulty_weight_is_named_by_the_ends_of_its_edge(graph, weight, message):
    graph.add_edge("b", "c", weight=weight)
    with pytest.raises(DataError, match=message):
        from_networkx(graph, label="kind")


def test_an_empty_graph():
    with pytest.raises(DataError, match="has no nodes"):
        from_networkx(networkx.Graph(), label="kind")


@pytest.mark.parametrize("content", ["", "<graphml><graph>", "<html></html>", "a,b,c"])
def test_a_file_that_is_no_graphml(tmp_path, content):
    (tmp_path / "g.graphml").write_text(content)
    with pytest.raises(DataError, match=r"g\.graphml is not a valid GraphML file"):
        from_graphml(tmp_path / "g.graphml", label="kind")


def test_no_file(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        from_graphml(tmp_path / "g.graphml", label="kind")


def test_networkx_is_asked_for_by_name(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(UserError, match="pip install networkx"):
        from_graphml(tmp_path / "g.graphml", label="kind")


def test_edge_attributes_that_are_not_used_are_told(graph, tmp_path):
    path = tmp_path / "g.graphml"
    for source, target in graph.edges:
        graph.edges[source, target].update(weight=1.0, since=2001, kind="road")
    networkx.write_graphml(graph, path)
    path.write_text(path.read_text().replace('<edge source="a"', '<edge id="e1" source="a"'))
    for read, given, where in ((from_networkx, graph, "the NetworkX graph"), (from_graphml, path, path)):
        with pytest.warns(DataWarning) as found:
            read(given, label="kind")
        assert [str(each.message) for each in found if "of the edges" in str(each.message)] == [
            f"of the edges in {where}, 'since' and 'kind' are not used: models use an attribute called weight only"
        ]


def test_edge_attributes_of_a_learned_graph_are_all_known(graph):
    for _, _, attributes in graph.edges(data=True):
        attributes.update(weight=0.5, probability=0.5, given=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        from_networkx(graph, label="kind", features=["size"])


def test_an_attribute_that_is_named_twice(graph):
    with pytest.raises(DataError, match="the features name the attribute 'size' of the NetworkX graph twice: name it"):
        from_networkx(graph, label="kind", features=["size", "flag", "Size"])
