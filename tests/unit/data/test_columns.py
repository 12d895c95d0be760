"""Features and classes from the columns of a table."""

import warnings

import pytest

from gumbel_mpnn.data import FeatureColumn, from_csv
from gumbel_mpnn.data.columns import classes_of, described, listed
from gumbel_mpnn.util.errors import DataError, DataWarning

COLORS = ["red", "green", "", "red", "green"] * 4
"""Eight nodes each of two colors, and four without."""
SEVERAL = [f"v{k % 20}" for k in range(100)]
HUNDRED = [f"v{k % 100}" for k in range(200)]


def write(path, **columns):
    """A file of nodes n0, n1, … with these columns."""
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(["id", *columns]), *(",".join([f"n{k}", *map(str, row)]) for k, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def nodes(tmp_path):
    return lambda **columns: write(tmp_path / "nodes.csv", kind=["a", "b"] * 10, **columns)


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return from_csv(*arguments, **options)


def warning_of(*arguments, **options):
    with pytest.warns(DataWarning) as told:
        data = from_csv(*arguments, **options)
    (warning,) = told
    return str(warning.message), data


class TestDescribed:
    @pytest.mark.parametrize(
        ("words", "categories"),
        [
            (["true", "false", "true"], None),
            (["yes", "yes"], None),
            (["yes", "no", ""], ("no", "yes", "")),
            (["b", "a"] * 5, ("a", "b")),
            (["a", "b"] * 5 + [""] * 9, ("a", "b", "")),
            (SEVERAL, tuple(sorted(set(SEVERAL)))),
        ],
    )
    def test_booleans_and_categories(self, words, categories):
        assert described("f", words) == FeatureColumn("f", categories)

    @pytest.mark.parametrize(
        "words",
        [["a", "b"] * 4, ["v20", *SEVERAL, *SEVERAL], ["", ""], [], ["2024-01-31"] * 10, ["2024-01-31 12:30"] * 10],
        ids=["few", "many", "missing", "none", "dates", "times"],
    )
    def test_text_and_dates(self, words):
        assert described("f", words) is None


class TestAll:
    def test_numbers_booleans_and_categories_in_the_order_of_the_file(self, nodes):
        path = nodes(color=COLORS, size=range(20), wild=["Yes", "no"] * 10, big=["True", "false"] * 10)
        data = quietly(path, label="kind")
        assert data.feature_columns == [
            FeatureColumn("color", ("green", "red", "")),
            FeatureColumn("size"),
            FeatureColumn("wild"),
            FeatureColumn("big"),
        ]
        assert data.x[:3].tolist() == [[0, 1, 0, 0, 1, 1], [1, 0, 0, 1, 0, 0], [0, 0, 1, 2, 1, 1]]

    def test_text_and_dates_are_left_out_with_one_warning(self, nodes):
        born = [f"2020-01-0{k % 2 + 1}" for k in range(20)]
        path = nodes(name=[f"name {k}" for k in range(20)], size=range(20), born=born)
        message, data = warning_of(path, label="kind")
        assert message.startswith(
            f"column 'name' and 'born' of {path} is not used, since text and dates are no features"
        )
        assert data.feature_columns == [FeatureColumn("size")]

    def test_numbers_beside_other_things_are_left_out_with_a_warning(self, nodes):
        path = nodes(size=[*range(18), "", "long"])
        message, data = warning_of(path, label="kind")
        assert message == (
            f"the column 'size' cannot be a feature, since line 21 of {path} has 'long', which is not a number: write a"
            " number there, or words everywhere if the values are categories"
        )
        assert data.x is None
        with pytest.raises(DataError, match="the column 'size' cannot be a feature, since line 21 of"):
            from_csv(path, label="kind", features=["size"])

    @pytest.mark.parametrize("cell", ["", "nan", "inf"])
    def test_every_node_needs_a_finite_number(self, nodes, cell):
        path = nodes(size=[0, cell, cell, *range(17)])
        with pytest.raises(DataError) as caught:
            from_csv(path, label="kind")
        assert str(caught.value) == (
            f"line 3 of {path} has no finite number as feature 'size', the first of 2 such nodes: give every node"
            " finite features, or name the features to use"
        )


class TestNamed:
    def test_more_categories(self, nodes):
        data = quietly(nodes(city=[f"c{k // 2}" for k in range(20)]), label="kind", features=["City"])
        assert data.feature_columns == [FeatureColumn("city", tuple(f"c{k}" for k in range(10)))]
        assert data.x.sum(0).tolist() == [2] * 10

    def test_text_cannot_be_used(self, nodes):
        path = nodes(f=[f"name {k}" for k in range(20)])
        with pytest.raises(DataError) as caught:
            from_csv(path, label="kind", features=["f"])
        assert str(caught.value) == (
            f"column 'f' of {path} cannot be used, since text and dates are no features: a feature has numbers,"
            " booleans, or at most 20 different words, each at 5 nodes on average (100 and 2 if you name it"
            " in features= or --features)"
        )


class TestTrained:
    @pytest.fixture
    def trained(self, nodes):
        path = nodes(size=range(20), color=COLORS, wild=["yes", "no"] * 10)
        return quietly(path, label="kind").feature_columns

    def test_the_same_in_the_same_order(self, trained, tmp_path):
        path = write(tmp_path / "new.csv", Wild=[1, 0], note=["?", "!"], color=["green", ""], size=[7, 8.5])
        data = quietly(path, features=trained)
        assert data.x.tolist() == [[7, 1, 0, 0, 1], [8.5, 0, 0, 1, 0]]
        assert data.feature_columns == trained
        assert (data.y, data.get("label_name")) == (None, None)

    def test_with_a_label_or_none(self, trained, tmp_path):
        path = write(tmp_path / "new.csv", color=["red"] * 2, size=[7, 8], wild=["no", "yes"], kind=["b", "a"])
        assert quietly(path, label="kind", features=trained).class_names == ["a", "b"]
        assert quietly(path, label="other", features=trained).y is None

    def test_words_that_look_like_numbers(self, tmp_path):
        path = write(tmp_path / "new.csv", code=["01", "True"])
        assert quietly(path, features=[FeatureColumn("code", ("01", "true"))]).x.tolist() == [[1, 0], [0, 1]]

    @pytest.mark.parametrize(
        ("cells", "told"), [(["blue", "1", "x"], "'blue', at 2 nodes"), (["", "x", "x"], "a missing one, at 1 node")]
    )
    def test_other_categories_are_zeros(self, tmp_path, cells, told):
        path = write(tmp_path / "new.csv", f=cells)
        message, data = warning_of(path, features=[FeatureColumn("f", ("x",))])
        assert message == (
            f"the column 'f' of {path} has values that the model was not trained on, such as {told}: their features"
            " are 0"
        )
        assert data.x[:, 0].tolist() == [float(cell == "x") for cell in cells]

    @pytest.mark.parametrize(
        ("cells", "message"),
        [
            (["a", "b"], "line 2 of {} has 'a' as feature 'f', but the model was trained on numbers or booleans"),
            (["yes", "", "no"], "line 3 of {} has no value as feature 'f', but the model was trained on numbers"),
            (["yes", "perhaps"], "line 3 of {} has 'perhaps' as feature 'f', but the model was trained on"),
            (["1", "b"], "line 3 of {} has 'b' as feature 'f', but the model was trained on numbers or booleans"),
            ([1, ""], "line 3 of {} has no finite number as feature 'f': give every node finite features"),
            (None, "{} has no column 'f', which the model was trained on"),
        ],
    )
    def test_what_cannot_be_used(self, tmp_path, cells, message):
        path = write(tmp_path / "new.csv", **({"g": [1]} if cells is None else {"f": cells}))
        with pytest.raises(DataError) as caught:
            from_csv(path, features=[FeatureColumn("f")])
        assert str(caught.value).startswith(message.format(path))


class TestClasses:
    @pytest.mark.parametrize(
        ("labels", "names", "numbers"),
        [
            (["b", "a", "", "b"], ["a", "b"], [1, 0, -1, 1]),
            (["10", "9", "10"], ["9", "10"], [1, 0, 1]),
            (["10", "x"], ["10", "x"], [0, 1]),
        ],
    )
    def test_names_are_sorted_as_numbers_if_they_are(self, labels, names, numbers):
        y, class_names = classes_of(labels, range(4), "f")
        assert (y.tolist(), class_names) == (numbers, names)

    def test_decimals_are_told(self):
        with pytest.warns(DataWarning, match=r"of f are decimals like 2\.0: each value is .* a class, 2 in total"):
            assert classes_of(["10.0", "2.0", ""], range(3), "f")[1] == ["2.0", "10.0"]

    def test_a_word_for_missing_is_a_class_and_told(self):
        with pytest.warns(DataWarning, match="label 'NA' in f is used as a class: if it means unlabelled, leave the"):
            assert classes_of(["NA", "yes", ""], range(3), "f")[0].tolist() == [0, 1, -1]

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            (["", ""], "f: no node has a label: give at least the training nodes one"),
            (["0", "-1"], "f: node 'n1' has the label -1: leave the label of an unlabelled node empty"),
            (
                [f"{k / 7:.3f}" for k in range(30)],
                "f: the labels are 30 different numbers from 0.000 to",
            ),
        ],
    )
    def test_what_is_no_class(self, labels, message):
        with pytest.raises(DataError) as caught:
            classes_of(labels, [f"n{k}" for k in range(30)], "f")
        assert str(caught.value).startswith(message)


def test_many_names_are_counted():
    assert listed(["a"]) == "'a'"
    assert listed(["a", "b", "c"]) == "'a', 'b' and 'c'"
    assert listed("abcdefghijkl").endswith("'h', 'i', 'j' and 2 more")
