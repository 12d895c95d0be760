"""Scorers: facts of pairs and the literal form by hand, and what is kept of a graph and its features."""

import copy
import math

import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures import pair_facts as measures
from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures, as_features
from gumbel_mpnn.rewiring import scorers as module
from gumbel_mpnn.rewiring.scorers import NodeView, scorers
from helpers import edges, normal, random_edges, randomized
from unit.rewiring.test_gumbel_mpnn import data_with_candidates, model_for

# 0-1, 1-2, 2-3, 3-0, 0-2 and 3-4; candidates 1-3 and 1-4.
SQUARE = PairGraph.build(
    edges((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)), 5, candidate_index=edges((1, 3), (1, 4), (0, 1))
)


def by_pair(values):
    return dict(zip(map(tuple, SQUARE.pair_index.T.tolist()), values.tolist(), strict=True))


@pytest.mark.parametrize("scorer", ["mixed", "class-facts"])
def test_facts_follow_the_weights_of_edges(scorer):
    weight = torch.ones(6)
    graph = PairGraph.build(edges((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)), 5, edge_weight=weight)
    model = scorers[scorer](1, 2, 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.5)
    nodes = NodeView(torch.ones(5, 2), torch.full((1, 5, 2), 0.5), torch.ones(6))
    before = model(nodes, graph)
    graph.pair_weight.mul_(0.1)
    assert (model(nodes, graph) < before).any()


@pytest.mark.parametrize("chunk", [7, 1000])
def test_edges_with_weights_count_as_these_up_to_1_with_a_gradient(chunk, monkeypatch):
    monkeypatch.setattr(measures, "PAIRS_AT_ONCE", chunk)
    given = random_edges(30, 80)
    weight = (1.5 * torch.rand(80, dtype=torch.float64, generator=torch.Generator().manual_seed(0))).requires_grad_()
    graph = PairGraph.build(given, 30, edge_weight=weight, candidate_index=random_edges(30, 60, seed=1))
    (first, second), some = graph.pair_index[:, graph.is_original], graph.pair_weight[graph.is_original].clamp(max=1)
    dense = torch.zeros(30, 30, dtype=torch.float64).index_put((first, second), some)
    dense = dense + dense.T
    expected = (dense @ dense)[graph.pair_index[0], graph.pair_index[1]]
    found = module.common_neighbors(graph)
    torch.testing.assert_close(found, expected)
    factor = torch.arange(1.0, 1 + graph.num_pairs, dtype=torch.float64)
    by_both = [torch.autograd.grad((factor * each).sum(), weight, retain_graph=True)[0] for each in (found, expected)]
    torch.testing.assert_close(*by_both)


def test_all_facts_of_one_pair():
    x = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0], [0.0, 0.0], [3.0, 4.0]])
    row = SQUARE.pair_index.T.tolist().index([1, 4])
    assert module.pair_facts(x, SQUARE)[row].tolist() == pytest.approx(
        [7 / (5 * math.sqrt(2)), 0.0, math.log(2), math.log(3)], abs=1e-6
    )
    torch.testing.assert_close(module.pair_facts(as_features(x * (x < 0)), SQUARE)[:, 0], torch.zeros(8))


@pytest.mark.parametrize("at_once", [1, 10, 35, 10**6])
def test_sparse_features_have_the_same_cosine_however_many_columns_are_dense_at_once(at_once, monkeypatch):
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", at_once)
    x = torch.eye(5).repeat(1, 4) * torch.linspace(0.5, 3, 20)
    x[1, 0], x[4, 7], x[3] = 2.0, -1.0, 0.0
    sparse = as_features(x)
    assert not isinstance(sparse, torch.Tensor)
    expected = torch.nn.functional.cosine_similarity(*x[SQUARE.pair_index])
    torch.testing.assert_close(module.cosine(sparse, SQUARE), expected)
    torch.testing.assert_close(module.cosine(x, SQUARE), expected)


NODES, FEATURES = 12, 7


def scorer_of(features=FEATURES, replicas=2):
    return scorers["literal"](replicas, features, 3)


def view(x, graph):
    return NodeView(x, torch.empty(2, graph.num_nodes, 0), graph.is_original.float())


def few_words():
    """Features with few entries that are not 0, none of which is 1."""
    return normal(NODES, FEATURES) * (normal(NODES, FEATURES, seed=1) > 1.2)


def graph_of(undirected):
    return PairGraph.build(random_edges(NODES, 40), NODES, undirected=undirected)


def with_gradients(scorer, nodes, graph):
    """θ [R, P], and the gradients of a weighted sum of them."""
    theta = scorer(nodes, graph)
    pulled = torch.autograd.grad((theta * normal(*theta.shape, seed=5)).sum(), list(scorer.parameters()))
    return [theta, *pulled]


@pytest.mark.parametrize(("undirected", "expected"), [(False, [[27.5, 51.5]]), (True, [[39.5]])])
def test_the_form_by_hand(undirected, expected):
    scorer = scorer_of(2, replicas=1)
    with torch.no_grad():
        scorer.matrix.copy_(torch.tensor([[[1.0, 2.0], [4.0, 8.0]]]))
        scorer.bias.fill_(0.5)
    x = torch.tensor([[3.0, 0.0], [1.0, 4.0]])
    graph = PairGraph.build(edges((0, 1), (1, 0)), 2, undirected=undirected)
    # (3, 0) W = (3, 6), and (3, 6) · (1, 4) = 27; (1, 4) W = (17, 34), and (17, 34) · (3, 0) = 51
    assert scorer(view(x, graph), graph).tolist() == expected


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("at_once", [1, 3 * NODES, 100 * NODES])
def test_sparse_features_and_blocks_give_the_same_values_and_gradients(undirected, at_once, monkeypatch):
    scorer, graph, x = randomized(scorer_of()), graph_of(undirected), few_words()
    expected = with_gradients(scorer, view(x, graph), graph)
    sparse = as_features(x)
    assert isinstance(sparse, SparseFeatures)
    monkeypatch.setattr(module, "BLOCK", at_once)
    fresh = PairGraph.build(graph.pair_index, NODES, undirected=undirected)
    for features in (x, sparse):
        for found, wanted in zip(with_gradients(scorer, view(features, fresh), fresh), expected, strict=True):
            torch.testing.assert_close(found, wanted)


def test_it_starts_as_torchs_bilinear():
    count = 100
    scorer, bound = scorer_of(count, replicas=3), 0.1
    scorer.init_parameters(ReplicaRNG([0, 1, 2], "test"))
    torchs = torch.nn.Bilinear(count, count, 1)
    for ours, theirs in ((scorer.matrix, torchs.weight), (scorer.bias, torchs.bias)):
        assert float(theirs.detach().abs().max()) <= bound
        assert float(ours.detach().abs().max()) <= bound
    for matrix in scorer.matrix.detach():
        assert float(matrix.std()) == pytest.approx(float(torchs.weight.detach().std()), rel=0.02)
        assert float(matrix.abs().max()) > 0.99 * bound
    assert not torch.equal(scorer.matrix[0], scorer.matrix[1])
    alone = scorer_of(count, replicas=1)
    alone.init_parameters(ReplicaRNG([1], "test"))
    assert torch.equal(alone.matrix[0], scorer.matrix[1])


each_scorer = pytest.mark.parametrize("scorer", list(scorers))


@each_scorer
def test_features_that_are_learned(scorer):
    data = data_with_candidates()
    model = model_for(data, scorer=scorer, evaluation="expected").eval()
    with torch.no_grad():
        model(data)
    data.x = torch.nn.Parameter(data.x)
    with torch.no_grad():
        model(data)
    grads = []
    for _ in range(2):
        data.x.grad = None
        model(data).square().sum().backward()
        grads.append(data.x.grad)
    data.x.grad = None
    copy.deepcopy(model)(data).square().sum().backward()
    assert torch.equal(grads[0], data.x.grad)
    assert torch.equal(grads[1], data.x.grad)


@each_scorer
def test_features_changed_in_place(scorer):
    data = data_with_candidates()
    model = model_for(data, scorer=scorer).eval()
    before = model(data)
    data.x.neg_()[0] += 1
    after = model(data)
    assert not torch.equal(before, after)
    assert torch.equal(after, copy.deepcopy(model)(Data.from_dict(copy.deepcopy(data.to_dict()))))


@each_scorer
def test_replicas_on_a_graph_without_pairs(scorer):
    model = gm.GumbelMPNN(in_channels=4, out_channels=2, hidden_channels=8, scorer=scorer, replicas=3)
    data = Data(x=torch.randn(5, 4), edge_index=torch.empty(2, 0, dtype=torch.int64))
    out, graph = model(data, return_graph=True)
    out.sum().backward()
    assert (out.shape, graph.weight.shape) == ((3, 5, 2), (3, 0))
    assert model.rewire(data).num_edges == 0
