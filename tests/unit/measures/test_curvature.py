"""Balanced Forman curvature: closed values, graphs worked out by hand, what is done with odd input."""

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn import load
from gumbel_mpnn.measures import balanced_forman
from gumbel_mpnn.util.errors import DataError
from helpers import both_ways, edges


def curvature(graph):
    """Curvature of a networkx graph by edge, smaller node first."""
    pairs = [tuple(sorted(pair)) for pair in graph.edges]
    data = Data(edge_index=edges(*pairs), num_nodes=graph.number_of_nodes())
    return dict(zip(pairs, balanced_forman(data).tolist(), strict=True))


def only(values):
    """The one value that all edges have."""
    first, *others = values.values()
    assert others == pytest.approx([first] * len(others))
    return first


@pytest.mark.parametrize(("nodes", "expected"), [(3, 1.5), (4, 1.0), (5, 0.0), (6, 0.0), (9, 0.0)])
def test_cycles(nodes, expected):
    assert only(curvature(nx.cycle_graph(nodes))) == pytest.approx(expected)


@pytest.mark.parametrize("nodes", [3, 4, 5, 8])
def test_cliques(nodes):
    assert only(curvature(nx.complete_graph(nodes))) == pytest.approx(nodes / (nodes - 1))


@pytest.mark.parametrize("branches", [2, 3, 5])
def test_inner_edges_of_a_regular_tree(branches):
    values = curvature(nx.balanced_tree(branches, 3))
    inner = [value for (i, _), value in values.items() if 0 < i <= branches and value != 0]
    assert inner == pytest.approx([4 / (branches + 1) - 2] * branches**2)


def test_edges_at_a_leaf_are_flat():
    assert only(curvature(nx.star_graph(5))) == 0
    assert only(curvature(nx.path_graph(2))) == 0


def test_complete_bipartite_graph():
    # K_3,3: degrees 3; on each side the two others have two four-cycles each: 4/3 − 2 + 4/(2·3).
    assert only(curvature(nx.complete_bipartite_graph(3, 3))) == pytest.approx(0.0)
    # K_2,3: 2/3 + 1 − 2; the other node of the pair has two four-cycles, the two others of the three one each.
    assert only(curvature(nx.complete_bipartite_graph(2, 3))) == pytest.approx(-1 / 3 + 3 / (2 * 3))


def test_a_diagonal_makes_a_four_cycle_not_count():
    values = curvature(nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]))
    # 0 ~ 1: degrees 3 and 2, one triangle, and no four-cycle without diagonal.
    assert values[0, 1] == pytest.approx(2 / 3 + 1 - 2 + 2 / 3 + 1 / 2)
    assert values[0, 2] == pytest.approx(4 / 3 - 2 + 2 * (2 / 3 + 1 / 3))


def test_karate_club():
    assert min(curvature(nx.karate_club_graph()).values()) == pytest.approx(-1.396, abs=5e-4)


def test_values_stand_in_the_order_of_the_edges():
    triangle_with_tail = edges((2, 3), (1, 0), (0, 1), (1, 2), (3, 3), (2, 0), (0, 1))
    values = balanced_forman(Data(edge_index=triangle_with_tail, num_nodes=6))
    # Degrees 2, 2, 3, 1; the self-loop has none, and neither it nor the duplicates count.
    triangle, slanted = 1 + 1 - 2 + 1 + 1 / 2, 2 / 3 + 1 - 2 + 2 / 3 + 1 / 2
    expected = torch.tensor([0, triangle, triangle, slanted, 0, slanted, triangle], dtype=torch.float64)
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(balanced_forman(Data(edge_index=both_ways(triangle_with_tail))), expected.repeat(2))


def test_a_graph_without_edges():
    assert balanced_forman(Data(num_nodes=3)).shape == (0,)
    assert balanced_forman(Data(edge_index=edges(), num_nodes=3)).shape == (0,)
    assert balanced_forman(Data(edge_index=edges((1, 1)), num_nodes=3)).tolist() == [0]


def test_threads_change_nothing():
    generator = torch.Generator().manual_seed(0)
    data = Data(edge_index=torch.randint(300, (2, 6000), generator=generator), num_nodes=300)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = balanced_forman(data)
        torch.set_num_threads(3)
        assert torch.equal(balanced_forman(data), expected)
    finally:
        torch.set_num_threads(before)


@pytest.mark.real_data
def test_cora(data_root):
    values = balanced_forman(load("cora", root=data_root))
    assert [values.min(), values.max(), values.mean()] == pytest.approx([-1.8123543, 1.5, -0.5140616], abs=1e-6)


@pytest.mark.parametrize("index", [edges((0, 1), (1, 2), (2, 0)).T, edges((0, 1)).float()])
def test_edges_of_another_shape_or_kind(index):
    with pytest.raises(DataError, match=r"edge_index must be integers of shape \[2, E\]"):
        balanced_forman(Data(edge_index=index, num_nodes=3))


def test_large_graphs_of_short_numbers():
    last = 50_000  # its square does not fit into 32 bits
    index = edges((0, 1), (last - 2, last - 1), (last - 1, last), (last, last - 2))
    found = balanced_forman(Data(edge_index=index.int(), num_nodes=last + 1))
    assert found.tolist() == [0, 1.5, 1.5, 1.5]
