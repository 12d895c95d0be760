"""Columns that became features."""

import json

import pytest
import torch
from torch_geometric.data import Batch, Data

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.feature_columns import FeatureColumn, as_trained, encode, feature_columns_of, listed, word


def test_the_width_is_that_of_the_categories():
    assert FeatureColumn("a").width == 1
    assert FeatureColumn("a", ("x", "y", "")).width == 3
    assert FeatureColumn("a", width=4).width == 4


@pytest.mark.parametrize("column", [FeatureColumn("a"), FeatureColumn("b", ("x", "")), FeatureColumn("c", width=3)])
def test_there_and_back_as_json(column):
    assert FeatureColumn.from_dict(json.loads(json.dumps(column.to_dict()))) == column


def test_words_in_features():
    assert encode(FeatureColumn("a"), ["yes", "false", "true"]).tolist() == [[1], [0], [1]]
    assert encode(FeatureColumn("a", ("x", "y")), ["y", "z", "", "x"]).tolist() == [[0, 1], [0, 0], [0, 0], [1, 0]]
    assert encode(FeatureColumn("a", ("x", "")), ["", "x"]).tolist() == [[0, 1], [1, 0]]
    assert encode(FeatureColumn("a", ("x",)), []).shape == (0, 1)


def test_booleans_are_one_in_any_case():
    assert [word(value) for value in (True, "TRUE", " Yes ", "Maybe", 3)] == ["true", "true", "yes", "Maybe", "3"]


def test_names_and_columns_are_not_mixed():
    assert as_trained(["a", "b"]) is None
    assert as_trained([]) is None
    assert as_trained([FeatureColumn("a")]) == [FeatureColumn("a")]
    with pytest.raises(DataError, match=r"^features are names or FeatureColumns, but not both: give one kind$"):
        as_trained([FeatureColumn("a"), "b"])


def test_columns_of_a_batch():
    one, other = (Data(x=torch.ones(2, 1), feature_columns=[FeatureColumn(name)]) for name in "ab")
    assert feature_columns_of(one) == [FeatureColumn("a")]
    assert feature_columns_of(Batch.from_data_list([one, one])) == [FeatureColumn("a")]
    assert feature_columns_of(Batch.from_data_list([one, other])) is None
    assert feature_columns_of(Data()) is None
    assert feature_columns_of(Data(feature_columns=["a"])) is None


def test_many_names_are_counted():
    assert listed(["a"]) == "'a'"
    assert listed(["a", "b", "c"]) == "'a', 'b' and 'c'"
    assert listed("abcdefghijkl").endswith("'h', 'i', 'j' and 2 more")
