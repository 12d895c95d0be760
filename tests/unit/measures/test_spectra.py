"""Ends of the spectrum on graphs whose eigenvalues are known, below and above the size that is solved densely."""

import math

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.measures import spectra, spectral_gap, spectrum_ends
from gumbel_mpnn.util.errors import UserError
from helpers import both_ways, edges, random_edges


def graph_of(graph):
    return Data(edge_index=edges(*graph.edges), num_nodes=graph.number_of_nodes())


def path(nodes):
    return graph_of(networkx.path_graph(nodes))


def ring(nodes):
    return graph_of(networkx.cycle_graph(nodes))


@pytest.fixture(params=["dense", "sparse"])
def solver(request, monkeypatch):
    """Both ways to solve; sparse from three nodes on, whichever of its two iterations that takes."""
    if request.param == "sparse":
        monkeypatch.setattr(spectra, "DENSE_NODES", 3)
    return request.param


@pytest.mark.usefixtures("solver")
class TestKnownSpectra:
    @pytest.mark.parametrize("nodes", [8, 40])
    def test_complete_graph(self, nodes):
        ends = spectrum_ends(graph_of(networkx.complete_graph(nodes)), k=3)
        assert ends.smallest.tolist() == pytest.approx([0, nodes / (nodes - 1), nodes / (nodes - 1)])
        assert ends.largest.tolist() == pytest.approx([nodes / (nodes - 1)] * 3)

    @pytest.mark.parametrize("nodes", [9, 60])
    def test_path(self, nodes):
        known = 1 - np.cos(np.pi * np.arange(nodes) / (nodes - 1))
        ends = spectrum_ends(path(nodes), k=4)
        assert ends.smallest.tolist() == pytest.approx(known[:4], abs=1e-9)
        assert ends.largest.tolist() == pytest.approx(known[::-1][:4], abs=1e-9)
        assert spectral_gap(path(nodes)) == pytest.approx(1 - math.cos(math.pi / (nodes - 1)), rel=1e-6)

    def test_ring_has_its_eigenvalues_twice(self):
        step = 1 - math.cos(2 * math.pi / 41)
        assert spectrum_ends(ring(41), k=3).smallest.tolist() == pytest.approx([0, step, step], abs=1e-9)

    def test_star_is_bipartite(self):
        ends = spectrum_ends(graph_of(networkx.star_graph(20)), k=2)
        assert ends.smallest.tolist() == pytest.approx([0, 1])
        assert ends.largest.tolist() == pytest.approx([2, 1])

    def test_random_graph_in_many_pieces_against_all_eigenvalues(self):
        data = Data(edge_index=random_edges(70, 60), num_nodes=70)
        graph = networkx.Graph(both_ways(data.edge_index).T.tolist())
        graph.remove_edges_from(networkx.selfloop_edges(graph))
        graph.add_nodes_from(range(70))
        known = np.sort(np.linalg.eigvalsh(networkx.normalized_laplacian_matrix(graph).toarray()))
        ends = spectrum_ends(data, k=25)
        assert ends.smallest.numpy() == pytest.approx(known[:25], abs=1e-8)
        assert ends.largest.numpy() == pytest.approx(known[::-1][:25], abs=1e-8)


REPEATED = {
    "ring": networkx.cycle_graph(301),
    "torus": networkx.grid_2d_graph(18, 18, periodic=True),
    "tree": networkx.balanced_tree(2, 8),
    "grid": networkx.grid_2d_graph(18, 18),
    "wheel": networkx.wheel_graph(321),
    "caves": networkx.connected_caveman_graph(55, 6),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_eigenvalues_of_graphs_too_large_to_solve_densely(name):
    graph = networkx.convert_node_labels_to_integers(REPEATED[name])
    assert len(graph) > spectra.DENSE_NODES
    known = np.linalg.eigvalsh(networkx.normalized_laplacian_matrix(graph).toarray())
    for k in (2, 3, 8, 15):
        ends = spectrum_ends(graph_of(graph), k)
        assert ends.smallest.numpy() == pytest.approx(known[:k], abs=1e-8)
        assert ends.largest.numpy() == pytest.approx(known[::-1][:k], abs=1e-8)


class TestSpectralGap:
    def test_a_disconnected_graph_has_none(self):
        assert spectral_gap(Data(edge_index=edges((0, 1), (1, 2)), num_nodes=4)) == 0
        assert spectral_gap(Data(edge_index=edges(), num_nodes=2)) == 0

    def test_two_nodes_and_one(self):
        assert spectral_gap(path(2)) == pytest.approx(2)
        assert math.isnan(spectral_gap(Data(edge_index=edges((0, 0)), num_nodes=1)))

    def test_a_long_path_is_solved_by_factors(self, monkeypatch):
        calls = []
        factorize = spectra.factorize
        monkeypatch.setattr(spectra, "factorize", lambda matrix: calls.append(1) or factorize(matrix))
        assert spectral_gap(path(6000)) == pytest.approx(1 - math.cos(math.pi / 5999), rel=1e-6)
        assert calls == [1]

    def test_self_loops_directions_and_duplicates_do_not_matter(self):
        plain = ring(12)
        listed = torch.cat([both_ways(plain.edge_index), edges((3, 3), (0, 1))], dim=1)
        assert spectral_gap(Data(edge_index=listed, num_nodes=12)) == pytest.approx(spectral_gap(plain))


def test_fewer_eigenvalues_than_asked_for():
    ends = spectrum_ends(Data(edge_index=edges((0, 1)), num_nodes=3), k=9)
    assert ends.smallest.tolist() == pytest.approx([0, 0, 2])
    assert ends.largest.tolist() == pytest.approx([2, 0, 0])


@pytest.mark.parametrize(("k", "wanted"), [(0, "at least 1"), (1.5, "a whole number"), ("2", "a whole number")])
def test_a_number_of_eigenvalues_that_is_none(k, wanted):
    with pytest.raises(UserError, match=f"k must be {wanted}, but is {k!r}"):
        spectrum_ends(path(3), k=k)
