"""Effective resistance where it is known: series, parallel, trees, complete graphs, pieces."""

import networkx
import pytest
import torch
from torch_geometric.data import Data

from experiments.studies import resistance
from experiments.studies.resistance import effective_resistance, random_pairs
from helpers import edges, random_edges


@pytest.fixture(params=["iterated", "factorized"])
def solver(request, monkeypatch):
    if request.param == "factorized":
        monkeypatch.setattr(resistance, "ITERATIONS", 0)


@pytest.mark.usefixtures("solver")
class TestKnownResistances:
    def test_in_series_in_parallel_and_in_pieces(self):
        # A square 0 1 2 3, a tail 3 4, and an edge 5 6 of its own.
        data = Data(edge_index=edges((0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (3, 4), (4, 4), (5, 6)), num_nodes=8)
        pairs = edges((0, 1), (0, 2), (4, 3), (1, 4), (5, 6), (0, 5), (7, 0), (7, 7))
        infinite = float("inf")
        expected = [3 / 4, 1, 1, 2, 1, infinite, infinite, 0]
        assert effective_resistance(data, pairs).tolist() == pytest.approx(expected)

    def test_a_complete_graph(self):
        data = Data(edge_index=torch.combinations(torch.arange(30)).T, num_nodes=30)
        assert effective_resistance(data, random_pairs(data, 40)).tolist() == pytest.approx([2 / 30] * 40)

    def test_a_random_graph_against_networkx(self):
        data = Data(edge_index=random_edges(41, 90), num_nodes=40)
        graph = networkx.Graph(data.edge_index.T.tolist())
        graph.remove_edges_from(networkx.selfloop_edges(graph))
        part = graph.subgraph(max(networkx.connected_components(graph), key=len))
        pairs = [(a, b) for a in list(part)[:6] for b in list(part)[6:12]]
        expected = [networkx.resistance_distance(part, a, b) for a, b in pairs]
        assert effective_resistance(data, edges(*pairs)).tolist() == pytest.approx(expected, rel=1e-7)


def test_a_path_that_iterating_does_not_get_to_the_end_of():
    nodes = 3000
    path = Data(edge_index=torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)]), num_nodes=nodes)
    pairs = torch.stack([torch.zeros(40, dtype=torch.long), torch.arange(1, 41) * 70])
    assert effective_resistance(path, pairs).tolist() == pytest.approx((torch.arange(1, 41) * 70).tolist(), rel=1e-6)
