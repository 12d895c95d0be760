"""The order of nodes by content; properties/test_node_order has more."""

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph, content_order, in_order, pairs
from gumbel_mpnn.util import tensors
from helpers import edges, normal

NO_EDGES = PairGraph.build(edges(), 40)


def renumbering(nodes):
    return torch.randperm(nodes, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("length", [3, 4, 5, 6, 7])
def test_edges_tell_nodes_apart_up_to_three_hops_away(length):
    """A path whose ends only the features of node 0 tell apart."""
    path = edges(*((k, k + 1) for k in range(length - 1)))
    x, new = torch.zeros(length, 1), renumbering(length)
    x[0] = 1
    place = torch.empty_like(new)
    place[new] = torch.arange(length)
    first = content_order(PairGraph.build(path, length), [x])
    again = content_order(PairGraph.build(place[path], length), [x[new]])
    near = [node for node in first.tolist() if node <= 3]  # farther nodes but for the last may look alike
    assert [node for node in new[again].tolist() if node <= 3] == near


def test_weights_and_directions_are_not_looked_at():
    index, x = edges((0, 1), (1, 2), (3, 0)), normal(4, 2)
    plain = content_order(PairGraph.build(index, 4), [x])
    weighted = PairGraph.build(index, 4, undirected=False, edge_weight=torch.tensor([0.5, 2.0, 3.0]))
    assert torch.equal(content_order(weighted, [x]), plain)
    assert torch.equal(content_order(PairGraph.build(index.flip(0), 4), [x]), plain)


def test_minus_0_is_0():
    x = (torch.arange(40) % 7).float()[:, None]
    assert torch.equal(content_order(NO_EDGES, [torch.where(x == 0, -x, x)]), content_order(NO_EDGES, [x]))


def test_all_features_and_the_column_they_stand_in_count(monkeypatch):
    x = normal(40, 3)
    whole = content_order(NO_EDGES, [x])
    assert not torch.equal(content_order(NO_EDGES, [x.flip(1)]), whole)
    assert not torch.equal(content_order(NO_EDGES, [x, torch.arange(40)]), whole)
    assert torch.equal(content_order(NO_EDGES, [x.to_sparse()]), whole)
    monkeypatch.setattr(tensors, "MOST_DENSE", 0)
    assert torch.equal(content_order(NO_EDGES, [x.to_sparse()]), whole)
    monkeypatch.setattr(pairs, "ENTRIES_AT_ONCE", 10)
    assert torch.equal(content_order(NO_EDGES, [x]), whole)


@pytest.mark.parametrize("features", [[], [torch.zeros(0, 3)]])
def test_a_graph_without_nodes(features):
    assert content_order(PairGraph.build(edges(), 0), features).tolist() == []


def test_a_graph_in_another_order():
    """Node k of the result is node order[k], by hand."""
    data = Data(
        x=torch.tensor([[0.0], [1.0], [2.0]]),
        y=torch.tensor([5, 6, 7]),
        names=["a", "b", "c"],
        edge_index=edges((0, 1), (1, 2)),
        candidate_index=edges((0, 2)),
        title="kept",
        num_nodes=3,
    )
    out = in_order(data, torch.tensor([2, 0, 1]))
    assert out.x.flatten().tolist() == [2, 0, 1]
    assert out.y.tolist() == [7, 5, 6]
    assert out.names == ["c", "a", "b"]
    assert out.edge_index.T.tolist() == [[1, 2], [2, 0]]
    assert out.candidate_index.T.tolist() == [[1, 0]]
    assert (out.title, out.num_nodes) == ("kept", 3)
    assert data.y.tolist() == [5, 6, 7]
    renumbered = PairGraph.build(edges((0, 1), (1, 2)), 3).renumbered(torch.tensor([2, 0, 1])).pair_index
    assert sorted(map(tuple, renumbered.T.tolist())) == [(0, 2), (1, 2)]
