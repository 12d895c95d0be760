"""What columns of words hold."""

import numpy as np
import pytest

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.column_kinds import Kind, check_no_dates, column_of, kind_of
from gumbel_mpnn.data.feature_columns import FeatureColumn

SEVERAL = [f"v{k % 20}" for k in range(100)]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["true", "false", "true"], Kind.boolean),
        (["yes", "no"], Kind.boolean),
        (["yes", "yes"], Kind.boolean),
        (["yes", "no", ""], Kind.category),
        (["a", "b"] * 5, Kind.category),
        (["a", "b"] * 4, Kind.text),
        (["a", "b"] * 5 + [""] * 9, Kind.category),
        (SEVERAL, Kind.category),
        (["v20", *SEVERAL, *SEVERAL], Kind.text),
        (["", ""], Kind.text),
        ([], Kind.text),
    ],
)
def test_kinds(words, kind):
    assert kind_of(words) is kind


def test_a_column_that_is_named_may_have_more_categories():
    assert kind_of(["a", "b"] * 2, named=True) is Kind.category
    assert kind_of(["a", "b", "c"], named=True) is Kind.text
    hundred = [f"v{k % 100}" for k in range(200)]
    assert kind_of(hundred, named=True) is Kind.category
    assert kind_of([*hundred, "v100", "v100"], named=True) is Kind.text


@pytest.mark.parametrize(
    "date",
    [
        "2024-01-31",
        "2024-1-3",
        "2024/01/31",
        "2024-01-31T12:30:00Z",
        "2024-01-31 12:30:00.125+01:00",
        "31.01.2024",
        "31-01-2024",
        "1/31/24",
        "31/1/2024",
        "01/02/2020",
        "1.3.20",
        "2020-01",
        "2020/1",
        "01/2020",
        "31 Jan 2024",
        "January 31, 2024",
        "12:30",
        "12:30:15 PM",
    ],
)
def test_dates_and_times(date):
    assert kind_of([date] * 10) is Kind.date
    assert kind_of([date] * 9 + ["", "unknown"]) is Kind.date
    assert kind_of([date] * 8 + ["unknown"] * 2) is Kind.date
    assert kind_of([date] * 7 + ["unknown"] * 3) is Kind.category


@pytest.mark.parametrize(
    "other",
    ["2024-13-01", "1.2.3", "1-2", "1010-11", "2020-13", "1-2020", "Maya 3, 2024 x", "10.0.0.1", "12:75", "1/2"],
)
def test_what_is_no_date(other):
    assert kind_of([other] * 10) is Kind.category


@pytest.mark.parametrize("numbers", [[20200301, 19991231], [20200229.0, np.nan], [19000101], [21001231]])
def test_dates_that_are_written_as_numbers(numbers):
    with pytest.raises(DataError) as caught:
        check_no_dates("column", "nodes.csv", "since", np.array(numbers))
    assert str(caught.value).startswith(
        f"the column 'since' of nodes.csv holds dates or times such as '{int(numbers[0])}', which are not features"
    )


@pytest.mark.parametrize(
    "numbers",
    [[20200301, 20200230], [20200301, 0], [20200301, np.inf], [20200301.5], [18991231], [21010101], [np.nan], []],
)
def test_numbers_that_are_no_dates(numbers):
    check_no_dates("column", "nodes.csv", "since", np.array(numbers))


def test_categories_are_sorted_and_missing_values_are_the_last():
    assert column_of("f", ["b", "", "a", "b"], Kind.category) == FeatureColumn("f", ("a", "b", ""))
    assert column_of("f", ["b", "a"], Kind.category) == FeatureColumn("f", ("a", "b"))
    assert column_of("f", ["yes", "no"], Kind.boolean) == FeatureColumn("f")
