"""The user's face, sums, samples, and mistakes a person can make."""

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.errors import DataError, UserError
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring.regularizers import (
    Agreement,
    Degree,
    InterClass,
    LabelConsistency,
    Mix,
    NeighborhoodConsistency,
    Prior,
    Regularizer,
    Sum,
    regularizers,
)
from gumbel_mpnn.rewiring.rewired import RewiredGraph
from helpers import normal, positive, random_edges, small_data

NODES, CLASSES, SAMPLES, REPLICAS = 24, 3, 3, 2
DATA = small_data()
GRAPH = PairGraph.of(DATA)
OUT = normal(SAMPLES, REPLICAS, NODES, CLASSES)
THETA, WEIGHT = normal(REPLICAS, GRAPH.num_pairs), positive(SAMPLES, REPLICAS, GRAPH.num_pairs)
DRAWS = RewiredGraph(GRAPH, THETA, WEIGHT)


def draw(sample, replica=None):
    rows = slice(None) if replica is None else slice(replica, replica + 1)
    return RewiredGraph(GRAPH, THETA[rows], WEIGHT[sample, rows])


def split(k):
    return Data(y=DATA.y, train_mask=DATA.train_mask[:, k])


def test_names():
    assert regularizers["lc"] is LabelConsistency
    assert regularizers["pc"] is NeighborhoodConsistency
    assert regularizers["dc"] is Degree
    assert regularizers["inter_class"] is InterClass
    assert regularizers.complete("mix", {"weight": 2}) == {"weight": 2.0, "margin": 1.0, "detach": True}
    assert repr(LabelConsistency(0.05)) == "LabelConsistency(0.05, detach=True)"
    assert repr(Prior() + Agreement(0.5)) == (
        "Sum([Prior(1.0, keep=0.95, add=0.05), Agreement(0.5, temperature=0.5)], weight=1.0)"
    )


def test_one_model_gives_a_scalar_and_replicas_one_value_each():
    term = LabelConsistency(0.05)
    together = term(OUT[0], draw(0), DATA)
    assert together.shape == (REPLICAS,)
    for k in range(REPLICAS):
        alone = term(OUT[0, k], draw(0, k), split(k))
        assert alone.shape == ()
        torch.testing.assert_close(alone, together[k])
        expected = 0.05 * term.penalty(OUT[0, k : k + 1], draw(0, k), DATA.y, DATA.train_mask.T[k : k + 1])
        torch.testing.assert_close(alone, expected[0])


def test_replicas_may_share_a_split_and_a_graph():
    shared = RewiredGraph(GRAPH, THETA[:1], WEIGHT[0, :1])
    flat = RewiredGraph(GRAPH, THETA[0], WEIGHT[0, 0])
    for term in (Mix(), Degree(), Prior()):
        together = term(OUT[0], shared, split(0))
        alone = torch.stack([term(out, shared, split(0)) for out in OUT[0]])
        torch.testing.assert_close(together, alone)
        assert torch.equal(together, term(OUT[0], flat, split(0)))


def test_the_mean_over_samples():
    for term in (LabelConsistency(), Mix(), Degree(), Prior()):
        expected = torch.stack([term(OUT[s], draw(s), DATA) for s in range(SAMPLES)]).mean(0)
        torch.testing.assert_close(term(OUT, DRAWS, DATA), expected)
        flat = RewiredGraph(GRAPH, THETA, WEIGHT.flatten(0, 1))
        torch.testing.assert_close(term(OUT, flat, DATA), expected)


def test_samples_may_share_one_graph():
    for term in (LabelConsistency(), Degree()):
        expected = torch.stack([term(OUT[s], draw(0), DATA) for s in range(SAMPLES)]).mean(0)
        torch.testing.assert_close(term(OUT, draw(0), DATA), expected)


def test_agreement_takes_samples_of_one_model_or_of_replicas():
    term = Agreement(2.0)
    together = term(OUT, DRAWS, DATA)
    assert together.shape == (REPLICAS,)
    for k in range(REPLICAS):
        alone = term(OUT[:, k], DRAWS, Data())
        assert alone.shape == ()
        torch.testing.assert_close(alone, together[k])
    assert term(OUT[0, 0], draw(0, 0), Data()) == 0
    assert torch.equal(term.weighted(OUT[0], draw(0), DATA.y, DATA.train_mask.T), torch.zeros(REPLICAS).double())


def test_agreement_pulls_all_samples_to_a_target_that_stands_still():
    logits = torch.zeros(2, 1, 2, dtype=torch.float64)
    logits[0, 0, 0] = 1.0
    logits.requires_grad_()
    Agreement()(logits, DRAWS, Data()).backward()
    first, second = logits.grad[:, 0, 0]
    assert second < 0  # the undecided sample is drawn towards class 0
    predicted = logits.detach().softmax(-1)
    target = predicted.mean(0).square()
    target = target / target.sum(-1, keepdim=True)
    free = logits.detach().clone().requires_grad_()
    (free.softmax(-1) - target).square().sum(-1).mean().backward()
    torch.testing.assert_close(torch.stack([first, second]), free.grad[:, 0, 0])


def test_sums():
    one, two, three = LabelConsistency(0.3), Prior(2.0), Degree(0.1)
    expected = one(OUT[0], draw(0), DATA) + two(OUT[0], draw(0), DATA) + three(OUT[0], draw(0), DATA)
    for total in (one + two + three, Sum([one, two, three]), sum([one, two, three])):
        assert isinstance(total, Regularizer)
        torch.testing.assert_close(total(OUT[0], draw(0), DATA), expected)
    torch.testing.assert_close(Sum([one, two, three], weight=0.5)(OUT[0], draw(0), DATA), expected / 2)
    assert Sum([])(OUT[0, 0], draw(0, 0), Data()) == 0


def test_mix_is_the_sum_of_its_parts():
    parts = NeighborhoodConsistency() + InterClass(margin=1.3)
    torch.testing.assert_close(Mix(margin=1.3)(OUT[0], draw(0), DATA), parts(OUT[0], draw(0), DATA))


def test_a_sum_may_compare_samples_in_one_term_and_average_over_them_in_another():
    agreement, consistency = Agreement(), LabelConsistency(0.3)
    total = (agreement + consistency)(OUT, DRAWS, DATA)
    torch.testing.assert_close(total, agreement(OUT, DRAWS, DATA) + consistency(OUT, DRAWS, DATA))
    alone = (agreement + consistency)(OUT[:, 1], RewiredGraph(GRAPH, THETA[1:], WEIGHT[:, 1]), split(1))
    assert alone.shape == ()
    torch.testing.assert_close(alone, total[1])


def test_labels_are_asked_for_only_where_they_are_used():
    for term in (Degree(), Prior(), Degree() + Prior()):
        assert term(OUT[0, 0], draw(0, 0), Data()).isfinite()
    for missing in ("y", "train_mask"):
        data = split(0)
        del data[missing]
        with pytest.raises(DataError, match=f"data.{missing}"):
            (LabelConsistency() + Prior())(OUT[0, 0], draw(0, 0), data)


def test_labels_in_a_column_are_read():
    column = Data(y=DATA.y[:, None], train_mask=DATA.train_mask[:, 0])
    term = LabelConsistency()
    assert term(OUT[0, 0], draw(0, 0), column) == term(OUT[0, 0], draw(0, 0), split(0))


def test_predictions_in_half_precision_are_taken():
    for name in regularizers:
        term = regularizers[name]()
        out = OUT[:, 0].half() if term.compares_samples else OUT[0, 0].half()
        single = RewiredGraph(GRAPH, THETA[:1].float(), WEIGHT[0, :1].float())
        value = term(out, single, split(0))
        torch.testing.assert_close(value, term(out.double(), single, split(0)), rtol=1e-4, atol=1e-4, check_dtype=False)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LabelConsistency(float("nan")), "weight of LabelConsistency"),
        (lambda: InterClass(margin=0.0), "margin"),
        (lambda: Mix(margin=-1.0), "margin"),
        (lambda: Prior(keep=1.0), "keep"),
        (lambda: Prior(add=0.0), "add"),
        (lambda: Agreement(temperature=0.0), "temperature"),
        (lambda: Degree()(OUT[0, 0, 0], draw(0, 0), Data()), r"\[3\]"),
        (lambda: Degree()(OUT[0, :1], draw(0), Data()), "1 replicas"),
        (lambda: LabelConsistency()(OUT[0, 0], draw(0, 0), DATA), "2 splits"),
        (lambda: LabelConsistency()(OUT[0, 0, 1:], draw(0, 0), DATA), "24 nodes"),
    ],
)
def test_mistakes_are_told(make, words):
    with pytest.raises(UserError, match=words):
        make()


def test_prior_is_exact_far_from_the_middle():
    """KL(σ(θ) ‖ π) tends to −log π and −log(1 − π)."""
    graph = PairGraph.build(random_edges(5, 1, seed=3), 5)
    for theta, expected in ((50.0, 0.05129329438755058), (-50.0, 2.995732273553991), (1e4, 0.05129329438755058)):
        logits = torch.full((1, graph.num_pairs), theta, requires_grad=True)
        value = Prior()(OUT[0, 0], RewiredGraph(graph, logits, torch.ones_like(logits)), Data())
        value.backward()
        assert value.item() == pytest.approx(expected, rel=1e-6)
        assert logits.grad.abs().max() < 1e-15
