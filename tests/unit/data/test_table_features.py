"""Features from the columns of a CSV file."""

import warnings

import pytest
import torch
from torch_geometric.data import Batch

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn.data import FeatureColumn, from_csv, from_graphml, save_graph
from gumbel_mpnn.training import data_hash

COLORS = ["red", "green", "", "red", "green"] * 4
"""Eight nodes each of two colors, and four without."""


def write(path, **columns):
    """A file of nodes n0, n1, … with these columns."""
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(["id", *columns]), *(",".join([f"n{k}", *map(str, row)]) for k, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def nodes(tmp_path):
    def of(**columns):
        return write(tmp_path / "nodes.csv", kind=["a", "b"] * 10, **columns)

    return of


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return from_csv(*arguments, **options)


def test_numbers_booleans_and_categories_in_the_order_of_the_file(nodes):
    path = nodes(color=COLORS, size=range(20), wild=["Yes", "no"] * 10, big=["True", "false"] * 10)
    data = quietly(path, label="kind")
    assert data.feature_columns == [
        FeatureColumn("color", ("green", "red", "")),
        FeatureColumn("size"),
        FeatureColumn("wild"),
        FeatureColumn("big"),
    ]
    assert data.x[:3].tolist() == [[0, 1, 0, 0, 1, 1], [1, 0, 0, 1, 0, 0], [0, 0, 1, 2, 1, 1]]
    assert sum(column.width for column in data.feature_columns) == data.num_features == 6
    assert data.label_name == "kind"


def test_booleans_with_gaps_are_categories(nodes):
    data = quietly(nodes(wild=["TRUE", "", "false", "true"] * 5), label="kind")
    assert data.feature_columns == [FeatureColumn("wild", ("false", "true", ""))]
    assert data.x[:4].tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]


def test_text_is_left_out_with_one_warning(nodes):
    path = nodes(name=[f"name {k}" for k in range(20)], size=range(20), note=["x" * k for k in range(20)])
    with pytest.warns(DataWarning) as told:
        data = from_csv(path, label="kind")
    (warning,) = told
    assert str(warning.message) == (
        f"the columns 'name' and 'note' of {path} hold text and are not used: a feature has numbers, booleans, or at"
        " most 20 different values, each at 5 nodes on average (100 and 2 if you name it in features= or --features)"
    )
    assert warning.filename == __file__
    assert data.feature_columns == [FeatureColumn("size")]


def test_dates_are_refused(nodes):
    path = nodes(born=[f"2020-01-{k + 1:02}" for k in range(20)], size=range(20))
    sentence = (
        f"the column 'born' of {path} holds dates or times such as '2020-01-01', which are not features: turn it into a"
        " number, such as days since a date, or leave it out by naming the features to use (features=, --features)"
    )
    for options in ({}, {"features": ["born"]}):
        with pytest.raises(DataError) as caught:
            from_csv(path, label="kind", **options)
        assert str(caught.value) == sentence
    assert quietly(path, label="kind", features=["size"]).x.shape == (20, 1)
    assert quietly(path, label="kind", features=False).x is None


def test_a_column_that_is_named_may_have_more_categories(nodes):
    path = nodes(city=[f"c{k // 2}" for k in range(20)])
    with pytest.warns(DataWarning, match="column 'city' of .* holds text and is not used"):
        assert from_csv(path, label="kind").x is None
    data = quietly(path, label="kind", features=["City"])
    assert data.feature_columns == [FeatureColumn("city", tuple(f"c{k}" for k in range(10)))]
    assert data.x.sum(0).tolist() == [2] * 10


def test_columns_that_are_named_and_cannot_be_used(nodes):
    path = nodes(name=[f"name {k}" for k in range(20)], size=[*range(19), "large"])
    with pytest.raises(DataError) as caught:
        from_csv(path, label="kind", features=["name"])
    assert str(caught.value) == (
        f"feature column 'name' of {path} has values that are not numbers, and 20 different ones at 20 nodes:"
        " categories are at most 100, each at 2 nodes on average, so group the values or leave it out"
    )
    with pytest.raises(DataError) as caught:
        from_csv(path, label="kind", features=["size"])
    assert str(caught.value) == (
        f"feature column 'size' of {path} has values that are not numbers, as 'large' in line 21: correct them or leave"
        " it out"
    )


def test_dates_that_are_written_as_numbers(nodes):
    path = nodes(since=[20200301 + k for k in range(20)])
    for features in (None, ["since"]):
        with pytest.raises(DataError, match=r"the column 'since' of .* holds dates or times such as '20200301'"):
            from_csv(path, label="kind", features=features)
    assert from_csv(path, features=[FeatureColumn("since")]).x.shape == (20, 1)


class TestColumnsOfAModel:
    @pytest.fixture
    def trained(self, nodes):
        path = nodes(size=range(20), color=COLORS, wild=["yes", "no"] * 10)
        return quietly(path, label="kind").feature_columns

    def test_are_the_same_in_the_same_order(self, trained, tmp_path):
        path = write(tmp_path / "new.csv", Wild=[1, 0], note=["?", "!"], color=["green", ""], size=[7, 8.5])
        data = quietly(path, features=trained)
        assert data.x.tolist() == [[7, 1, 0, 0, 1], [8.5, 0, 0, 1, 0]]
        assert data.feature_columns == trained
        assert (data.y, data.get("label_name")) == (None, None)

    def test_have_a_label_or_none(self, trained, tmp_path):
        path = write(tmp_path / "new.csv", color=["red"] * 2, size=[7, 8], wild=["no", "yes"], kind=["b", "a"])
        assert quietly(path, label="kind", features=trained).class_names == ["a", "b"]
        assert quietly(path, label="other", features=trained).y is None

    def test_that_are_missing(self, trained, tmp_path):
        path = write(tmp_path / "new.csv", color=["red"], size=[7])
        with pytest.raises(DataError) as caught:
            from_csv(path, features=trained)
        assert str(caught.value) == f"{path} has no column 'wild', which the model was trained on"

    def test_with_other_categories(self, trained, tmp_path):
        path = write(tmp_path / "new.csv", color=["blue", "1", "red"], size=[7, 8, 9], wild=["no"] * 3)
        with pytest.warns(DataWarning) as told:
            data = from_csv(path, features=trained)
        (warning,) = told
        assert str(warning.message) == (
            f"the column 'color' of {path} has 2 values that the model was not trained on, such as 'blue', at 2 nodes:"
            " their features are 0"
        )
        assert data.x[:, 1:4].tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0]]

    def test_with_another_category_at_several_nodes(self, trained, tmp_path):
        path = write(tmp_path / "new.csv", color=["blue"] * 3 + ["red"], size=range(4), wild=["no"] * 4)
        with pytest.warns(DataWarning) as told:
            from_csv(path, features=trained)
        (warning,) = told
        assert str(warning.message) == (
            f"the column 'color' of {path} has 1 value that the model was not trained on, 'blue', at 3 nodes: its"
            " features are 0"
        )

    def test_with_gaps_that_are_no_category(self, tmp_path):
        columns = [FeatureColumn("a", ("x",)), FeatureColumn("b", ("y",))]
        path = write(tmp_path / "new.csv", a=["x", ""], b=["z", "y"])
        with pytest.warns(DataWarning) as told:
            from_csv(path, features=columns)
        (warning,) = told
        assert str(warning.message) == (
            f"the columns 'a' and 'b' of {path} have 2 values that the model was not trained on, such as a missing one,"
            " at 2 nodes: their features are 0"
        )

    def test_that_are_read_as_words_even_if_they_look_like_numbers(self, tmp_path):
        path = write(tmp_path / "new.csv", code=["01", "True"])
        assert quietly(path, features=[FeatureColumn("code", ("01", "true"))]).x.tolist() == [[1, 0], [0, 1]]

    @pytest.mark.parametrize(
        ("column", "cells", "message"),
        [
            (
                FeatureColumn("f"),
                ["a", "b"],
                "feature column 'f' of {} has values that are not numbers, as 'a' in line 2, but the model was trained"
                " on numbers or booleans: write them in the same way",
            ),
            (
                FeatureColumn("f"),
                ["yes", "", "no", ""],
                "line 3 of {} has an empty cell as the feature 'f' of the node 'n1', the first of 2 such nodes: the"
                " model was trained on numbers or booleans without gaps, so fill it",
            ),
            (
                FeatureColumn("f"),
                ["yes", "", "perhaps"],
                "feature column 'f' of {} has values that are not numbers, as 'perhaps' in line 4, but the model was"
                " trained on numbers or booleans: write them in the same way",
            ),
            (
                FeatureColumn("f"),
                ["1", "b"],
                "feature column 'f' of {} has values that are not numbers, as 'b' in line 3: correct them or leave it"
                " out",
            ),
            (
                FeatureColumn("f", width=3),
                [1, 2],
                "the column 'f' of {} has 1 number per node, but the model was trained on 3: give every node as many,"
                " in the format of its data",
            ),
            (
                FeatureColumn("f", width=3),
                ["yes", "no"],
                "the column 'f' of {} has 1 number per node, but the model was trained on 3: give every node as many,"
                " in the format of its data",
            ),
            (
                FeatureColumn("f"),
                [1, ""],
                "line 3 of {} has no number as the feature 'f' of the node 'n1': give every node finite features, or"
                " name the feature columns to use",
            ),
        ],
    )
    def test_with_other_values(self, tmp_path, column, cells, message):
        path = write(tmp_path / "new.csv", f=cells)
        with pytest.raises(DataError) as caught:
            from_csv(path, features=[column])
        assert str(caught.value) == message.format(path)


def test_what_a_graph_keeps_of_its_files_disturbs_nothing(nodes, tmp_path, monkeypatch):
    path = nodes(color=COLORS, size=range(20))
    (tmp_path / "edges.csv").write_text("a,b\nn0,n1\nn1,n2\n")
    monkeypatch.chdir(tmp_path)
    data = quietly("nodes.csv", "edges.csv", label="kind", features=["size", "color"])
    assert data.source_files == {
        "reader": "csv",
        "nodes": str(path),
        "edges": str(tmp_path / "edges.csv"),
        "path": None,
        "label": "kind",
        "id": "id",
        "source": None,
        "target": None,
        "features": ["size", "color"],
        "undirected": True,
        "as_listed": False,
    }
    bare = data.clone()
    for name in ("label_name", "source_files"):
        del bare[name]
    assert data_hash(data) == data_hash(bare)
    for same in (data.clone(), data.to("cpu"), data.subgraph(torch.arange(10))):
        assert same.feature_columns == data.feature_columns
        assert same.source_files == data.source_files
    save_graph(data, tmp_path / "g.graphml")
    other = from_graphml(tmp_path / "g.graphml")
    assert other.num_features == data.num_features
    assert other.label_name == "label"
    batch = Batch.from_data_list([data, other])
    assert batch.to_data_list()[0].feature_columns == data.feature_columns
    assert batch.to_data_list()[1].source_files["path"] == other.source_files["path"]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("{}+{}j", "holds complex numbers such as 0\\+0j"),
        ("({}-1.5e3j)", "holds complex numbers such as \\(0-1.5e3j\\)"),
        ("{} days 00:0{}:00", "holds dates or times such as '0 days 00:00:00'"),
    ],
)
def test_columns_of_complex_numbers_and_durations_are_refused(tmp_path, cell, message):
    rows = "".join(f"{k},{'ab'[k % 2]},{cell.format(k % 2, k % 2)}\n" for k in range(12))
    (tmp_path / "nodes.csv").write_text("id,class,f\n" + rows)
    for features in (None, ["f"]):
        with pytest.raises(DataError, match=message):
            from_csv(tmp_path / "nodes.csv", label="class", features=features)
