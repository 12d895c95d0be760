"""The table of measures: the paper's numbers, ours beside them, and what is apart."""

import pytest

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data import specs
from gumbel_mpnn.paper import analyses, measures, published
from gumbel_mpnn.paper.measures import MeasuresTable
from helpers import small_data

PAPER = published("measures")
COLUMNS = list(measures.TOLERANCE)


@pytest.fixture
def table(monkeypatch):
    """The table over a graph of our own, and what the paper says of it."""

    def make(paper=None, directed=False):
        calls = []

        def read(name, **options):
            calls.append((name, options))
            return small_data()

        monkeypatch.setattr(measures, "load", read)
        monkeypatch.setattr(measures, "published", lambda _: {} if paper is None else {"cora": paper})
        return MeasuresTable().rows("squirrel" if directed else "cora"), calls

    return make


def test_it_is_known_by_its_name():
    assert isinstance(analyses["measures"], MeasuresTable)
    assert MeasuresTable.datasets == measures.DATASETS
    assert set(measures.DATASETS) <= set(specs)


def test_every_number_of_the_paper_is_of_a_row_and_a_column():
    assert set(PAPER) == set(measures.DATASETS) - {"squirrel", "chameleon"}
    for name, values in PAPER.items():
        assert set(values) == {*COLUMNS, "num_nodes"}
        assert values["num_nodes"] == specs[name].num_nodes


@pytest.mark.parametrize(
    ("dataset", "measure", "value"),
    [
        ("cora", "std_per_class", 0.0957),
        ("ogbn-arxiv", "edge_homophily", 0.66),
        ("ogbn-arxiv", "degree_max", 13_161),
        ("roman-empire", "adjusted_homophily", -0.05),
        ("squirrel-unfiltered", "num_edges", 217_073),
        ("actor", "degree_mean", 7.0),
        ("amazon-ratings", "label_informativeness", 0.03),
    ],
)
def test_values_of_the_papers_tables(dataset, measure, value):
    assert PAPER[dataset][measure] == value


def test_ours_the_papers_and_the_difference(table):
    (ours,), _ = table()
    exact = {name: ours[name] for name in COLUMNS}
    paper = {**exact, "std_per_class": exact["std_per_class"] - 0.0002, "degree_max": exact["degree_max"] + 1}
    paper |= {"edge_homophily": exact["edge_homophily"] + 0.02}
    rows, _ = table(paper)
    assert [row["source"] for row in rows] == ["ours", "paper", "difference"]
    assert {name: rows[1][name] for name in COLUMNS} == paper
    difference = rows[2]
    assert difference["std_per_class"] == pytest.approx(0.0002)
    assert (difference["degree_max"], difference["num_edges"]) == (-1, 0)
    assert difference["apart"] == "edge homophily, max degree"
    assert set(MeasuresTable().headings) <= set(difference)


def test_with_directions_both_ways_of_counting(table):
    rows, calls = table(directed=True)
    assert [row["source"] for row in rows] == ["ours", "ours, as listed"]
    assert calls[1] == ("squirrel", {"root": None, "features": False, "directed": True})
    assert rows[1]["num_edges"] == small_data().num_edges > rows[0]["num_edges"]
    assert (rows[1]["std_per_class"], rows[1]["degree_max"]) == (None, None)


def test_the_difference_is_of_the_edges_as_listed_where_there_are_such(monkeypatch):
    monkeypatch.setattr(measures, "load", lambda name, **_: small_data())
    monkeypatch.setattr(measures, "published", lambda _: {"squirrel": dict.fromkeys(COLUMNS, 0)})
    ours, listed, _, difference = MeasuresTable().rows("squirrel")
    assert difference["edge_homophily"] == listed["edge_homophily"] != ours["edge_homophily"]
    assert difference["degree_mean"] == ours["degree_mean"]


def test_missing_files_leave_the_papers_row(tmp_path, no_data_sets):
    (row,) = MeasuresTable().rows("questions", tmp_path)
    assert (row["source"], row["std_per_class"], row["apart"]) == ("paper", 0.1691, "no data")


def test_damaged_files_are_not_passed_over(tmp_path, no_data_sets):
    file = tmp_path / specs["questions"].forms[0].files[0].path
    file.parent.mkdir(parents=True)
    file.write_bytes(b"altered")
    with pytest.raises(DataError, match="is not the published file"):
        MeasuresTable().rows("questions", tmp_path)
