"""Figures: which rows a panel shows, and what is drawn of them."""

import pytest
from matplotlib.figure import Figure

from experiments.charts import Chart, draw_charts

ROWS = [
    {"model": "gcn", "k": 2, "test": 20.0, "stderr": 2.0, "paper": None, "of": ""},
    {"model": "gcn", "k": 1, "test": 10.0, "stderr": 1.0, "paper": 15.0, "of": ""},
    {"model": "mlp", "k": None, "test": 30.0, "stderr": None, "paper": None, "of": None},
    {"model": "mlp", "k": 1, "test": None, "stderr": None, "paper": None, "of": ""},
    {"model": "mlp", "k": 1, "test": 40.0, "stderr": None, "paper": None, "of": "other"},
]
CHART = Chart("k", "number", "By number", where={"of": ("",)}, paper="paper")


@pytest.fixture
def drawn(monkeypatch):
    """The axes of the figures that are saved."""
    axes = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: axes.extend(figure.axes))
    return axes


def test_curves_lines_and_the_papers_points(drawn, tmp_path):
    assert draw_charts([CHART, Chart("k", "", "empty", where={"of": ("nothing",)})], ROWS, [tmp_path / "a.png"])
    (axes,) = drawn
    (line,) = [each for each in axes.get_lines() if each.get_linestyle() == "--"]
    curve, paper = axes.get_lines()[0], axes.get_lines()[-1]
    assert (list(curve.get_xdata()), list(curve.get_ydata())) == ([1, 2], [10, 20])
    assert list(line.get_ydata()) == [30, 30]
    assert (list(paper.get_xdata()), list(paper.get_ydata())) == ([1], [15])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["MLP", "the paper", "GCN"]
    assert (axes.get_title(), axes.get_xlabel()) == ("By number", "number")
