"""DropEdge: what is dropped, when, and that replicas and settings keep to their own."""

import pytest
import torch

from gumbel_mpnn import UserError
from gumbel_mpnn.baselines import DropEdge
from gumbel_mpnn.config import Settings, resolve
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import GCN, ReplicaRNG, backbones
from gumbel_mpnn.training import models, train
from helpers import assert_close_outcomes, edges, make_task, normal, numbers, random_edges, replicas, small_data

NODES = 40
GRAPH = PairGraph.build(random_edges(NODES, 150), NODES)
X = normal(NODES, 5, dtype=torch.float32)


def make(**options):
    return DropEdge(5, out_channels=3, hidden_channels=8, dropout=0.0, seeds=[4], **options)


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


def test_both_directions_go_at_once():
    model = make(edge_dropout=0.5).train()
    graph = model._draw(X, GRAPH)
    first, second = GRAPH.pair_arcs
    assert torch.equal(graph.arc_weight[:, first], graph.arc_weight[:, second])


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


@pytest.mark.parametrize("edge_dropout", [-0.1, 1.1])
def test_a_share_is_between_0_and_1(edge_dropout):
    with pytest.raises(UserError, match="edge_dropout must lie between 0 and 1"):
        make(edge_dropout=edge_dropout)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples must be 1 or more"),
        ({"agreement": 1.0}, "set samples to 2 or more"),
        ({"agreement": -1.0, "samples": 2}, "agreement must be 0 or more"),
        ({"agreement_ramp": 1.5}, "agreement_ramp must lie between 0 and 1"),
    ],
    ids=str,
)
def test_what_several_graphs_need(options, message):
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


def test_several_graphs_without_dropped_edges_agree_up_to_dropout():
    without = make(edge_dropout=0.0, samples=2, agreement=1.0).train()
    y, mask = torch.arange(NODES) % 3, torch.ones(1, NODES, dtype=torch.bool)
    probability = without(X, GRAPH).softmax(-1)
    sharpened = probability.square() / probability.square().sum(-1, keepdim=True)
    distance = (probability - sharpened).square().sum(-1).mean()
    expected = torch.nn.functional.cross_entropy(without(X, GRAPH), y) + distance
    torch.testing.assert_close(without.training_loss(X, GRAPH, y, mask, torch.tensor(0.0)), expected[None])


@pytest.mark.parametrize("name", ["backbone", "replicas", "out_channels", "hidden_channels"])
def test_options_of_its_base_class_are_suggested_too(name):
    with pytest.raises(UserError, match=f"DropEdge has no option '{name[:-1]}': did you mean '{name}'"):
        make(**{name[:-1]: 1})


def test_its_own_options_are_suggested():
    with pytest.raises(UserError, match="DropEdge has no option 'edge_dropot': did you mean 'edge_dropout'"):
        DropEdge(5, out_channels=3, edge_dropot=0.1)


def test_it_shows_what_it_is():
    assert str(make()) == "DropEdge(GCN(8 wide, 2 layers, 3 classes), edge_dropout=0.3, per_layer=False)"


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


def test_runs_from_before_the_agreement_are_still_found():
    assert settings().fingerprint("data") == settings(samples=1, agreement=0.0).fingerprint("data")
    before = settings().to_dict()
    for name in ("samples", "agreement", "agreement_ramp"):
        del before["model"][name]
    assert Settings.from_dict(before).fingerprint("data") == settings().fingerprint("data")
    assert settings(samples=2).fingerprint("data") != settings().fingerprint("data")


def test_nothing_dropped_is_the_plain_model():
    task, one = make_task(small_data()), replicas((0, 0))
    plain = train(task, settings("gcn"), one)
    dropping_none = train(task, settings(edge_dropout=0.0), one)
    dropping = train(task, settings(), one)
    assert [row["train_loss"] for row in dropping_none[0].history] == [row["train_loss"] for row in plain[0].history]
    assert dropping[0].history != plain[0].history


def test_layers_may_have_graphs_of_their_own():
    model = GCN(5, out_channels=3, hidden_channels=8, dropout=0.0, seeds=[1], num_layers=2).eval()
    alone = PairGraph.build(torch.empty(2, 0, dtype=torch.int64), NODES)
    whole, none = (WeightedGraph(graph, None, X.dtype) for graph in (GRAPH, alone))
    hidden = torch.relu(model.convs[0](X, whole))
    expected = model.head(torch.relu(model.convs[1](hidden, none)))
    torch.testing.assert_close(model.compute(X, [whole, none]), expected)
