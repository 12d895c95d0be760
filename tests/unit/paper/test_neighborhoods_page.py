"""The page of neighborhoods: effective components, the classes and nodes that are drawn."""

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.paper import analyses, neighborhoods
from gumbel_mpnn.paper.neighborhoods import Neighborhoods, two_classes, typical_pair
from helpers import both_ways, edges

PAGE = Neighborhoods()


def stars() -> Data:
    """Class 0: 40 nodes with three neighbors of class 1 each. Class 1: half have neighbors of class 2 only.

    So all neighborhoods of class 0 are alike, and class 1 has two kinds.
    """
    pairs = [(node, 40 + (node + shift) % 20) for node in range(40) for shift in range(3)]
    pairs += [(60 + node, 80 + (node + shift) % 20) for node in range(20) for shift in range(3)]
    y = torch.tensor([0] * 40 + [1] * 40 + [2] * 20)
    return Data(edge_index=both_ways(edges(*pairs)), y=y, num_nodes=100)


@pytest.fixture
def loaded(monkeypatch, user_cache):
    monkeypatch.setattr(neighborhoods, "load", lambda dataset, root=None, features=True: stars())


def test_known_by_its_name():
    assert isinstance(analyses["neighborhoods"], Neighborhoods)
    assert set(PAGE.headings) <= set(PAGE.rows("cora", None)[0])


def test_a_class_with_two_equal_kinds_has_two_effective_components(loaded):
    rows = PAGE.rows("cora")
    assert [(row["label"], row["nodes"], row["shown"]) for row in rows] == [
        ("0", 40, "fewest"),
        ("1", 40, "most"),
        ("2", 20, ""),
    ]
    assert [row["effective"] for row in rows] == pytest.approx([1, 2, 1], abs=1e-6)
    # Half of class 1 has (1, 0, 0), half (0, 0, 1): a deviation of ½ √(40/39) in two of three dimensions.
    assert [row["std"] for row in rows] == pytest.approx([0, (40 / 39) ** 0.5 / 3, 0])


def test_the_two_classes_of_the_data_set_with_the_most_similar_neighborhoods_are_drawn(loaded, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(neighborhoods, "draw_two_classes", lambda picture, paths: drawn.append((picture, paths)))
    rows = [{**row, "dataset": "actor", "effective": 9.0} for row in PAGE.rows("actor")] + PAGE.rows("cora")
    assert PAGE.draw(rows, [], None, [tmp_path / "a.png"])
    ((picture, paths),) = drawn
    assert (picture.dataset, picture.classes, paths) == ("cora", (0, 1), [tmp_path / "a.png"])


def test_what_is_chosen_of_two_classes():
    picture = two_classes(stars(), (0, 1))
    one, two, three, four = picture.shown
    assert [picture.labels[node] for node in picture.shown] == [0, 1, 0, 1]
    assert (picture.places[one] == picture.places[three]).all()
    assert len(picture.edges) == int(torch.isin(stars().edge_index, torch.tensor(picture.shown)).any(0).sum()) // 2
    assert picture.explained[0] + picture.explained[1] == pytest.approx(1)
    assert {two, four} <= set(range(40, 80))


def test_a_typical_pair_is_as_far_apart_as_usual():
    """Four members on a line at 0, 1, 2 and 5: var 14/3, so √(28/3) = 3.06 is usual, and 2 and 5 are 3 apart."""
    rows = torch.tensor([[0.0], [1], [9], [2], [5]])
    members = torch.tensor([True, True, False, True, True])
    assert typical_pair(rows, members, torch.full((5,), 4)) == (3, 4)


def test_nodes_with_many_neighbors_are_left_out_if_there_are_others():
    rows = torch.tensor([[0.0], [1], [2], [5]])
    members = torch.ones(4, dtype=torch.bool)
    assert typical_pair(rows, members, torch.tensor([3, 6, 7, 9])) == (0, 1)
    assert typical_pair(rows, members, torch.tensor([3, 7, 7, 9])) == (2, 3)


def test_missing_files(tmp_path, no_data_sets):
    (row,) = rows = PAGE.rows("cora", tmp_path)
    assert (row["label"], row["nodes"]) == ("no data", None)
    assert not PAGE.draw(rows, [], tmp_path, [tmp_path / "a.png"])
