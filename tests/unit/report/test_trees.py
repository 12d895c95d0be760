"""The figure of a rewired tree: what is kept, dropped and added, and where nodes stand."""

import matplotlib.pyplot as plt
import pytest

from gumbel_mpnn.report.style import PALETTE
from gumbel_mpnn.report.trees import LOOKS, RewiredTree, draw_rewired_tree

TREE = RewiredTree(
    parent=[-1, 0, 1, 1, 0, 4, 4],
    bits=[-1, -1, 1, 0, -1, 1, 1],
    edges=[(1, 0), (0, 2), (4, 5), (0, 4), (2, 3)],
)
"""A tree of depth 2 that keeps three of its six edges; 0-2 and 2-3 are new."""


@pytest.fixture
def panels(tmp_path, monkeypatch):
    """The two panels after drawing."""
    figures = []
    monkeypatch.setattr(plt, "close", figures.append)
    draw_rewired_tree(TREE, [tmp_path / "deep" / "tree.png", tmp_path / "deep" / "tree.pdf"])
    monkeypatch.undo()
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["tree.pdf", "tree.png"]
    yield figures[0].axes
    plt.close(figures[0])


def lines(axes, kind):
    """The ends of all lines with the look of a kind of edge, from left to right."""
    look = LOOKS[kind]
    mine = [
        line for line in axes.lines if (line.get_color(), line.get_linestyle()) == (look["color"], look["linestyle"])
    ]
    return sorted(sorted(map(tuple, line.get_xydata().tolist())) for line in mine)


def test_edges_are_kept_dropped_or_added():
    assert TREE.edges_by_kind() == {
        "kept": [(0, 1), (0, 4), (4, 5)],
        "dropped": [(1, 2), (1, 3), (4, 6)],
        "added": [(0, 2), (2, 3)],
    }


def test_leaves_stand_in_a_row_and_parents_above_the_middle_of_theirs():
    assert TREE.places() == [(1.5, 0), (0.5, -1), (0, -2), (1, -2), (2.5, -1), (2, -2), (3, -2)]


def test_the_given_tree_is_on_the_left(panels):
    left, _ = panels
    assert len(lines(left, "kept")) == 6
    assert not lines(left, "dropped") + lines(left, "added")
    assert left.get_title() == "given tree: 3 leaves have the bit 1"


def test_the_rewired_tree_is_on_the_right(panels):
    _, right = panels
    assert lines(right, "added") == [[(0, -2), (1, -2)], [(0, -2), (1.5, 0)]]
    assert lines(right, "dropped") == [[(0, -2), (0.5, -1)], [(0.5, -1), (1, -2)], [(2.5, -1), (3, -2)]]
    assert right.get_title() == "after rewiring: 3 kept, 3 dropped, 2 added edges"
    labels = right.get_legend_handles_labels()[1]
    assert labels == [
        "kept edge",
        "dropped edge",
        "added edge",
        "root",
        "inner node",
        "leaf with bit 1",
        "leaf with bit 0",
    ]


def test_nodes_are_marked_by_what_they_are(panels):
    for axes in panels:
        root, inner, one, zero = (points.get_offsets().tolist() for points in axes.collections)
        assert (root, inner) == ([[1.5, 0]], [[0.5, -1], [2.5, -1]])
        assert (one, zero) == ([[0, -2], [2, -2], [3, -2]], [[1, -2]])
        colors = [plt.matplotlib.colors.to_hex(points.get_facecolor()[0]) for points in axes.collections[2:]]
        assert colors == [PALETTE[0], PALETTE[1]]


def test_kinds_of_nodes_and_edges_that_do_not_occur_are_left_out(tmp_path):
    draw_rewired_tree(RewiredTree(parent=[-1, 0, 0], bits=[-1, 1, 1], edges=[]), [tmp_path / "tree.png"])
    assert (tmp_path / "tree.png").exists()
