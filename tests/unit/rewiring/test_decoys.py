"""Decoys: random pairs that a scorer learns to tell from edges."""

import math

import pytest
import torch

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.rewiring.losses import SHARE_OF_NODES, Decoys, ShownDecoys
from gumbel_mpnn.training import build_model, train
from helpers import changed, edges, make_task, random_edges, replicas, small_data
from unit.rewiring.test_gumbel_mpnn import data_with_candidates, settings_of

NODES = 40
GRAPH = PairGraph.build(random_edges(NODES, 60), NODES, candidate_index=random_edges(NODES, 30, seed=1))


def test_edges_and_candidates_stay_and_decoys_are_neither():
    decoys = Decoys.among(GRAPH, 3.0)
    known = ~decoys.is_decoy
    assert torch.equal(decoys.graph.pair_index[:, known], GRAPH.pair_index)
    assert torch.equal(decoys.graph.is_original[known], GRAPH.is_original)
    assert not decoys.graph.is_original[decoys.is_decoy].any()
    assert 0 < int(decoys.is_decoy.sum()) <= 3 * int(GRAPH.is_original.sum())


def test_decoys_crowd_at_a_few_nodes():
    decoys = Decoys.among(GRAPH, 3.0)
    ends = decoys.graph.pair_index[:, decoys.is_decoy]
    busiest = torch.bincount(ends.flatten(), minlength=NODES).sort(descending=True).values
    assert busiest[: round(SHARE_OF_NODES * NODES)].sum() >= ends.shape[1]


def test_the_weights_of_the_given_graph_stay():
    graph = PairGraph.build(edges((0, 1), (2, 3)), 8, edge_weight=torch.tensor([0.5, 2.0]))
    decoys = Decoys.among(graph, 4.0)
    assert torch.equal(decoys.graph.pair_weight[~decoys.is_decoy], graph.pair_weight)


@pytest.mark.parametrize(
    "graph", [PairGraph.build(edges(), 0), PairGraph.build(edges(), 3), PairGraph.build(edges((0, 1)), 2)]
)
def test_a_graph_with_no_room_for_decoys_gets_none(graph):
    assert not Decoys.among(graph, 5.0).is_decoy.any()


def test_few_decoys_are_as_likely_as_many_and_replicas_have_their_own():
    decoys, rng = Decoys.among(GRAPH, 3.0), ReplicaRNG([0, 1], "train")
    shown = torch.stack([decoys.draw(rng).given & decoys.is_decoy for _ in range(400)])
    counts = shown.sum(-1)
    assert not shown[..., ~decoys.is_decoy].any()
    above_a_tenth = (counts > 0.1 * decoys.is_decoy.sum()).float().mean().item()
    assert above_a_tenth == pytest.approx(0.5, abs=0.1)
    assert counts.max() > 0.8 * decoys.is_decoy.sum()
    assert not torch.equal(counts[:, 0], counts[:, 1])
    drawn, original = decoys.draw(rng), decoys.graph.is_original
    assert torch.equal(drawn.given & ~decoys.is_decoy, original.expand_as(drawn.given))
    assert torch.equal(drawn.present, drawn.given | ~decoys.is_decoy)


@pytest.mark.parametrize(("samples", "with_decoys"), [(1, [True]), (3, [False, True, True])])
def test_the_first_of_several_samples_has_no_decoys_and_the_others_their_own(monkeypatch, samples, with_decoys):
    task = make_task(data_with_candidates())
    model = build_model(
        settings_of(scorer={"name": "neighborhood", "decoys": 3.0}, samples=samples), task, replicas((0, 0))
    )
    seen = []
    monkeypatch.setattr(model, "terms", lambda draws, *step: seen.append(draws) or {})
    model.training_loss(task.features, task.graph, task.y, task.train_mask[:1], torch.tensor(0.0))
    (draws,) = seen
    floods = [draw.decoys for draw in draws]
    assert [flood is not None for flood in floods] == with_decoys
    shown = [flood.given for flood in floods if flood is not None]
    assert len({tuple(of.flatten().tolist()) for of in shown}) == len(shown)
    if samples > 1:
        assert draws[0].graph.graph is task.graph


def test_the_lesson_by_hand():
    """One edge at θ = 0, one decoy shown at θ = log 3, one candidate and one hidden decoy that do not count."""
    graph = PairGraph.build(edges((0, 1)), 4, candidate_index=edges((0, 2), (0, 3), (1, 2)))
    given, present = torch.tensor([[True, False, True, False]]), torch.tensor([[True, True, True, False]])
    flood = ShownDecoys(graph, given, present)
    theta = torch.tensor([[0.0, 9.0, math.log(3), -5.0]])
    assert flood.loss(theta).item() == pytest.approx((math.log(2) + math.log(4)) / 2)


def test_decoys_teach_a_scorer_to_tell_edges_of_a_flooded_graph():
    data = homophilous_data()
    noisy = changed(data, edge_index=torch.cat([data.edge_index, random_edges(120, 600, seed=9)], dim=1))
    apart = {}
    for amount in (0.0, 8.0):
        settings = settings_of({"epochs": 80}, scorer={"name": "neighborhood", "decoys": amount}, lr=0.05)
        outcome = train(make_task(data), settings, replicas((0, 0)))[0]
        task = make_task(noisy)
        model = build_model(settings, task, replicas((0, 0)))
        model.load_state_dict(outcome.state)
        probability = model.pair_probability(task.features, task.graph)[0]
        clean = set(map(tuple, make_task(data).graph.pair_index.T.tolist()))
        real = torch.tensor([tuple(pair) in clean for pair in task.graph.pair_index.T.tolist()])
        apart[amount] = float(probability[real].mean() - probability[~real].mean())
    assert apart[8.0] > 0.2
    assert apart[8.0] > apart[0.0] + 0.1


def homophilous_data():
    """Four edges for each node, all within its class."""
    data = small_data(nodes=120, features=16)
    step = 3 * torch.randint(1, 40, (480,), generator=torch.Generator().manual_seed(4))
    source = torch.arange(120).repeat(4)
    return changed(data, edge_index=torch.stack([source, (source + step) % 120]))
