"""The order of nodes by content, and candidates of nodes that were renumbered; properties/test_node_order has more."""

import warnings

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.candidates import Local, TwoHop
from gumbel_mpnn.data import add_noise_edges
from gumbel_mpnn.graph import PairGraph, digest_of_nodes, order, warn_if_stale, without_candidates
from gumbel_mpnn.graph.order import content_order, in_order
from gumbel_mpnn.util import tensors
from gumbel_mpnn.util.errors import DataWarning
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
    monkeypatch.setattr(order, "ENTRIES_AT_ONCE", 10)
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
    pairs = PairGraph.build(edges((0, 1), (1, 2)), 3).renumbered(torch.tensor([2, 0, 1])).pair_index
    assert sorted(map(tuple, pairs.T.tolist())) == [(0, 2), (1, 2)]


SENTENCE = (
    "the candidate_index of this graph was computed before its nodes were renumbered or left out, so it joins other"
    " nodes now: delete it and compute the candidates again"
)


def path(nodes=8, seed=0):
    return Data(x=normal(nodes, 3, seed=seed).float(), edge_index=edges(*((k, k + 1) for k in range(nodes - 1))))


def with_candidates(nodes=8, seed=0):
    return TwoHop(per_node=2)(path(nodes, seed))


def permuted(data, order):
    """The graph with its nodes in another order, but for the candidates, which PyG does not renumber."""
    out = in_order(data, torch.tensor(order))
    out.candidate_index, out.candidate_of = data.candidate_index, data.candidate_of
    return out


REVERSED = [7, 6, 5, 4, 3, 2, 1, 0]


def is_told(data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stale = warn_if_stale(data)
    assert [str(warning.message) for warning in caught] == [SENTENCE] * stale
    return stale


class TestIsTold:
    def test_of_renumbered_nodes(self):
        assert is_told(permuted(with_candidates(), REVERSED))
        assert is_told(permuted(with_candidates(), [1, 0, 2, 3, 4, 5, 6, 7]))

    def test_of_a_subgraph(self):
        assert is_told(with_candidates().subgraph(torch.arange(7)))

    def test_of_a_graph_without_features_that_lost_nodes(self):
        data = TwoHop(per_node=2)(Data(edge_index=path().edge_index, num_nodes=8))
        assert not is_told(data)
        data.num_nodes = 7
        assert is_told(data)

    def test_when_the_pairs_are_laid_out_and_when_others_are_added(self):
        with pytest.warns(DataWarning, match="was computed before its nodes were renumbered"):
            PairGraph.of(permuted(with_candidates(), REVERSED))
        with pytest.warns(DataWarning, match="was computed before its nodes were renumbered"):
            Local()(permuted(with_candidates(), REVERSED))


class TestIsNotTold:
    def test_of_fresh_candidates(self):
        for data in (with_candidates(), Local()(with_candidates()), with_candidates().clone(), with_candidates().cpu()):
            assert not is_told(data)

    def test_of_candidates_that_say_nothing(self):
        data = path()
        data.candidate_index = edges((0, 7))
        assert not is_told(data)

    def test_of_other_edges(self):
        data = with_candidates()
        data.y = torch.arange(8) % 2
        assert not is_told(add_noise_edges(data, 3, nodes=[0, 1]))
        data.edge_index = edges((0, 1))
        assert not is_told(data)

    def test_of_other_features(self):
        data = with_candidates()
        for x in (data.x / data.x.norm(dim=1, keepdim=True), data.x.double(), data.x.to_sparse(), data.x[:, :2]):
            data.x = x
            assert not is_told(data)


def test_the_digest_counts_nodes_and_knows_their_order():
    one, other = digest_of_nodes(path()), digest_of_nodes(in_order(path(), torch.tensor(REVERSED)))
    assert one.shape == (1, 3)
    assert one[0, 0] == 8
    assert one[0, :2].tolist() == other[0, :2].tolist()
    assert one[0, 2] != other[0, 2]


def test_it_goes_with_the_candidates():
    assert "candidate_of" not in without_candidates(with_candidates())
