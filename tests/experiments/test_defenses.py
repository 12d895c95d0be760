"""GCN-Jaccard, GNNGuard, soft medians and kNN-GCN against their formulas, written out slowly."""

import math

import pytest
import torch

import gumbel_mpnn as gm
from experiments.defenses import GNNGuard, SoftMedian
from gumbel_mpnn.baselines import Jaccard
from gumbel_mpnn.graph import PairGraph
from helpers import (
    both_ways,
    changed,
    edges,
    normal,
    random_edges,
    randomized,
    small_data,
)

NODES, FEATURES, CLASSES, WIDTH = 12, 5, 3, 6
GRAPH = PairGraph.build(random_edges(NODES, 30), NODES)
X = normal(NODES, FEATURES)
QUICK = {"model": {"hidden_channels": 8}, "train": {"epochs": 5, "lr": 0.01}}
each_defense = pytest.mark.parametrize("name", ["jaccard", "gnn-guard", "soft-median", "knn"])
each_layered = pytest.mark.parametrize("model", [GNNGuard, SoftMedian])


def make(model, **options):
    """A model in float64 and evaluation mode whose every parameter is random."""
    return randomized(model(FEATURES, out_channels=CLASSES, hidden_channels=WIDTH, **options)).eval()


def neighbors_of(node, graph=GRAPH):
    return [int(source) for source, target in graph.edge_index.T.tolist() if target == node]


@torch.no_grad()
def forward(model, aggregate):
    """Logits of a model of two layers whose messages `aggregate` collects: layer, inputs x W and x → [N, D]."""
    hidden = X
    for layer, conv in enumerate(model.convs):
        sent = hidden @ conv.linear.weight[0]
        hidden = torch.relu(aggregate(layer, sent, hidden) + conv.bias[0])
    return hidden @ model.head.weight[0] + model.head.bias[0]


def test_a_run_of_jaccard_is_the_backbone_on_the_remaining_edges():
    data = small_data()
    settings = {"model": {**QUICK["model"], "threshold": 0.3}, "train": QUICK["train"]}
    run = gm.fit(data, "gcn-jaccard", seeds=2, preset=None, settings=settings)
    left = Jaccard(0.3)(data)
    assert 0 < left.num_edges < data.num_edges
    same = gm.fit(left, "gcn", seeds=2, preset=None, settings=QUICK)
    assert [record.test for record in run.records] == [record.test for record in same.records]
    assert torch.equal(run.rewire().edge_index, left.edge_index)
    noisy = changed(data, edge_index=torch.cat([data.edge_index, random_edges(24, 200, seed=5)], 1))
    assert run.scores(noisy) == same.scores(Jaccard(0.3)(noisy))


def guarded(model):
    """GNNGuard node by node: similarities, what is left of them, normalization, memory, weighted sum."""
    before = {}

    def aggregate(layer, sent, hidden):
        rows = []
        for u in range(NODES):
            similarity = {v: float(torch.cosine_similarity(hidden[u], hidden[v], dim=0)) for v in neighbors_of(u)}
            similarity = {v: s for v, s in similarity.items() if s >= model.threshold}
            count, total = len(similarity), sum(similarity.values())
            shares = dict.fromkeys(neighbors_of(u), 0.0)
            shares |= {v: s / total * count / (count + 1) for v, s in similarity.items()} | {u: 1 / (count + 1)}
            if layer:
                shares = {v: model.memory * before[u][v] + (1 - model.memory) * s for v, s in shares.items()}
            before[u] = shares
            rows.append(sum(share * sent[v] for v, share in shares.items()))
        return torch.stack(rows)

    return forward(model, aggregate)


@pytest.mark.parametrize("options", [{}, {"threshold": 0.4, "memory": 0.2}, {"memory": 0.0, "threshold": 0.0}])
def test_the_formula_of_gnn_guard(options):
    model = make(GNNGuard, **options)
    torch.testing.assert_close(model(X, GRAPH), guarded(model))


def medians(model):
    """Soft medians node by node, from sorted values of each channel."""

    def aggregate(_, sent, hidden):
        degree = {u: 1 + len(neighbors_of(u)) for u in range(NODES)}
        rows = []
        for u in range(NODES):
            around = [*neighbors_of(u), u]
            a = {v: 1 / math.sqrt(degree[u] * degree[v]) for v in around}
            median = []
            for channel in range(sent.shape[1]):
                below = 0.0
                for v in sorted(around, key=lambda v, c=channel: float(sent[v, c])):
                    below += a[v]
                    if below >= sum(a.values()) / 2 - 1e-9:
                        median.append(float(sent[v, channel]))
                        break
            apart = {v: float((sent[v] - torch.tensor(median, dtype=torch.float64)).norm()) for v in around}
            s = {v: a[v] * math.exp(-apart[v] / (model.temperature * math.sqrt(sent.shape[1]))) for v in around}
            rows.append(sum(a.values()) / sum(s.values()) * sum(s[v] * sent[v] for v in around))
        return torch.stack(rows)

    return forward(model, aggregate)


@pytest.mark.parametrize("temperature", [0.05, 0.5, 3.0])
def test_the_formula_of_soft_medians(temperature):
    model = make(SoftMedian, temperature=temperature)
    torch.testing.assert_close(model(X, GRAPH), medians(model), rtol=1e-5, atol=1e-6)


@each_layered
def test_weight_0_is_no_edge(model):
    model, kept = make(model), torch.arange(GRAPH.num_pairs) % 3 > 0
    left = PairGraph.build(GRAPH.pair_index[:, kept], NODES)
    torch.testing.assert_close(model(X, GRAPH, kept.double()), model(X, left))
    weight = kept.double().requires_grad_()
    model(X, GRAPH, weight).sum().backward()
    assert torch.isfinite(weight.grad).all()
    assert weight.grad.abs().sum() > 0


@each_defense
@pytest.mark.parametrize("features", ["raw", "standardized"])
def test_each_can_be_trained_and_applied(name, features):
    data = small_data()
    run = gm.fit(data, name, preset=None, settings={**QUICK, "data": {"features": features}}, seeds=2)
    assert run.n == 4
    assert run.predict_proba().shape == (24, 3)
    assert run.scores(data) == pytest.approx([record.test for record in run.records])


def test_knn_joins_every_node_to_the_most_similar_ones():
    data = changed(small_data(), edge_index=both_ways(edges((0, 1))))
    run = gm.fit(data, "knn", preset=None, settings={**QUICK, "model": {"hidden_channels": 8, "neighbors": 2}})
    x = torch.nn.functional.normalize(data.x, dim=-1)
    cosine = (x @ x.T).fill_diagonal_(-1)
    expected = {tuple(sorted((i, int(j)))) for i in range(24) for j in cosine[i].topk(2).indices if cosine[i, j] > 0}
    found = {tuple(sorted(pair)) for pair in run.rewire().edge_index.T.tolist()}
    assert found == expected
