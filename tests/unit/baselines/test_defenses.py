"""GCN-Jaccard, GNNGuard, soft medians and kNN-GCN against their formulas, written out slowly."""

import math

import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from graph_cases import GRAPHS
from gumbel_mpnn import UserError
from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.baselines import GNNGuard, Jaccard, SoftMedian
from gumbel_mpnn.baselines.jaccard import edge_similarity
from gumbel_mpnn.baselines.soft_median import median_neighbor, medians_by_sorting
from gumbel_mpnn.config import resolve
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import GCN, as_features
from gumbel_mpnn.runs import RunSpec
from gumbel_mpnn.training import models, train
from helpers import (
    assert_close_outcomes,
    both_ways,
    changed,
    edges,
    make_task,
    normal,
    numbers,
    positive,
    random_edges,
    randomized,
    replicas,
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


class TestJaccard:
    def test_the_similarity_of_words(self):
        x = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]])
        found = edge_similarity(x, edges((0, 1), (0, 3), (1, 3), (2, 0), (2, 2)))
        torch.testing.assert_close(found, torch.tensor([2 / 4, 1 / 3, 0, 0, 0]))

    def test_the_similarity_of_other_numbers(self):
        index = random_edges(NODES, 30)
        expected = []
        for i, j in index.T.tolist():
            lengths = math.sqrt(sum(v**2 for v in X[i].tolist())) * math.sqrt(sum(v**2 for v in X[j].tolist()))
            expected.append(sum(a * b for a, b in zip(X[i].tolist(), X[j].tolist(), strict=True)) / lengths)
        torch.testing.assert_close(edge_similarity(X, index), torch.tensor(expected))
        torch.testing.assert_close(edge_similarity(X.to_sparse(), index), torch.tensor(expected))

    def test_an_edge_that_is_given_twice_and_in_both_directions(self):
        index = random_edges(NODES, 30)
        once = edge_similarity(X, index)
        assert torch.equal(edge_similarity(X, torch.cat([index, index.flip(0), index], dim=1)), once.repeat(3))

    def test_edges_below_the_threshold_go_with_their_attributes(self):
        x = torch.tensor([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0]])
        index = edges((0, 1), (0, 2), (0, 3), (2, 3))
        weight = torch.tensor([1.0, 2, 3, 4], requires_grad=True)
        out = Jaccard(0.5)(Data(x=x, edge_index=index, edge_weight=weight, candidate_index=edges((1, 2))))
        assert out.edge_index.T.tolist() == [[0, 1], [0, 3]]  # ½ and ⅔; 0 and ¼ are below
        assert out.edge_weight.tolist() == [1, 3]
        assert "candidate_index" not in out
        out.edge_weight.sum().backward()
        assert weight.grad.tolist() == [1, 0, 1, 0]

    def test_as_many_edges_as_nodes(self):
        """PyG takes labels for an edge attribute then."""
        data = Data(x=torch.eye(3), y=torch.arange(3), edge_index=edges((0, 1), (1, 2), (0, 0)))
        assert Jaccard(0.5)(data).y.tolist() == [0, 1, 2]
        assert Jaccard(0.5)(data).edge_index.T.tolist() == [[0, 0]]

    def test_a_run_is_the_backbone_on_the_remaining_edges(self):
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

    def test_what_it_cannot_do(self):
        with pytest.raises(UserError, match="threshold must lie between 0 and 1"):
            models["jaccard"](FEATURES, out_channels=2, threshold=2.0)
        with pytest.raises(DataError, match="no features to compare"):
            Jaccard()(Data(edge_index=edges((0, 1)), num_nodes=2))


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


class TestGNNGuard:
    @pytest.mark.parametrize("options", [{}, {"threshold": 0.4, "memory": 0.2}, {"memory": 0.0, "threshold": 0.0}])
    def test_the_formula(self, options):
        model = make(GNNGuard, **options)
        torch.testing.assert_close(model(X, GRAPH), guarded(model))

    def test_it_prunes(self):
        model = make(GNNGuard, threshold=0.4)
        assert not torch.allclose(model(X, GRAPH), make(GNNGuard, threshold=0.0)(X, GRAPH))

    def test_sparse_features_and_given_weights(self):
        model, weight = make(GNNGuard), positive(GRAPH.num_pairs)
        sparse = torch.where(X > 1, X, 0.0)
        assert type(as_features(sparse)) is not torch.Tensor
        torch.testing.assert_close(model(as_features(sparse), GRAPH, weight), model(sparse, GRAPH, weight))
        assert not torch.allclose(model(sparse, GRAPH, weight), model(sparse, GRAPH))

    def test_features_that_are_dropped_in_training_are_still_compared(self):
        model = make(GNNGuard, input_dropout=0.9, dropout=0.0, num_layers=1).train()
        seen = []
        layer = model._layer

        def spy(x, *rest):
            seen.append(rest[-1].share)
            return layer(x, *rest)

        model._layer = spy
        model(X, GRAPH)
        model.eval()(X, GRAPH)
        assert torch.equal(*seen)


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


class TestSoftMedian:
    @pytest.mark.parametrize("temperature", [0.05, 0.5, 3.0])
    def test_the_formula(self, temperature):
        model = make(SoftMedian, temperature=temperature)
        torch.testing.assert_close(model(X, GRAPH), medians(model), rtol=1e-5, atol=1e-6)

    def test_at_a_high_temperature_it_is_a_gcn(self):
        model, plain = make(SoftMedian, temperature=1e9), make(GCN)
        torch.testing.assert_close(model(X, GRAPH), plain(X, GRAPH))
        assert not torch.allclose(make(SoftMedian)(X, GRAPH), plain(X, GRAPH))

    @pytest.mark.parametrize("name", GRAPHS)
    def test_medians_of_a_gpu_and_of_a_cpu_are_the_same(self, name):
        """The form for a GPU, which sorts all neighbors at once, computed on a CPU; many values are equal."""
        edge_index, nodes = GRAPHS[name]()
        graph, x = PairGraph.build(edge_index, nodes), normal(3, nodes, 4).round()
        weight = positive(3, graph.num_pairs).masked_fill(torch.arange(graph.num_pairs) % 4 == 0, 0.0)
        weighted = WeightedGraph(graph, weight, x.dtype)
        weights = weighted.symmetric_arc_weight, weighted.inverse_root_degree.squeeze(-1).square()
        by_sorting = medians_by_sorting(x, graph, *(part.expand(3, -1) for part in weights))
        assert torch.equal(x.gather(1, median_neighbor(x, weighted)), x.gather(1, by_sorting))

    def test_one_far_neighbor_of_many_hardly_counts(self):
        star = PairGraph.build(edges(*((0, leaf) for leaf in range(1, 8))), 8)
        conv = make(SoftMedian, temperature=0.01, num_layers=1).convs[0]
        conv.bias.data.zero_()
        x = torch.ones(1, 8, FEATURES, dtype=torch.float64)
        usual = conv(x, WeightedGraph.of(star, None, x.dtype))[0, 0]
        x[0, 7] = 1000
        torch.testing.assert_close(conv(x, WeightedGraph.of(star, None, x.dtype))[0, 0], usual)

    def test_a_temperature_is_above_0(self):
        with pytest.raises(UserError, match="temperature must be above 0, but is 0"):
            make(SoftMedian, temperature=0.0)


@each_layered
def test_weight_0_is_no_edge(model):
    model, kept = make(model), torch.arange(GRAPH.num_pairs) % 3 > 0
    left = PairGraph.build(GRAPH.pair_index[:, kept], NODES)
    torch.testing.assert_close(model(X, GRAPH, kept.double()), model(X, left))
    weight = kept.double().requires_grad_()
    model(X, GRAPH, weight).sum().backward()
    assert torch.isfinite(weight.grad).all()
    assert weight.grad.abs().sum() > 0


@each_layered
@pytest.mark.parametrize("options", [{"residual": True, "norm": "layer"}, {"input_layer": True}, {"num_layers": 1}])
def test_without_edges_each_node_is_alone(model, options):
    alone = PairGraph.build(torch.empty(2, 0, dtype=torch.int64), NODES)
    torch.testing.assert_close(make(model, **options)(X, alone), make(GCN, **options)(X, alone))


@each_layered
def test_gradients(model):
    model, x = make(model), X[None].clone().requires_grad_()
    weighted = WeightedGraph.of(GRAPH, None, x.dtype)
    assert torch.autograd.gradcheck(lambda x: model.compute(x, weighted), x)


def test_gradients_of_soft_medians_are_finite():
    """Also where a node is its own median, at a distance of 0."""
    model = make(SoftMedian)
    model(X, GRAPH).square().sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def settings(name, **options):
    tables = {"model": {"hidden_channels": 8, **options}, "train": {"lr": 0.01, "epochs": 6}}
    return resolve("toy", name, tables, models.complete)


@each_layered
def test_replicas_train_together_as_they_do_alone(model):
    name = {GNNGuard: "gnn-guard", SoftMedian: "soft-median"}[model]
    task, both = make_task(), replicas((0, 0), (1, 3))
    together = train(task, settings(name), both)
    alone = [train(task, settings(name), [replica])[0] for replica in both]
    assert_close_outcomes(together, alone)
    assert numbers(train(task, settings(name), both)) == numbers(together)


@each_defense
@pytest.mark.parametrize("features", ["raw", "standardized"])
def test_each_can_be_trained_and_applied(name, features):
    data = small_data()
    run = gm.fit(data, name, preset=None, settings={**QUICK, "data": {"features": features}}, seeds=2)
    assert run.n == 4
    assert run.predict_proba().shape == (24, 3)
    assert run.scores(data) == pytest.approx([record.test for record in run.records])


@each_defense
def test_presets_are_those_of_the_gcn(name):
    run = RunSpec.of("cora", name)
    assert run.preset.model == "gcn"
    assert run.settings.options["hidden_channels"] == RunSpec.of("cora", "gcn").settings.options["hidden_channels"]


class TestKNN:
    def test_every_node_is_joined_to_the_most_similar_ones(self):
        data = changed(small_data(), edge_index=both_ways(edges((0, 1))))
        run = gm.fit(data, "knn", preset=None, settings={**QUICK, "model": {"hidden_channels": 8, "neighbors": 2}})
        x = torch.nn.functional.normalize(data.x, dim=-1)
        cosine = (x @ x.T).fill_diagonal_(-1)
        expected = {
            tuple(sorted((i, int(j)))) for i in range(24) for j in cosine[i].topk(2).indices if cosine[i, j] > 0
        }
        found = {tuple(sorted(pair)) for pair in run.rewire().edge_index.T.tolist()}
        assert found == expected

    def test_given_edges_do_not_matter(self):
        data, other = small_data(), changed(small_data(), edge_index=torch.empty(2, 0, dtype=torch.int64))
        one, two = (gm.fit(each, "knn-gcn", preset=None, settings=QUICK) for each in (data, other))
        assert [record.test for record in one.records] == [record.test for record in two.records]

    def test_a_number_of_neighbors(self):
        with pytest.raises(UserError, match="neighbors must be at least 1, but is 0"):
            models["knn"](FEATURES, out_channels=2, neighbors=0)
