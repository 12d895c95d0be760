"""Numbers that know how many decimals they are shown with."""

import json

import pytest

from gumbel_mpnn.paper import published
from gumbel_mpnn.report import Table
from gumbel_mpnn.report.table import Fixed


@pytest.mark.parametrize(
    ("text", "value", "digits"), [("0.80", 0.8, 2), ("-0.05", -0.05, 2), ("100.00", 100, 2), ("13.67", 13.67, 2)]
)
def test_as_many_decimals_as_are_written(text, value, digits):
    number = Fixed.parse(text)
    assert (number, number.digits) == (value, digits)


def test_a_table_shows_them_as_they_are_written_and_keeps_their_value():
    table = Table(["a"], [[Fixed(0.8, 2)], [0.8]], digits=4)
    assert table.render("markdown").splitlines()[2:] == ["| 0.80 |", "| 0.8000 |"]
    assert table.render("csv").splitlines()[1:] == ["0.8", "0.8"]
    assert json.loads(table.render("json")) == [{"a": 0.8}, {"a": 0.8}]


def test_they_are_floats():
    assert Fixed(0.1, 1) + 1 == 1.1
    assert type(Fixed(0.1, 1) + 1) is float


def test_the_papers_numbers_are_shown_as_printed():
    assert published("measures")["pubmed"]["edge_homophily"].digits == 2
    assert published("accuracy")["cora"]["gumbel-mpnn"][1].digits == 2
    assert published("degree")["ogbn-arxiv"]["degree_mean"].digits == 2
