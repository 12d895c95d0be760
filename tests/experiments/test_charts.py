"""Figures: which rows a panel shows, and what is drawn of them."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments.charts import Chart, draw_charts
from experiments.paper.long_range import RewiredTree, draw_rewired_tree
from experiments.paper.neighborhoods import TwoClasses, draw_two_classes

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


def test_0_has_a_place_on_a_logarithmic_axis(drawn, tmp_path):
    rows = [{"model": "gcn", "k": k, "test": 1.0} for k in (0, 100, 10_000)]
    draw_charts([Chart("k", "", "", log_x=True)], rows, [tmp_path / "a.png"])
    assert drawn[0].get_xscale() == "symlog"
    assert [text.get_text() for text in drawn[0].get_xticklabels()] == ["0", "100", "10,000"]


class TestTree:
    TREE = RewiredTree(parent=[-1, 0, 1, 1, 0], bits=[-1, -1, 1, 0, 1], edges=[[0, 1], [0, 2], [1, 3]])

    def test_edges_by_kind(self):
        assert self.TREE.edges_by_kind() == {
            "kept": [(0, 1), (1, 3)],
            "dropped": [(0, 4), (1, 2)],
            "added": [(0, 2)],
        }

    def test_both_trees_are_drawn(self, drawn, tmp_path):
        draw_rewired_tree(self.TREE, [tmp_path / "a.png"])
        left, right = drawn
        assert (len(left.get_lines()), len(right.get_lines())) == (4, 5)
        assert left.get_title() == "given tree: 2 leaves have the bit 1"
        assert right.get_title() == "after rewiring: 2 kept, 2 dropped, 1 added edges"


class TestTwoClasses:
    PICTURE = TwoClasses(
        dataset="toy",
        names=["a", "b", "c"],
        classes=(0, 1),
        shown=(0, 1, 2, 3),
        edges=np.array([[0, 4], [0, 5], [1, 5], [2, 3]]),
        labels=np.array([0, 1, 0, 1, 2, 2]),
        places=np.zeros((6, 2)),
        explained=(0.7, 0.3),
    )

    def test_a_panel_for_the_nodes_and_one_for_each_class(self, drawn, tmp_path):
        draw_two_classes(self.PICTURE, [tmp_path / "a.png"])
        assert [axes.get_title() for axes in drawn] == [
            "toy: four nodes with all their neighbors",
            "neighborhoods of class a: 2 nodes",
            "neighborhoods of class b: 2 nodes",
        ]
