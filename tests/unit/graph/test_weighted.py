from math import log, sqrt

import pytest
import torch

from gumbel_mpnn.graph import PairGraph, WeightedGraph
from helpers import edges, normal

PATH = PairGraph.build(edges((0, 1), (1, 2)), 3)
WEIGHT = torch.tensor([2.0, 3.0], dtype=torch.float64)
X = torch.tensor([[[1.0], [2.0], [4.0]]], dtype=torch.float64)


def path(*weights):
    return WeightedGraph(PATH, torch.tensor(weights, dtype=torch.float64) if weights else None, torch.float64)


def assert_values(actual, expected):
    expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(actual.squeeze(-1).squeeze(0), expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("weights", "degree", "total", "mean"),
    [
        ((), [1.0, 2.0, 1.0], [2.0, 5.0, 2.0], [2.0, 2.5, 2.0]),
        ((2.0, 3.0), [2.0, 5.0, 3.0], [4.0, 14.0, 6.0], [2.0, 2.8, 2.0]),
        ((0.5, 0.0), [0.5, 0.5, 0.0], [1.0, 0.5, 0.0], [2.0, 1.0, 0.0]),
        ((0.0, 0.0), [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ],
)
def test_degree_sum_and_mean(weights, degree, total, mean):
    graph = path(*weights)
    assert_values(graph.degree, degree)
    assert_values(graph.inverse_root_degree, [(1 + d) ** -0.5 for d in degree])
    assert_values(graph.graph.propagate_arcs(X, graph.arc_weight), total)
    assert_values(graph.mean(X), mean)


@pytest.mark.parametrize("learned", [True, False])
def test_symmetric_normalisation(learned):
    def normalised(*weights):
        weight = torch.tensor(weights, dtype=torch.float64, requires_grad=learned)
        return WeightedGraph(PATH, weight, torch.float64).symmetric(X).detach()

    expected = [4 / sqrt(18) + 1 / 3, 2 / sqrt(18) + 12 / sqrt(24) + 2 / 6, 6 / sqrt(24) + 4 / 4]
    assert_values(normalised(2.0, 3.0), expected)
    assert_values(normalised(0.0, 0.0), [1.0, 2.0, 4.0])


TARGET = torch.tensor([[[0.0, log(2), 0.0]]], dtype=torch.float64)
SOURCE = torch.tensor([[[log(3), 0.0, log(5)]]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((), [(1 * 2 + 3 * 1) / 4, (6 * 1 + 10 * 4 + 2 * 2) / 18, (1 * 2 + 5 * 4) / 6]),
        ((2.0, 3.0), [(2 * 2 + 3 * 1) / 5, (12 * 1 + 30 * 4 + 2 * 2) / 44, (3 * 2 + 5 * 4) / 8]),
        ((0.0, 1.0), [1.0, (10 * 4 + 2 * 2) / 12, (1 * 2 + 5 * 4) / 6]),
        ((0.0, 0.0), [1.0, 2.0, 4.0]),
    ],
)
def test_attention(weights, expected):
    assert_values(path(*weights).attend(X, TARGET, SOURCE, 0.2), expected)


def test_attention_leaks_negative_scores():
    scores = -2 * log(2) * torch.ones(1, 1, 3, dtype=torch.float64)
    out = path().attend(X, scores, torch.tensor([[[0.0, 0.0, 4 * log(2)]]], dtype=torch.float64), 0.5)
    assert_values(out, [(0.5 * 2 + 0.5 * 1) / 1, (0.5 * 1 + 4 * 4 + 0.5 * 2) / 5, (0.5 * 2 + 4 * 4) / 4.5])


def test_attention_does_not_change_when_all_scores_grow():
    small, large = (path(2.0, 0.0).attend(X, TARGET + shift, SOURCE, 0.2) for shift in (0, 2000.0))
    torch.testing.assert_close(large, small, rtol=1e-11, atol=0)


@pytest.mark.parametrize("score", [1e2, 1e4, 1e30])
def test_an_absent_neighbor_with_a_huge_score_is_not_seen(score):
    weight = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    target = torch.zeros(1, 1, 3, dtype=torch.float64, requires_grad=True)
    source = torch.tensor([[[score, 0.0, 0.0]]], dtype=torch.float64, requires_grad=True)
    out = WeightedGraph(PATH, weight, torch.float64).attend(X, target, source, 0.2)
    assert_values(out, [1.0, 3.0, 3.0])
    out.sum().backward()
    assert all(torch.isfinite(tensor.grad).all() for tensor in (weight, target, source))


def test_attention_gives_every_head_its_channels_and_its_replicas_weights():
    weight = torch.tensor([[2.0, 3.0], [0.0, 1.0]], dtype=torch.float64)
    x, target, source = normal(2, 3, 6, seed=1), normal(2, 3, 3, seed=2), normal(2, 3, 3, seed=3)
    together = WeightedGraph(PATH, weight, torch.float64).attend(x, target, source, 0.2)
    for replica in range(2):
        one, graph = slice(replica, replica + 1), WeightedGraph(PATH, weight[replica], torch.float64)
        for head in range(3):
            mine, channels = slice(head, head + 1), slice(2 * head, 2 * head + 2)
            alone = graph.attend(x[one, :, channels], target[one, mine], source[one, mine], 0.2)
            torch.testing.assert_close(together[one, :, channels], alone)


def test_replicas_with_their_own_weights():
    weight = torch.stack([WEIGHT, torch.tensor([0.0, 1.0], dtype=torch.float64)])
    graph = WeightedGraph(PATH, weight, torch.float64)
    x = torch.cat([X, 10 * X])
    assert graph.degree.squeeze(-1).tolist() == [[2.0, 5.0, 3.0], [0.0, 1.0, 1.0]]
    mean = torch.tensor([[2.0, 2.8, 2.0], [0.0, 40.0, 20.0]], dtype=torch.float64)
    torch.testing.assert_close(graph.mean(x).squeeze(-1), mean, rtol=1e-14, atol=0)


@pytest.mark.parametrize("aggregate", ["mean", "symmetric"])
def test_gradients_of_the_weights(aggregate):
    weight = WEIGHT.clone().requires_grad_()
    x = normal(1, 3, 2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda w, z: getattr(WeightedGraph(PATH, w, torch.float64), aggregate)(z), (weight, x)
    )


def test_gradients_of_attention():
    inputs = [WEIGHT.clone(), normal(1, 3, 4, seed=1), normal(1, 2, 3, seed=2), normal(1, 2, 3, seed=3)]
    assert torch.autograd.gradcheck(
        lambda w, x, target, source: WeightedGraph(PATH, w, torch.float64).attend(x, target, source, 0.2),
        [tensor.requires_grad_() for tensor in inputs],
    )


def test_gradient_of_an_absent_pair_is_that_of_adding_it():
    weight = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    path_graph = WeightedGraph(PATH, weight, torch.float64)
    path_graph.symmetric(X).sum().backward()
    step = 1e-7
    with torch.no_grad():
        ahead = WeightedGraph(PATH, weight + torch.tensor([step, 0.0]), torch.float64).symmetric(X).sum()
        slope = (ahead - path_graph.symmetric(X).sum()) / step
    torch.testing.assert_close(weight.grad[0], slope, rtol=1e-5, atol=1e-5)
