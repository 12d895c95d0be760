"""Counts of nodes, edges, degrees and components, by hand."""

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.data import check
from gumbel_mpnn.measures import (
    degree_max,
    degree_mean,
    degree_min,
    largest_component,
    node_degrees,
    num_components,
    num_edges,
    num_nodes,
)
from helpers import edges, small_data

# A triangle 1 2 4, an edge 0 3, and node 5 with nothing but a self-loop; some edges listed again.
GRAPH = Data(edge_index=edges((1, 2), (2, 4), (4, 1), (1, 4), (0, 3), (0, 3), (5, 5)), num_nodes=6)


def test_counts():
    assert (num_nodes(GRAPH), num_edges(GRAPH), num_edges(GRAPH, "as_listed")) == (6, 4, 7)
    assert node_degrees(GRAPH).tolist() == [1, 2, 2, 1, 2, 0]
    assert node_degrees(GRAPH, "as_listed").tolist() == [2, 3, 2, 2, 3, 2]
    assert (degree_min(GRAPH), degree_max(GRAPH), num_components(GRAPH)) == (0, 2, 3)
    assert degree_mean(GRAPH) == pytest.approx(8 / 6)


def test_a_graph_without_edges():
    data = Data(edge_index=edges(), num_nodes=3)
    assert (num_edges(data), degree_max(data), degree_mean(data), num_components(data)) == (0, 0, 0, 3)


def test_the_same_counts_as_the_check_of_data():
    data = small_data()
    facts = check(data)
    assert (num_nodes(data), num_edges(data)) == (facts.num_nodes, facts.num_edges)
    assert (degree_min(data), degree_max(data)) == (facts.degree_min, facts.degree_max)
    assert degree_mean(data) == pytest.approx(facts.degree_mean)


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
