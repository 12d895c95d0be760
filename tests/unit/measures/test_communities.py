"""Positions among communities, by hand and against a dense solver."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.measures import communities
from gumbel_mpnn.measures.communities import community_positions
from gumbel_mpnn.util.errors import UserError
from helpers import both_ways, edges, random_edges


def graph(edge_index, num_nodes):
    return Data(edge_index=both_ways(edge_index), num_nodes=num_nodes)


def dense_positions(data, dimensions):
    """The definition, with dense matrices."""
    count = data.num_nodes
    adjacency = np.zeros((count, count))
    adjacency[tuple(data.edge_index.numpy())] = 1
    np.fill_diagonal(adjacency, 0)
    closed = adjacency + np.eye(count)
    size = np.sqrt(closed.sum(1))
    weights = adjacency * (closed @ closed) / np.outer(size, size)
    degree = weights.sum(1)
    scale = 1 / np.sqrt(degree + degree.mean())
    vectors = np.linalg.eigh(scale[:, None] * weights * scale)[1][:, ::-1][:, :dimensions]
    return vectors * np.where((vectors**3).sum(0) < 0, -1, 1) * np.sqrt(count)


def test_weights_are_overlaps_of_neighborhoods():
    """A triangle 0, 1, 2 and a node 3 at 2. Closed neighborhoods have 3, 3, 4 and 2 nodes."""
    weights = communities._overlaps(edges((0, 1), (0, 2), (1, 2), (2, 3)), 4).toarray()
    expected = {(0, 1): 3 / 3, (0, 2): 3 / np.sqrt(12), (1, 2): 3 / np.sqrt(12), (2, 3): 2 / np.sqrt(8)}
    for (i, j), weight in expected.items():
        assert weights[i, j] == weights[j, i] == pytest.approx(weight)
    assert np.count_nonzero(weights) == 8


def test_two_triangles_lie_on_two_sides():
    data = graph(edges((0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3)), 6)
    side = community_positions(data, 2)[:, 1].sign()
    assert (side[:3] == side[0]).all()
    assert (side[3:] == -side[0]).all()


@pytest.mark.parametrize("num_nodes", [40, 400])
def test_against_the_definition(num_nodes):
    """Both solvers: dense up to 300 nodes, iterative above."""
    data = graph(random_edges(num_nodes, 5 * num_nodes), num_nodes)
    torch.testing.assert_close(
        community_positions(data, 3).double(), torch.from_numpy(dense_positions(data, 3)), rtol=1e-3, atol=1e-3
    )


def test_the_numbering_has_no_influence():
    data = graph(random_edges(350, 900), 350)
    order = torch.randperm(350, generator=torch.Generator().manual_seed(1))
    place = torch.empty_like(order)
    place[order] = torch.arange(350)
    renumbered = Data(edge_index=place[data.edge_index], num_nodes=350)
    assert torch.equal(community_positions(renumbered, 4), community_positions(data, 4)[order])


def test_columns_without_an_eigenvector_and_nodes_without_an_edge_are_0():
    positions = community_positions(graph(edges((0, 1)), 3), 5)
    assert positions.shape == (3, 5)
    assert (positions[:, 3:] == 0).all()
    assert (community_positions(graph(edges((0, 1), (1, 2), (0, 2)), 4), 1)[3] == 0).all()


def test_what_does_not_converge_is_0(monkeypatch):
    from scipy.sparse import linalg

    def eigsh(matrix, k, **options):
        raise linalg.ArpackNoConvergence("slow", np.ones(1), np.ones((matrix.shape[0], 1)) / 20)

    monkeypatch.setattr(linalg, "eigsh", eigsh)
    positions = community_positions(graph(random_edges(400, 900), 400), 2)
    assert (positions[:, 0] == 1).all()
    assert (positions[:, 1] == 0).all()


def test_at_least_one_dimension():
    with pytest.raises(UserError, match="dimensions must be at least 1"):
        community_positions(graph(edges((0, 1)), 2), 0)
