"""Features from the attributes of nodes."""

import datetime
import math
import warnings

import networkx
import numpy as np
import pytest

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn.data import FeatureColumn, from_graphml, from_networkx


def graph_of(**attributes):
    """A path of nodes 0, 1, … with these attributes; None leaves one out."""
    graph = networkx.path_graph(len(next(iter(attributes.values()))))
    for name, values in attributes.items():
        for node, value in enumerate(values):
            if value is not None:
                graph.nodes[node][name] = value
    return graph


def quietly(graph, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return from_networkx(graph, **options)


def test_words_booleans_and_vectors():
    graph = graph_of(
        kind=["a", "b"] * 5,
        color=["red", "red", "green", "green", "red"] * 2,
        place=[[1, 2], [3, 4]] * 5,
        wild=["Yes", "no"] * 5,
        big=[True, None] * 5,
    )
    data = quietly(graph, label="kind")
    assert data.feature_columns == [
        FeatureColumn("color", ("green", "red")),
        FeatureColumn("place", width=2),
        FeatureColumn("wild"),
        FeatureColumn("big", ("true", "")),
    ]
    assert data.x[1:3].tolist() == [[0, 1, 3, 4, 0, 0, 1], [1, 0, 1, 2, 1, 1, 0]]
    assert data.label_name == "kind"


def test_missing_words_are_a_category_however_they_are_missing():
    data = quietly(graph_of(label=["a", "b"] * 4, color=["red", None, math.nan, "", "red", "red", "red", "red"]))
    assert data.feature_columns == [FeatureColumn("color", ("red", ""))]
    assert data.x[:4].tolist() == [[1, 0], [0, 1], [0, 1], [0, 1]]


def test_text_and_other_objects_are_left_out_with_one_warning():
    graph = graph_of(kind=["a", "b"] * 5, name=list("abcdefghij"), tags=[["x", "y"]] * 10)
    with pytest.warns(DataWarning) as told:
        data = from_networkx(graph, label="kind")
    (warning,) = told
    assert str(warning.message) == (
        "the attributes 'name' and 'tags' of the NetworkX graph hold text and are not used: a feature has numbers,"
        " booleans, or at most 20 different values, each at 5 nodes on average (100 and 2 if you name it in features="
        " or --features)"
    )
    assert data.feature_columns == []


@pytest.mark.parametrize("day", ["2020-01-31", datetime.date(2020, 1, 31)])
def test_dates_are_refused(day):
    with pytest.raises(DataError) as caught:
        from_networkx(graph_of(kind=["a", "b"], born=[day] * 2), label="kind")
    assert str(caught.value) == (
        "the attribute 'born' of the NetworkX graph holds dates or times such as '2020-01-31', which are not features:"
        " turn it into a number, such as days since a date, or leave it out by naming the features to use (features=,"
        " --features)"
    )


class TestColumnsOfAModel:
    columns = (FeatureColumn("color", ("green", "red")), FeatureColumn("place", width=2), FeatureColumn("wild"))

    def test_are_the_same_in_the_same_order(self, tmp_path):
        graph = graph_of(wild=["yes", "no"], place=[[1, 2], [3, 4]], color=["red", "green"], note=["?", "!"])
        data = quietly(graph, features=self.columns, label="kind")
        assert data.x.tolist() == [[0, 1, 1, 2, 1], [1, 0, 3, 4, 0]]
        assert data.feature_columns == list(self.columns)
        assert data.y is None

    def test_of_a_graphml_file(self, tmp_path):
        path = tmp_path / "g.graphml"
        networkx.write_graphml(graph_of(kind=["a", "b"] * 5, color=["red", "green"] * 5, wild=[True, False] * 5), path)
        data = from_graphml(path, label="KIND")
        assert data.feature_columns == [FeatureColumn("color", ("green", "red")), FeatureColumn("wild")]
        assert data.source_files["reader"] == "graphml"
        assert data.source_files["path"] == str(path)
        assert data.source_files["label"] == "kind"
        again = from_graphml(path, features=data.feature_columns)
        assert again.x.tolist() == data.x.tolist()

    def test_with_other_categories(self):
        graph = graph_of(color=["red", "blue", None, 5])
        with pytest.warns(DataWarning) as told:
            data = from_networkx(graph, features=self.columns[:1])
        (warning,) = told
        assert str(warning.message) == (
            "the attribute 'color' of the NetworkX graph has 3 values that the model was not trained on, such as"
            " 'blue', at 3 nodes: their features are 0"
        )
        assert data.x.tolist() == [[0, 1], [0, 0], [0, 0], [0, 0]]

    @pytest.mark.parametrize(
        ("attributes", "message"),
        [
            (
                {"color": ["red"], "wild": ["no"]},
                "no node of the NetworkX graph has the attribute 'place', which the model was trained on",
            ),
            (
                {"color": ["red"], "wild": ["no"], "place": [[1, 2, 3]]},
                "the attribute 'place' of the NetworkX graph has 3 numbers per node, but the model was trained on 2:"
                " give every node as many, in the format of its data",
            ),
            (
                {"color": ["red"], "wild": ["perhaps"], "place": [[1, 2]]},
                "feature 'wild' of node 0 of the NetworkX graph is 'perhaps', not a number",
            ),
        ],
    )
    def test_that_cannot_be_had(self, attributes, message):
        with pytest.raises(DataError) as caught:
            from_networkx(graph_of(**attributes), features=self.columns)
        assert str(caught.value) == message


def test_dates_that_are_written_as_numbers():
    with pytest.raises(DataError, match="attribute 'since' of the NetworkX graph holds dates or times such as '2020"):
        from_networkx(graph_of(kind=["a", "b"], since=[20200301, 19991231]), label="kind")
    assert from_networkx(graph_of(kind=["a", "b"], since=[20200301, 0]), label="kind").x.shape == (2, 1)


@pytest.mark.parametrize("features", [None, ["f"]])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1 + 2j, r"the attribute 'f' of .* holds complex numbers such as \(1\+2j\), which are not features"),
        (np.array([1j]), "the attribute 'f' of .* holds complex numbers"),
        (datetime.timedelta(1), "the attribute 'f' of .* holds dates or times such as '1 day, 0:00:00'"),
        (np.timedelta64(3, "Y"), "the attribute 'f' of .* holds dates or times such as '3 years'"),
        (np.timedelta64("NaT"), "the attribute 'f' of .* holds dates or times such as 'NaT'"),
    ],
)
def test_complex_numbers_and_durations_are_refused_by_name(value, message, features):
    graph = networkx.path_graph(4)
    for node in graph:
        graph.nodes[node].update(f=value, label="ab"[node % 2])
    with pytest.raises(DataError, match=message):
        from_networkx(graph, "label", features)
