"""The five ways a table is printed, each worked out by hand."""

import json
from textwrap import dedent

import pytest

from gumbel_mpnn.report import FORMATS, Table

TABLE = Table(
    columns=["name", "n", "score"],
    rows=[["a_b & c", 3, 1.005], ["50 % | ±", 12, None], [None, 7, 22.0]],
    headings={"n": "runs"},
)


def block(text):
    return dedent(text).strip("\n")


def test_text():
    assert TABLE.render("text") == block(
        """
        name      runs  score
        ────────  ────  ─────
        a_b & c      3   1.00
        50 % | ±    12      –
        –            7  22.00
        """
    )


def test_markdown():
    assert TABLE.render("markdown") == block(
        r"""
        | name | runs | score |
        | --- | --: | --: |
        | a_b & c | 3 | 1.00 |
        | 50 % \| ± | 12 | – |
        | – | 7 | 22.00 |
        """
    )


def test_latex():
    assert TABLE.render("latex") == block(
        r"""
        \begin{tabular}{lrr}
        \toprule
        name & runs & score \\
        \midrule
        a\_b \& c & 3 & 1.00 \\
        50 \% \textbar{} $\pm$ & 12 & \textendash{} \\
        \textendash{} & 7 & 22.00 \\
        \bottomrule
        \end{tabular}
        """
    )


def test_csv_keeps_the_columns_names_and_all_digits():
    assert TABLE.render("csv") == "name,n,score\na_b & c,3,1.005\n50 % | ±,12,\n,7,22.0"


def test_csv_quotes_what_needs_it():
    assert Table(["a", "b"], [['say "x", y', 1]]).render("csv") == 'a,b\n"say ""x"", y",1'


def test_json_keeps_the_columns_names_and_all_digits():
    assert json.loads(TABLE.render("json")) == [
        {"name": "a_b & c", "n": 3, "score": 1.005},
        {"name": "50 % | ±", "n": 12, "score": None},
        {"name": None, "n": 7, "score": 22.0},
    ]


def test_shares_are_in_per_cent_except_in_json_which_says_so():
    table = Table(["n", "test"], [[3, 0.29], [1, None]], shares=("test",))
    assert json.loads(table.render("json")) == [
        {"n": 3, "test": 0.29, "unit": "share"},
        {"n": 1, "test": None, "unit": "share"},
    ]
    assert [line.split() for line in table.render("text").splitlines()[2:]] == [["3", "29.00"], ["1", "–"]]
    assert table.render("csv") == f"n,test\n3,{100 * 0.29}\n1,"
    assert "| 3 | 29.00 |" in table.render("markdown")
    assert r"3 & 29.00 \\" in table.render("latex")


def test_the_number_of_digits():
    assert Table(["x"], [[1.23456]], digits=4).render("text").splitlines()[-1] == "1.2346"


def test_whole_numbers_are_printed_as_they_are():
    assert Table(["x"], [[10_000]]).render("text").splitlines()[-1] == "10000"


@pytest.mark.parametrize(
    ("cells", "numeric"),
    [([1, 2.5], True), ([1, None], True), (["1", "2"], False), ([1, "n/a"], False), ([None, None], False), ([], False)],
    ids=str,
)
def test_a_column_of_numbers_stands_right(cells, numeric):
    table = Table(["column"], [[cell] for cell in cells])
    assert table.render("markdown").splitlines()[1] == ("| --: |" if numeric else "| --- |")
    assert table.render("latex").splitlines()[0] == rf"\begin{{tabular}}{{{'r' if numeric else 'l'}}}"
    for line, cell in zip(table.render("text").splitlines()[2:], cells, strict=True):
        assert len(line) == (6 if numeric else len("–" if cell is None else str(cell)))


def test_a_table_without_rows():
    table = Table(["a", "bb"], [])
    assert table.render("text") == "a  bb\n─  ──"
    assert table.render("markdown") == "| a | bb |\n| --- | --- |"
    assert table.render("csv") == "a,bb"
    assert table.render("json") == "[]"


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_ends_with_a_newline(form):
    assert not TABLE.render(form).endswith("\n")


def test_a_row_of_another_length_is_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        Table(["a", "b"], [[1]]).render("json")


def test_small_numbers_are_kept_where_they_are_asked_for():
    rows = [[2.6e-8], [-4e-5], [0.0], [6e-5], [None], [3]]
    kept = Table(["gap"], rows, digits=4, keep_small=True)
    assert kept.render("csv").splitlines()[1] == "2.6e-08"
    assert [line.strip() for line in kept.render("text").splitlines()[2:]] == [
        "2.6e-08",
        "-4.0e-05",
        "0.0000",
        "0.0001",
        "–",
        "3",
    ]
    assert Table(["gap"], rows, digits=4).render("text").splitlines()[2].strip() == "0.0000"


@pytest.mark.parametrize("format", ["text", "markdown", "latex"])
def test_a_column_is_looked_through_once_however_long_it_is(monkeypatch, format):
    looks, is_numeric = [], Table._is_numeric
    monkeypatch.setattr(Table, "_is_numeric", lambda self, column: looks.append(column) or is_numeric(self, column))
    Table(["a", "b"], [[k, str(k)] for k in range(20)]).render(format)
    assert looks == [0, 1]
