"""What every registered scorer must do, and one value by hand for each."""

import math

import pytest
import torch

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.rewiring.scorers import NodeView, scorers
from helpers import edges, normal, random_edges

NODES, FEATURES, CLASSES, CHANNELS = 12, 6, 3, 4
each_scorer = pytest.mark.parametrize("name", list(scorers))
GRAPH = PairGraph.build(random_edges(NODES, 20), NODES, candidate_index=random_edges(NODES, 15, seed=1))


def make(name, seeds=(1,), features=FEATURES, classes=CLASSES, channels=CHANNELS):
    options = {"channels": channels} if "channels" in scorers.defaults(name) else {}
    scorer = scorers[name](len(seeds), features, classes, **options)
    scorer.init_parameters(ReplicaRNG(seeds, "init"))
    return scorer


def look(features, beliefs, graph):
    return NodeView(features, beliefs, graph.is_original.float())


def view(replicas=1, seed=0):
    beliefs = normal(replicas, NODES, CLASSES, seed=seed + 1).softmax(-1).float()
    return look(normal(NODES, FEATURES, seed=seed).float(), beliefs, GRAPH)


@each_scorer
def test_one_finite_logit_for_every_pair_and_gradients_for_all_parameters(name):
    scorer = make(name, seeds=(1, 2))
    theta = scorer(view(2), GRAPH)
    assert theta.shape == (2, GRAPH.num_pairs)
    if theta.requires_grad:
        theta.square().sum().backward()
    for parameter in scorer.parameters():
        assert torch.isfinite(parameter.grad).all()


@each_scorer
def test_replicas_together_equal_replicas_alone(name):
    nodes = view(3)
    together = make(name, seeds=(1, 2, 3))(nodes, GRAPH)
    for r, seed in enumerate((1, 2, 3)):
        alone = make(name, seeds=(seed,))(look(nodes.features, nodes.beliefs[r : r + 1], GRAPH), GRAPH)
        torch.testing.assert_close(together[r : r + 1], alone)


@each_scorer
def test_features_of_every_replica(name):
    nodes = view(2)
    scorer = make(name, seeds=(1, 2))
    shared = scorer(nodes, GRAPH)
    repeated = nodes.features.repeat(2, 1, 1)
    torch.testing.assert_close(scorer(look(repeated, nodes.beliefs, GRAPH), GRAPH), shared)
    repeated[1] = normal(NODES, FEATURES, seed=9).float()
    changed = scorer(look(repeated, nodes.beliefs, GRAPH), GRAPH)
    torch.testing.assert_close(changed[0], shared[0])
    torch.testing.assert_close(changed[1], scorer(look(repeated[1], nodes.beliefs, GRAPH), GRAPH)[1])


@each_scorer
def test_the_order_of_the_nodes_does_not_matter(name):
    scorer, nodes = make(name), view()
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(3))
    place = torch.argsort(order)
    given, candidates = GRAPH.pair_index[:, GRAPH.is_original], GRAPH.pair_index[:, ~GRAPH.is_original]
    permuted = PairGraph.build(place[given], NODES, candidate_index=place[candidates])
    theta = scorer(look(nodes.features[order], nodes.beliefs[:, order], permuted), permuted)[0]
    wanted = dict(zip(map(frozenset, GRAPH.pair_index.T.tolist()), scorer(nodes, GRAPH)[0].tolist(), strict=True))
    for pair, value in zip(order[permuted.pair_index].T.tolist(), theta.tolist(), strict=True):
        assert value == pytest.approx(wanted[frozenset(pair)], abs=1e-5)


@each_scorer
def test_a_graph_it_never_saw_is_scored(name):
    scorer = make(name)
    scorer(view(), GRAPH)
    other = PairGraph.build(edges((0, 1), (1, 2)), 5)
    nodes = look(normal(5, FEATURES).float(), torch.full((1, 5, CLASSES), 1 / CLASSES), other)
    assert torch.isfinite(scorer(nodes, other)).all()


def test_a_pair_that_is_shown_as_given_counts_in_its_neighborhood():
    scorer, nodes = make("neighborhood"), view()
    shown = NodeView(nodes.features, nodes.beliefs, torch.ones(1, GRAPH.num_pairs))
    assert not torch.equal(scorer(nodes, GRAPH), scorer(shown, GRAPH))


PAIR = PairGraph.build(edges((0, 1)), 2)
BELIEFS = torch.tensor([[[0.8, 0.2], [0.5, 0.5]]])  # agreement 0.8 · 0.5 + 0.2 · 0.5 = 0.5
UNIT = torch.tensor([[1.0, 0.0], [0.6, 0.8]])  # cosine 0.6


def bilinear_by_hand(scorer):
    """The encoder turned into the identity: θ is the cosine, then W doubles the first channel."""
    scorer.encoder.weight.data[0] = torch.eye(2)
    assert scorer(look(UNIT, BELIEFS, PAIR), PAIR).item() == pytest.approx(0.6)
    scorer.form.matrix.data[0] = torch.tensor([[2.0, 1.0], [0.0, 1.0]])
    scorer.form.bias.data.fill_(0.25)
    # W = [[2, ½], [½, 1]], so (1, 0) W (0.6, 0.8)ᵀ = 1.2 + 0.4, plus the bias.
    return 1.2 + 0.4 + 0.25


def class_space_by_hand(scorer):
    """The identity gives the agreement; then only the first class counts."""
    assert scorer(look(UNIT, BELIEFS, PAIR), PAIR).item() == pytest.approx(0.5)
    scorer.form.matrix.data[0] = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    return 0.8 * 0.5


def class_facts_by_hand(scorer):
    """At first the agreement 0.5; then eight times the cosine 0.6 and the degrees, 1 and 1, count as well."""
    assert scorer(look(UNIT, BELIEFS, PAIR), PAIR).item() == pytest.approx(0.5)
    scorer.facts.weight.data[0] = torch.tensor([2.0, 5.0, 7.0, 9.0])
    return 0.5 + 2 * 8 * 0.6 + 5 * math.log(1) + (7 + 9) * math.log(2)


def constant_by_hand(scorer):
    """Nothing is looked at, and there is nothing to learn."""
    assert not list(scorer.parameters())
    return 0.0


def literal_by_hand(scorer):
    """The raw features, whatever their length, and the symmetric part of W = [[2, 1], [0, 1]]."""
    scorer.matrix.data[0] = torch.tensor([[2.0, 1.0], [0.0, 1.0]])
    scorer.bias.data.fill_(0.25)
    # (3, 0) [[2, ½], [½, 1]] = (6, 1.5), and (6, 1.5) · (0.6, 0.8) = 3.6 + 1.2, plus the bias.
    longer = look(UNIT * torch.tensor([[3.0], [1.0]]), BELIEFS, PAIR)
    assert scorer(longer, PAIR).item() == pytest.approx(3.6 + 1.2 + 0.25)
    return 1.2 + 0.4 + 0.25


def mixed_by_hand(scorer):
    """Bilinear form off: cosine 0.6 and agreement 0.5 weigh 1 each, degrees (1 and 1) weigh nothing, then 2 and 3."""
    scorer.form.matrix.data.zero_()
    assert scorer(look(UNIT, BELIEFS, PAIR), PAIR).item() == pytest.approx(1.1)
    scorer.facts.weight.data[0] = torch.tensor([1.0, 5.0, 2.0, 3.0])
    return 0.6 + 0.5 + 5 * math.log(1) + (2 + 3) * math.log(2)


def neighborhood_by_hand(scorer):
    """The perceptron made to add its inputs: agreement 0.5, 8 times the cosine 0.6, trust 0.5 twice, log 2 twice."""
    scorer.hidden.weight.data.zero_()
    scorer.hidden.bias.data.zero_()
    scorer.out.weight.data.fill_(1.0)
    scorer.out.bias.data.zero_()
    scorer.hidden.weight.data[0, :, 0] = 1.0
    return 0.5 + 8 * 0.6 + 2 * 0.5 + 2 * math.log(2)


BY_HAND = {
    "bilinear": bilinear_by_hand,
    "class-facts": class_facts_by_hand,
    "class-space": class_space_by_hand,
    "constant": constant_by_hand,
    "literal": literal_by_hand,
    "mixed": mixed_by_hand,
    "neighborhood": neighborhood_by_hand,
}


def test_every_scorer_has_an_example_by_hand():
    assert set(BY_HAND) == set(scorers)


@each_scorer
def test_a_value_by_hand(name):
    scorer = make(name, features=2, classes=2, channels=2)
    wanted = BY_HAND[name](scorer)
    assert scorer(look(UNIT, BELIEFS, PAIR), PAIR).item() == pytest.approx(wanted, abs=1e-6)
