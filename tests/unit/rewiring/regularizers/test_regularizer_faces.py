"""The user's face, sums, and mistakes a person can make."""

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring.regularizers import (
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
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph
from helpers import normal, positive, random_edges, small_data

NODES, CLASSES, REPLICAS = 24, 3, 2
DATA = small_data()
GRAPH = PairGraph.of(DATA)
OUT = normal(REPLICAS, NODES, CLASSES)
THETA, WEIGHT = normal(REPLICAS, GRAPH.num_pairs), positive(REPLICAS, GRAPH.num_pairs)
DRAWN = RewiredGraph(GRAPH, THETA, WEIGHT)


def of(replica):
    rows = slice(replica, replica + 1)
    return RewiredGraph(GRAPH, THETA[rows], WEIGHT[rows])


def split(k):
    return Data(y=DATA.y, train_mask=DATA.train_mask[:, k])


def test_names():
    assert regularizers["lc"] is LabelConsistency
    assert regularizers["pc"] is NeighborhoodConsistency
    assert regularizers["dc"] is Degree
    assert regularizers["inter_class"] is InterClass
    assert regularizers.complete("pc", {"weight": 2}) == {"weight": 2.0, "detach": True, "labels": "soft"}
    assert repr(LabelConsistency(0.05)) == "LabelConsistency(0.05, detach=True, labels=soft)"
    assert repr(Prior() + LabelConsistency(0.5)) == (
        "Sum([Prior(1.0, keep=0.95, add=0.05), LabelConsistency(0.5, detach=True, labels=soft)], weight=1.0)"
    )


def test_one_model_gives_a_scalar_and_replicas_one_value_each():
    term = LabelConsistency(0.05)
    together = term(OUT, DRAWN, DATA)
    assert together.shape == (REPLICAS,)
    for k in range(REPLICAS):
        alone = term(OUT[k], of(k), split(k))
        assert alone.shape == ()
        torch.testing.assert_close(alone, together[k])
        expected = 0.05 * term.penalty(OUT[k : k + 1], of(k), DATA.y, DATA.train_mask.T[k : k + 1])
        torch.testing.assert_close(alone, expected[0])


def test_replicas_may_share_a_split_and_a_graph():
    shared = RewiredGraph(GRAPH, THETA[:1], WEIGHT[:1])
    flat = RewiredGraph(GRAPH, THETA[0], WEIGHT[0])
    for term in (Mix(), Degree(), Prior()):
        together = term(OUT, shared, split(0))
        alone = torch.stack([term(out, shared, split(0)) for out in OUT])
        torch.testing.assert_close(together, alone)
        assert torch.equal(together, term(OUT, flat, split(0)))


def test_sums():
    one, two, three = LabelConsistency(0.3), Prior(2.0), Degree(0.1)
    expected = one(OUT, DRAWN, DATA) + two(OUT, DRAWN, DATA) + three(OUT, DRAWN, DATA)
    for total in (one + two + three, Sum([one, two, three]), sum([one, two, three])):
        assert isinstance(total, Regularizer)
        torch.testing.assert_close(total(OUT, DRAWN, DATA), expected)
    torch.testing.assert_close(Sum([one, two, three], weight=0.5)(OUT, DRAWN, DATA), expected / 2)
    assert Sum([])(OUT[0], of(0), Data()) == 0


def test_mix_is_the_sum_of_its_parts():
    parts = NeighborhoodConsistency() + InterClass(margin=1.3)
    torch.testing.assert_close(Mix(margin=1.3)(OUT, DRAWN, DATA), parts(OUT, DRAWN, DATA))


def test_labels_are_asked_for_only_where_they_are_used():
    for term in (Degree(), Prior(), Degree() + Prior()):
        assert term(OUT[0], of(0), Data()).isfinite()
    for missing in ("y", "train_mask"):
        data = split(0)
        del data[missing]
        with pytest.raises(DataError, match=f"data.{missing}"):
            (LabelConsistency() + Prior())(OUT[0], of(0), data)


def test_labels_in_a_column_are_read():
    column = Data(y=DATA.y[:, None], train_mask=DATA.train_mask[:, 0])
    term = LabelConsistency()
    assert term(OUT[0], of(0), column) == term(OUT[0], of(0), split(0))


def test_predictions_in_half_precision_are_taken():
    for name in regularizers:
        term = regularizers[name]()
        out, single = OUT[0].half(), RewiredGraph(GRAPH, THETA[:1].float(), WEIGHT[:1].float())
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
        (lambda: Degree()(OUT[0, 0], of(0), Data()), r"output \[N, C\] or \[R, N, C\], but was given .* \[3\]"),
        (lambda: LabelConsistency()(OUT[None], DRAWN, DATA), r"but was given a tensor of shape \[1, 2, 24, 3\]"),
        (lambda: Degree()(OUT[:1], DRAWN, Data()), "the output has 1 replicas, but theta of the rewired graph"),
        (
            lambda: Degree()(OUT, RewiredGraph(GRAPH, THETA, WEIGHT[None]), Data()),
            r"but weight of the .* \[1, 2, ",
        ),
        (lambda: LabelConsistency()(OUT[0], of(0), DATA), "2 splits"),
        (lambda: LabelConsistency()(OUT[0, 1:], of(0), DATA), "24 nodes"),
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
        value = Prior()(OUT[0], RewiredGraph(graph, logits, torch.ones_like(logits)), Data())
        value.backward()
        assert value.item() == pytest.approx(expected, rel=1e-6)
        assert logits.grad.abs().max() < 1e-15
