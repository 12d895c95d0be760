"""DropEdge: what is dropped, when, and that replicas keep to their own; and the transform Jaccard."""

import math

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn import UserError
from gumbel_mpnn.baselines import DropEdge, Jaccard
from gumbel_mpnn.baselines.drop_edge import edge_similarity
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import GCN, ReplicaRNG, backbones
from gumbel_mpnn.settings import resolve
from gumbel_mpnn.settings.presets import read_preset
from gumbel_mpnn.training import models, train
from gumbel_mpnn.util.errors import DataError
from helpers import assert_close_outcomes, edges, make_task, normal, numbers, random_edges, replicas
from quick_fit import resolved

NODES = 40
GRAPH = PairGraph.build(random_edges(NODES, 150), NODES)
X = normal(NODES, 5, dtype=torch.float32)


def make(**options):
    return DropEdge(
        **{"in_channels": 5, "out_channels": 3, "hidden_channels": 8, "dropout": 0.0, "seeds": [4], **options}
    )


def drawn(model, calls=1):
    """The pair weights [R, P] of every graph that the layers see in so many training passes."""
    seen = []
    compute = model.backbone.compute

    def spy(x, graphs):
        seen.append([graph.arc_weight[:, GRAPH.pair_arcs[0]] for graph in graphs])
        return compute(x, graphs)

    model.backbone.compute = spy
    for _ in range(calls):
        model.train()(X, GRAPH)
    return seen


def test_the_share_that_is_dropped():
    weights = torch.cat([layers[0] for layers in drawn(make(edge_dropout=0.3), calls=60)])
    assert set(weights.unique().tolist()) == {0.0, 1.0}
    kept = 0.7 * weights.numel()
    assert abs(float(weights.sum()) - kept) < 5 * (0.3 * kept) ** 0.5


def test_every_pass_drops_others_and_layers_share_them_or_not():
    (one, other), (later, _) = drawn(make(), calls=2)
    assert torch.equal(one, other)
    assert not torch.equal(one, later)
    ((one, other),) = drawn(make(per_layer=True))
    assert not torch.equal(one, other)


@pytest.mark.parametrize("backbone", backbones)
def test_what_is_dropped_is_not_there(backbone):
    model = make(backbone=backbone, edge_dropout=0.4)
    out = model.train()(X, GRAPH)
    model.rng.rewind()
    kept = ReplicaRNG([4], "train").noise(GRAPH.num_pairs)[0] >= 0.4
    left = PairGraph.build(GRAPH.pair_index[:, kept], NODES)
    torch.testing.assert_close(out, model.backbone(X, left))


def test_evaluation_has_all_edges():
    model = make(edge_dropout=0.9).eval()
    assert torch.equal(model(X, GRAPH), model.backbone(X, GRAPH))
    assert torch.equal(model(X, GRAPH.edge_index), model.backbone(X, GRAPH))


def test_all_or_nothing():
    everything = make(edge_dropout=1.0).train()
    alone = PairGraph.build(torch.empty(2, 0, dtype=torch.int64), NODES)
    torch.testing.assert_close(everything(X, GRAPH), everything.backbone(X, alone))
    nothing = make(edge_dropout=0.0).train()
    assert torch.equal(nothing(X, GRAPH), nothing.backbone(X, GRAPH))
    plain = GCN(5, out_channels=3, hidden_channels=8, dropout=0.0, seeds=[4]).train()
    assert torch.equal(nothing(X, GRAPH), plain(X, GRAPH))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_dropout": -0.1}, "edge_dropout must lie between 0 and 1"),
        ({"samples": 0}, "samples must be at least 1"),
        ({"agreement": 1.0}, "set samples to 2 or more"),
        ({"agreement": -1.0, "samples": 2}, "agreement must lie between 0"),
        ({"agreement_ramp": 1.5}, "agreement_ramp must lie between 0 and 1"),
        ({"edge_dropot": 0.1}, "DropEdge has no option 'edge_dropot': did you mean 'edge_dropout'"),
        ({"hidden_channel": 8}, "DropEdge has no option 'hidden_channel': did you mean 'hidden_channels'"),
    ],
    ids=str,
)
def test_mistakes(options, message):
    with pytest.raises(UserError, match=message):
        make(**options)


def test_the_agreement_of_three_nodes_by_hand():
    """Two draws on a triangle: the mean of both losses and the squared distance to the sharpened mean."""
    triangle, y = PairGraph.build(edges((0, 1), (1, 2), (0, 2)), 3), torch.tensor([0, 1, 2])
    x = normal(3, 5, dtype=torch.float32)
    mask = torch.tensor([[True, True, False]])
    loss = make(edge_dropout=0.5, samples=2, agreement=3.0, agreement_ramp=0.4).train()
    half_grown = loss.training_loss(x, triangle, y, mask, torch.tensor(0.2))
    one = make(edge_dropout=0.5).train()  # the same seed: its two passes draw the same two graphs
    first, second = one(x, triangle).softmax(-1), one(x, triangle).softmax(-1)
    assert not torch.equal(first, second)
    classification = -(first[0, 0].log() + first[1, 1].log() + second[0, 0].log() + second[1, 1].log()) / 4
    sharpened = ((first + second) / 2).square()
    target = (sharpened / sharpened.sum(-1, keepdim=True)).detach()
    distance = ((first - target).square().sum() + (second - target).square().sum()) / (2 * 3)
    torch.testing.assert_close(half_grown, (classification + 0.5 * 3.0 * distance)[None])


def settings(model="drop-edge", **options):
    tables = {"model": {"hidden_channels": 8, **options}, "train": {"lr": 0.01, "epochs": 6}}
    return resolve("toy", models.canonical(model), tables, models.complete)


@pytest.mark.parametrize("options", [{}, {"per_layer": True}, {"samples": 2, "agreement": 1.0}], ids=str)
def test_replicas_train_together_as_they_do_alone(options):
    task, both = make_task(), replicas((0, 0), (1, 3))
    together = train(task, settings(**options), both)
    alone = [train(task, settings(**options), [replica])[0] for replica in both]
    assert_close_outcomes(together, alone)
    assert numbers(train(task, settings(**options), both)) == numbers(together)


@pytest.mark.parametrize("model", ["sdrf", "drop-edge"])
@pytest.mark.parametrize(("family", "dataset"), [("tuned", "roman-empire"), ("paper", "cora")])
def test_without_a_preset_of_its_own_a_model_takes_its_backbones(model, family, dataset):
    assert read_preset(family, dataset, model) is None
    for overrides, backbone in (((), "gcn"), (["model.backbone=sage"], "sage")):
        settings = resolved(dataset, model, preset=family, overrides=overrides)
        expected = resolved(dataset, backbone, preset=family)
        assert settings.train == expected.train
        assert {name: settings.options[name] for name in expected.options} == dict(expected.options)


NORMAL = normal(NODES, 5)


class TestJaccard:
    def test_the_similarity_of_words(self):
        x = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]])
        found = edge_similarity(x, edges((0, 1), (0, 3), (1, 3), (2, 0), (2, 2)))
        torch.testing.assert_close(found, torch.tensor([2 / 4, 1 / 3, 0, 0, 0]))

    def test_the_similarity_of_other_numbers(self):
        index = random_edges(NODES, 30)
        expected = []
        for i, j in index.T.tolist():
            lengths = math.prod(math.sqrt(sum(v**2 for v in NORMAL[k].tolist())) for k in (i, j))
            expected.append(float(NORMAL[i] @ NORMAL[j]) / lengths)
        torch.testing.assert_close(edge_similarity(NORMAL, index), torch.tensor(expected))
        torch.testing.assert_close(edge_similarity(NORMAL.to_sparse(), index), torch.tensor(expected))
        twice = edge_similarity(NORMAL, torch.cat([index, index.flip(0)], dim=1))
        assert torch.equal(twice, edge_similarity(NORMAL, index).repeat(2))

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

    def test_what_it_cannot_do(self):
        with pytest.raises(UserError, match="threshold must lie between 0 and 1"):
            Jaccard(2.0)
        with pytest.raises(DataError, match="no features to compare"):
            Jaccard()(Data(edge_index=edges((0, 1)), num_nodes=2))
