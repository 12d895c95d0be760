"""Facts of a pair, worked out by hand on a square with one diagonal and a tail."""

import math

import pytest
import torch

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures import pair_facts as measures
from gumbel_mpnn.nn import as_features
from gumbel_mpnn.rewiring.edge_models import NodeView, facts, scorers
from helpers import LargestOutput, edges, random_edges

# 0-1, 1-2, 2-3, 3-0, 0-2 and 3-4; candidates 1-3 and 1-4.
SQUARE = PairGraph.build(
    edges((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)), 5, candidate_index=edges((1, 3), (1, 4), (0, 1))
)


def by_pair(values):
    return dict(zip(map(tuple, SQUARE.pair_index.T.tolist()), values.tolist(), strict=True))


def test_common_neighbors_by_hand():
    assert by_pair(facts.common_neighbors(SQUARE)) == {
        (0, 1): 1,
        (0, 2): 2,
        (0, 3): 1,
        (1, 2): 1,
        (1, 3): 2,
        (1, 4): 0,
        (2, 3): 1,
        (3, 4): 0,
    }


@pytest.fixture(params=["_merge", "_look_up"])
def way(request, monkeypatch):
    """Both ways to find common neighbors; the second is that of a GPU."""
    monkeypatch.setattr(measures, "_merge", getattr(measures, request.param))


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_common_neighbors_equal_the_squared_adjacency(chunk, way, monkeypatch):
    monkeypatch.setattr(measures, "PAIRS_AT_ONCE", chunk)
    graph = PairGraph.build(random_edges(30, 80), 30, candidate_index=random_edges(30, 60, seed=1))
    dense = torch.zeros(30, 30, dtype=torch.int64)
    first, second = graph.pair_index[:, graph.is_original]
    dense[first, second] = dense[second, first] = 1
    assert torch.equal(facts.common_neighbors(graph), (dense @ dense)[graph.pair_index[0], graph.pair_index[1]])


def test_a_hub_and_its_many_neighbors(way):
    """0 is joined to all others, and 1 to 50, 60 and 99."""
    spokes = edges(*((0, node) for node in range(1, 100)), (1, 50), (1, 60), (1, 99))
    graph = PairGraph.build(spokes, 100, candidate_index=edges((50, 60), (2, 99)))
    found = dict(zip(map(tuple, graph.pair_index.T.tolist()), facts.common_neighbors(graph).tolist(), strict=True))
    assert {pair: count for pair, count in found.items() if pair in ((0, 1), (0, 2), (0, 50), (1, 99), (50, 60))} == {
        (0, 1): 3,
        (0, 2): 0,
        (0, 50): 1,
        (1, 99): 1,
        (50, 60): 2,
    }
    assert sum(found.values()) == 3 + 3 + 3 + 2 + 1


@pytest.mark.parametrize("scorer", ["mixed", "class-facts"])
def test_facts_follow_the_weights_of_edges(scorer):
    weight = torch.ones(6)
    graph = PairGraph.build(edges((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)), 5, edge_weight=weight)
    model = scorers[scorer](1, 2, 2, 4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.5)
    nodes = NodeView(torch.ones(5, 2), torch.full((1, 5, 2), 0.5), torch.ones(6))
    before = model(nodes, graph)
    graph.pair_weight.mul_(0.1)
    assert (model(nodes, graph) < before).any()


@pytest.mark.parametrize("chunk", [7, 1000])
def test_edges_with_weights_count_as_these_up_to_1_with_a_gradient(chunk, way, monkeypatch):
    monkeypatch.setattr(measures, "PAIRS_AT_ONCE", chunk)
    given = random_edges(30, 80)
    weight = (1.5 * torch.rand(80, dtype=torch.float64, generator=torch.Generator().manual_seed(0))).requires_grad_()
    graph = PairGraph.build(given, 30, edge_weight=weight, candidate_index=random_edges(30, 60, seed=1))
    (first, second), some = graph.pair_index[:, graph.is_original], graph.pair_weight[graph.is_original].clamp(max=1)
    dense = torch.zeros(30, 30, dtype=torch.float64).index_put((first, second), some)
    dense = dense + dense.T
    expected = (dense @ dense)[graph.pair_index[0], graph.pair_index[1]]
    found = facts.common_neighbors(graph)
    torch.testing.assert_close(found, expected)
    factor = torch.arange(1.0, 1 + graph.num_pairs, dtype=torch.float64)
    by_both = [torch.autograd.grad((factor * each).sum(), weight, retain_graph=True)[0] for each in (found, expected)]
    torch.testing.assert_close(*by_both)


def test_all_facts_of_one_pair():
    x = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0], [0.0, 0.0], [3.0, 4.0]])
    row = SQUARE.pair_index.T.tolist().index([1, 4])
    assert facts.pair_facts(x, SQUARE)[row].tolist() == pytest.approx(
        [7 / (5 * math.sqrt(2)), 0.0, math.log(2), math.log(3)], abs=1e-6
    )
    torch.testing.assert_close(facts.pair_facts(as_features(x * (x < 0)), SQUARE)[:, 0], torch.zeros(8))


@pytest.mark.parametrize("at_once", [1, 10, 35, 10**6])
def test_sparse_features_have_the_same_cosine_however_many_columns_are_dense_at_once(at_once, monkeypatch):
    monkeypatch.setattr(facts, "NUMBERS_AT_ONCE", at_once)
    x = torch.eye(5).repeat(1, 4) * torch.linspace(0.5, 3, 20)
    x[1, 0], x[4, 7], x[3] = 2.0, -1.0, 0.0
    sparse = as_features(x)
    assert not isinstance(sparse, torch.Tensor)
    expected = torch.nn.functional.cosine_similarity(*x[SQUARE.pair_index])
    torch.testing.assert_close(facts.cosine(sparse, SQUARE), expected)
    torch.testing.assert_close(facts.cosine(x, SQUARE), expected)


def test_there_is_no_dense_copy_of_sparse_features(monkeypatch):
    monkeypatch.setattr(facts, "NUMBERS_AT_ONCE", 500)
    graph = PairGraph.build(random_edges(50, 100), 50)
    sparse = as_features(torch.eye(50).repeat(1, 40))
    graph.pairs  # noqa: B018 - laid out once
    with LargestOutput() as largest:
        facts.cosine(sparse, graph)
    assert largest.elements <= max(len(sparse.values), 50 * 50) < 50 * 2000


def test_a_graph_without_pairs_has_no_facts():
    assert facts.pair_facts(torch.ones(3, 2), PairGraph.build(edges(), 3)).shape == (0, 4)
