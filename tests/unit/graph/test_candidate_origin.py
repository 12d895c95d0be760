"""Candidates of nodes that were renumbered since."""

import warnings

import pytest
import torch
from torch_geometric.data import Batch, Data

from gumbel_mpnn._util.errors import DataWarning
from gumbel_mpnn.candidates import Local, TwoHop
from gumbel_mpnn.data import add_noise_edges
from gumbel_mpnn.graph import PairGraph, digest_of_nodes, warn_if_stale, without_candidates
from gumbel_mpnn.graph.content_order import in_order
from helpers import edges, normal

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

    def test_of_one_graph_of_a_batch(self):
        graphs = [with_candidates(seed=k) for k in range(3)]
        assert not is_told(Batch.from_data_list(graphs))
        graphs[1] = permuted(graphs[1], REVERSED)
        assert is_told(Batch.from_data_list(graphs))

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

    def test_of_the_graphs_of_a_batch(self):
        batch = TwoHop(per_node=2)(Batch.from_data_list([path(), path(6, seed=1)]))
        assert not is_told(batch)
        for graph, nodes in zip(batch.to_data_list(), (8, 6), strict=True):
            assert graph.candidate_of.tolist() == digest_of_nodes(path(nodes, seed=int(nodes == 6))).tolist()
            assert not is_told(graph)


def test_the_digest_counts_nodes_and_knows_their_order():
    one, other = digest_of_nodes(path()), digest_of_nodes(in_order(path(), torch.tensor(REVERSED)))
    assert one.shape == (1, 3)
    assert one[0, 0] == 8
    assert one[0, :2].tolist() == other[0, :2].tolist()
    assert one[0, 2] != other[0, 2]


def test_it_goes_with_the_candidates():
    assert "candidate_of" not in without_candidates(with_candidates())
