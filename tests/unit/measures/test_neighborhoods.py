"""Neighborhood distributions and their spread, by hand."""

import math

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.measures import neighborhood_distributions, std_per_class
from helpers import both_ways, edges

# A star: the middle (class 0) with neighbors of classes 0, 1, 1, unlabelled; node 5 is alone.
STAR = Data(edge_index=edges((0, 1), (2, 0), (0, 3), (4, 0), (0, 3), (1, 1)), y=torch.tensor([0, 0, 1, 1, -1, 1]))


def test_with_the_own_label():
    expected = [[2 / 4, 2 / 4], [1, 0], [1 / 2, 1 / 2], [1 / 2, 1 / 2], [1, 0], [0, 1]]
    assert torch.allclose(neighborhood_distributions(STAR), torch.tensor(expected, dtype=torch.float64))


def test_without_the_own_label():
    expected = [[1 / 3, 2 / 3], [1, 0], [1, 0], [1, 0], [1, 0], [0, 0]]
    assert torch.allclose(neighborhood_distributions(STAR, own_label=False), torch.tensor(expected).double())


def test_edges_to_a_node_alone():
    """Nodes 1 and 3 receive from the middle, which receives from 2 and the unlabelled 4."""
    expected = [[1 / 2, 1 / 2], [1, 0], [0, 1], [1 / 2, 1 / 2], [0, 0], [0, 1]]
    assert torch.allclose(neighborhood_distributions(STAR, directed=True), torch.tensor(expected).double())
    # Class 0: (1/2, 1/2) and (1, 0). Class 1: (0, 1) twice and (1/2, 1/2).
    assert std_per_class(STAR, directed=True) == pytest.approx((math.sqrt(1 / 8) + math.sqrt(1 / 12)) / 2)


def test_with_both_directions_it_is_the_undirected_graph():
    both = Data(edge_index=both_ways(STAR.edge_index), y=STAR.y)
    assert torch.equal(neighborhood_distributions(both, directed=True), neighborhood_distributions(STAR))


def test_std_per_class_with_the_own_label():
    # Class 0 has the rows (1/2, 1/2) and (1, 0); class 1 has (1/2, 1/2) twice and (0, 1). Both columns spread alike.
    first, second = math.sqrt(1 / 8), math.sqrt(1 / 12)
    assert std_per_class(STAR) == pytest.approx((first + second) / 2)


def test_std_per_class_without_the_own_label_leaves_the_lonely_node_out():
    # Class 0 has (1/3, 2/3) and (1, 0); in class 1 two nodes have (1, 0), the third has no neighbor.
    assert std_per_class(STAR, own_label=False) == pytest.approx((math.sqrt(2 / 9) + 0) / 2)


def test_a_class_of_one_node_has_no_spread_to_average():
    data = Data(edge_index=edges((0, 1), (1, 2)), y=torch.tensor([0, 0, 1]))
    # Class 0: (1, 0, ...) and (2/3, 1/3).
    assert std_per_class(data) == pytest.approx(math.sqrt(1 / 18))


def test_a_class_number_that_no_node_has_is_a_column_of_zeros():
    data = Data(edge_index=edges((0, 1)), y=torch.tensor([0, 2]))
    assert neighborhood_distributions(data).tolist() == [[0.5, 0, 0.5], [0.5, 0, 0.5]]


def test_no_labels_at_all():
    data = Data(edge_index=edges((0, 1)), y=torch.tensor([-1, -1]))
    assert neighborhood_distributions(data).shape == (2, 0)
    assert math.isnan(std_per_class(data))
