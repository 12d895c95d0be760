"""Counts of nodes, edges, degrees and components, and spectral gaps, by hand."""

import math

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.data import check
from gumbel_mpnn.measures import (
    largest_component,
    measure,
    node_degrees,
    num_components,
    num_edges,
    num_nodes,
    spectral_gap,
    structure,
)
from helpers import edges, small_data

DEGREES = ["degree_min", "degree_mean", "degree_max"]
# A triangle 1 2 4, an edge 0 3, and node 5 with nothing but a self-loop; some edges listed again.
GRAPH = Data(edge_index=edges((1, 2), (2, 4), (4, 1), (1, 4), (0, 3), (0, 3), (5, 5)), num_nodes=6)


def test_counts():
    assert (num_nodes(GRAPH), num_edges(GRAPH), num_edges(GRAPH, "as_listed")) == (6, 4, 7)
    assert node_degrees(GRAPH).tolist() == [1, 2, 2, 1, 2, 0]
    assert node_degrees(GRAPH, "as_listed").tolist() == [2, 3, 2, 2, 3, 2]
    assert num_components(GRAPH) == 3
    assert list(measure(GRAPH, DEGREES).values()) == pytest.approx([0, 8 / 6, 2])


def test_a_graph_without_edges():
    data = Data(edge_index=edges(), num_nodes=3)
    assert (num_edges(data), num_components(data)) == (0, 3)
    assert list(measure(data, DEGREES).values()) == [0, 0, 0]


def test_the_same_counts_as_the_check_of_data():
    data = small_data()
    facts = vars(check(data))
    assert measure(data, names := ["num_nodes", "num_edges", *DEGREES]) == {name: facts[name] for name in names}


def test_the_largest_component_where_labels_alone_tell_the_number_of_nodes():
    part = largest_component(Data(edge_index=edges((0, 1), (1, 2), (2, 0)), y=torch.arange(5)))
    assert part.y.tolist() == [0, 1, 2]
    assert num_nodes(part) == part.num_nodes == 3
    alone = largest_component(Data(edge_index=edges(), y=torch.arange(5)))
    assert (alone.y.tolist(), alone.num_nodes) == ([0], 1)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32])
def test_the_largest_component_of_small_integers(dtype):
    part = largest_component(Data(edge_index=GRAPH.edge_index.to(dtype), num_nodes=6))
    assert part.edge_index.T.tolist() == [[0, 1], [1, 2], [2, 0], [0, 2]]


def test_the_largest_component_keeps_what_belongs_to_its_nodes_and_edges():
    data = Data(
        x=torch.arange(6.0)[:, None],
        y=torch.arange(6),
        edge_index=GRAPH.edge_index,
        edge_weight=torch.arange(7.0),
        candidate_index=edges((0, 5)),
        node_ids=list("abcdef"),
    )
    part = largest_component(data)
    assert part.y.tolist() == [1, 2, 4]
    assert part.x.flatten().tolist() == [1, 2, 4]
    assert part.node_ids == ["b", "c", "e"]
    assert part.edge_index.T.tolist() == [[0, 1], [1, 2], [2, 0], [0, 2]]
    assert part.edge_weight.tolist() == [0, 1, 2, 3]
    assert "candidate_index" not in part
    assert "candidate_index" in data
    assert (num_nodes(part), num_components(part)) == (3, 1)


def graph_of(graph):
    return Data(edge_index=edges(*graph.edges), num_nodes=graph.number_of_nodes())


class TestSpectralGap:
    @pytest.fixture(params=["dense", "sparse"], autouse=True)
    def solver(self, request, monkeypatch):
        if request.param == "sparse":
            monkeypatch.setattr(structure, "DENSE_NODES", 3)

    def test_of_known_graphs(self):
        known = {
            networkx.complete_graph(40): 40 / 39,
            networkx.path_graph(60): 1 - math.cos(math.pi / 59),
            networkx.cycle_graph(41): 1 - math.cos(2 * math.pi / 41),  # an eigenvalue that occurs twice
            networkx.star_graph(20): 1,
            networkx.path_graph(2): 2,
        }
        assert [spectral_gap(graph_of(graph)) for graph in known] == pytest.approx(list(known.values()), rel=1e-6)

    def test_a_disconnected_graph_has_none(self):
        assert spectral_gap(Data(edge_index=edges((0, 1), (1, 2)), num_nodes=4)) == 0
        assert spectral_gap(Data(edge_index=edges(), num_nodes=2)) == 0
        assert math.isnan(spectral_gap(Data(edge_index=edges((0, 0)), num_nodes=1)))


@pytest.mark.parametrize(
    "graph",
    [
        networkx.grid_2d_graph(18, 18, periodic=True),
        networkx.balanced_tree(2, 8),
        networkx.wheel_graph(321),
        networkx.connected_caveman_graph(55, 6),
    ],
    ids=["torus", "tree", "wheel", "caves"],
)
def test_the_gap_of_a_graph_too_large_to_solve_densely(graph):
    assert len(graph) > structure.DENSE_NODES
    known = np.linalg.eigvalsh(networkx.normalized_laplacian_matrix(graph).toarray())
    data = graph_of(networkx.convert_node_labels_to_integers(graph))
    assert spectral_gap(data) == pytest.approx(known[1], abs=1e-8)


def test_the_gap_of_a_long_path_for_which_the_iteration_does_not_converge():
    assert spectral_gap(graph_of(networkx.path_graph(6000))) == pytest.approx(1 - math.cos(math.pi / 5999), rel=1e-6)
