"""Columns of rows, and the tables and sentences made from rows."""

from dataclasses import replace

import pytest
from made_runs import SPLITS, shifted

from experiments.rows import difference, differences, figures, grid, score, spread, verdicts


def test_figures_are_in_percent(run):
    """Eight results from 50 to 57 %: the deviation is √6."""
    found = figures(shifted(run, 0.0))
    assert found == {
        "test": pytest.approx(53.5),
        "std": pytest.approx(6**0.5),
        "stderr": pytest.approx((6 / SPLITS) ** 0.5),
        "n": SPLITS,
    }
    one = replace(run, records=run.records[:1])
    assert (figures(one)["std"], figures(one)["stderr"], spread(one.test)) == (None, None, (None, None))


def test_a_difference_is_paired(run):
    found = difference(shifted(run, 0.02), shifted(run, 0.0))
    assert [found[name] for name in ("difference", "low", "high")] == [pytest.approx(2)] * 3
    assert (found["p"], found["over"], found["verdict"]) == (pytest.approx(1 / 2**7), "splits", "better")
    assert set(difference(run, None).values()) == {None}


def test_p_values_are_corrected_for_the_number_of_pairs(run):
    better = (shifted(run, 0.02), shifted(run, 0.0))
    for count in (1, 2, 4):
        found = differences(dict.fromkeys(range(count), better) | {"missing": (run, None)})
        assert [found[key]["p"] for key in range(count)] == [pytest.approx(count / 2**7)] * count
        assert found["missing"]["p"] is None


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"test": 84.046, "stderr": 0.091}, "84.05±0.09"),
        ({"test": 84.0, "stderr": None}, "84.00"),
        ({"test": 84, "stderr": 0}, "84.00±0.00"),
        ({"test": None, "stderr": 1.0}, "–"),
    ],
)
def test_a_cell(row, text):
    assert score(row) == text
    assert score(row, bold=True) == (text if text == "–" else text.replace(text[:5], f"**{text[:5]}**", 1))


def test_a_grid_has_a_line_for_each_case_and_a_column_for_each_model():
    rows = [
        {"dataset": "cora", "k": 0, "model": "gcn", "test": 1.0},
        {"dataset": "cora", "k": 0, "model": "sage", "test": 2.0},
        {"dataset": "cora", "k": 1, "model": "sage", "test": 3.0},
        {"dataset": "actor", "k": None, "model": "gcn", "test": None},
    ]
    assert grid(rows, ("dataset", "k"), "model", score, {"k": "number"}).splitlines() == [
        "| data set | number | GCN | GraphSAGE |",
        "| --- | --: | --- | --- |",
        "| cora | 0 | 1.00 | 2.00 |",
        "| cora | 1 | – | 3.00 |",
    ]
    assert grid(rows[3:], ("dataset",), "model", score) == ""


def test_verdicts_are_counted():
    given = ["better", "same (one split)", "worse", "same", "too few splits", "no data", None]
    rows = [{"verdict": verdict} for verdict in given]
    assert verdicts("Auto", "the rest", rows, noun="graph") == (
        "Auto against the rest, 5 graphs: better on 1, the same on 2, worse on 1, too few splits for a test on 1; 1 of"
        " the tests is over the seeds of one split."
    )
    assert verdicts("Auto", "the rest", rows[4:5]) == "Auto against the rest, 1 case: too few splits for a test on 1."
    assert verdicts("Auto", "the rest", rows[5:]) == ""
