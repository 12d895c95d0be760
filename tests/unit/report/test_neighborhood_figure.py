"""The figure of two classes: four nodes with their neighbors, and all neighborhoods of each class."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from gumbel_mpnn.report.neighborhoods import FIRST, SECOND, SIZE, TwoClasses, draw_two_classes

PICTURE = TwoClasses(
    dataset="toy",
    names=["a", "b", "c"],
    classes=(2, 0),
    shown=(0, 1, 2, 3),
    edges=np.array([[0, 4], [0, 5], [1, 5], [2, 6], [3, 6], [3, 1]]),
    labels=np.array([2, 0, 2, 0, 1, 2, 1, 0]),
    places=np.array([[0.0, 0], [1, 1], [0, 0], [3, 4], [9, 9], [2, 0], [9, 9], [1, 1]]),
    explained=(0.8, 0.15),
)
"""Nodes 0 and 2 (numbers 1 and 3) are of class c, nodes 1 and 3 (2 and 4) of class a; 5 and 6 are shared neighbors."""


@pytest.fixture
def panels(tmp_path, monkeypatch):
    """The three panels after drawing."""
    figures = []
    monkeypatch.setattr(plt, "close", figures.append)
    draw_two_classes(PICTURE, [tmp_path / "figure.png"])
    monkeypatch.undo()
    assert (tmp_path / "figure.png").exists()
    yield figures[0].axes
    plt.close(figures[0])


def color(points):
    return plt.matplotlib.colors.to_hex(points.get_facecolor()[0])


def test_colors():
    assert (PICTURE.color(2), PICTURE.color(0)) == (FIRST, SECOND)
    assert PICTURE.color(1) not in (FIRST, SECOND)


def test_shared_neighbors_stand_between_the_nodes_that_share_them():
    places = PICTURE.layout()
    assert [places[node] for node in range(4)] == [(0, 1), (1, 1), (1, 0), (0, 0)]
    assert (places[5], places[6]) == ((0.5, 1), (0.5, 0))
    assert places[4] == pytest.approx((-0.3, 1))  # alone: half a turn from the right
    assert 7 not in places


def test_the_graph_has_all_edges_and_its_nodes_have_the_colors_of_their_classes(panels):
    graph = panels[0]
    assert len(graph.lines) == 6
    by_name = {points.get_label(): points for points in graph.collections}
    assert {name: len(points.get_offsets()) for name, points in by_name.items()} == {"a": 2, "b": 2, "c": 3}
    assert (color(by_name["c"]), color(by_name["a"])) == (FIRST, SECOND)
    assert {text.get_text(): text.xy for text in graph.texts} == {"1": (0, 1), "2": (1, 1), "3": (1, 0), "4": (0, 0)}
    assert graph.get_title() == "toy: four nodes with all their neighbors"


def test_a_panel_for_each_class_with_the_number_of_nodes_at_each_place(panels):
    _, first, second = panels
    spots = first.collections[0]
    assert spots.get_offsets().tolist() == [[0, 0], [2, 0]]
    assert spots.get_sizes().tolist() == [2 * SIZE, SIZE]
    assert second.collections[0].get_offsets().tolist() == [[1, 1], [3, 4]]
    assert (color(spots), color(second.collections[0])) == (FIRST, SECOND)
    assert first.get_title() == "neighborhoods of class c: 3 nodes"
    assert first.get_xlabel() == "first principal axis (80 % of the variance)"
    assert {text.get_text(): text.xy for text in second.texts} == {"2": (1, 1), "4": (3, 4)}
    assert first.get_xlim() == second.get_xlim()
