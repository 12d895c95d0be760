"""Regularizers: values worked out by hand, soft labels, and the call in a loop of one's own."""

from math import log, log2, sqrt

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring.regularizers import (
    Degree,
    InterClass,
    LabelConsistency,
    Mix,
    NeighborhoodConsistency,
    Prior,
    confidence,
    regularizers,
)
from gumbel_mpnn.rewiring.rewirer import RewiredGraph
from gumbel_mpnn.util.errors import DataError, UserError
from helpers import edges, normal, positive, random_edges, small_data

# A square: 0-1, 1-2, 2-3 are given, 0-3 is a candidate. Pairs are sorted: (0, 1), (0, 3), (1, 2), (2, 3).
SQUARE = PairGraph.build(edges((0, 1), (1, 2), (2, 3)), 4, candidate_index=edges((0, 3)))
WEIGHT = (1.0, 0.5, 0.5, 1.0)  # every node has degree 1.5
# Nodes 0, 1, 2 are for training; the prediction at node 3 is (1/4, 3/4), its label 0 is for the test.
Y, TRAIN = torch.tensor([0, 0, 1, 0]), torch.tensor([[True, True, True, False]])
LOGITS = ((9.0, -9.0), (-9.0, 9.0), (0.0, 0.0), (0.0, log(3)))
# So ỹ = (1, 0), (1, 0), (0, 1), (1/4, 3/4). Neighborhoods, the node itself counted, divided by 1 + 1.5:
#   p̃_0 = [(1, 0) + (1, 0) + ½ (¼, ¾)] / 2.5 = (.85, .15)      p̃_1 = [(1, 0) + (1, 0) + ½ (0, 1)] / 2.5 = (.8, .2)
#   p̃_2 = [(0, 1) + ½ (1, 0) + (¼, ¾)] / 2.5 = (.3, .7)        p̃_3 = [(¼, ¾) + ½ (1, 0) + (0, 1)] / 2.5 = (.3, .7)
LABELS_APART = (0 * 1 + 3 / 4 * 0.5 + 1 * 0.5 + 1 / 4 * 1) / 3  # of the pairs in order, Σ w = 3
NEIGHBORHOODS_APART = ((1 - 0.71) * 1 + (1 - 0.36) * 0.5 + (1 - 0.38) * 0.5 + (1 - 0.58) * 1) / 3
# Confidence: 1 at the training nodes; at node 3 1 − H(¼, ¾) in bits. All degrees are equal, so they cancel:
#   r_0 = (p̃_0 + p̃_1 + ¼ c p̃_3) / (2 + ¼ c), r_1 = (p̃_2 + ¾ c p̃_3) / (1 + ¾ c) = (.3, .7)
#   r_0 − r_1 = (.55 + .5) / (2 + ¼ c) · (1, −1)
CONFIDENCE = 1 - (2 - 3 / 4 * log2(3))
CLASSES_APART = sqrt(2) * 1.05 / (2 + CONFIDENCE / 4)
UNEVEN = (1.0, 0.5, 0.0, 2.0)  # degrees 1.5, 1, 2, 2.5
THETA = (0.0, 0.0, log(3), -log(3))  # probabilities ½, ½, ¾, ¼

EXAMPLES = [
    ("label-consistency", {}, {}, LABELS_APART),
    ("label-consistency", {}, {"weight": (1.0, 0.0, 0.0, 0.0)}, 0.0),
    ("label-consistency", {}, {"weight": (1.0, 0.0, 1.0, 0.0)}, 0.5),
    ("neighborhood-consistency", {}, {}, NEIGHBORHOODS_APART),
    ("inter-class", {}, {}, 1 - CLASSES_APART),
    ("inter-class", {"margin": 1.25}, {}, 1.25 - CLASSES_APART),
    ("inter-class", {"margin": 0.7}, {}, 0.0),
    ("mix", {}, {}, NEIGHBORHOODS_APART + 1 - CLASSES_APART),
    ("mix", {"margin": 0.7}, {}, NEIGHBORHOODS_APART),
    ("degree", {"target": 2.0}, {"weight": UNEVEN}, (0.5**2 + 1**2) / 4),
    ("degree", {"target": 2.0, "tolerance": 0.5}, {"weight": UNEVEN}, (1**2 + 1.5**2 + 0.5**2) / 4),
    ("degree", {}, {}, 3.5**2),
    # 0 is five more than the mean of the three given edges, 1.5, whatever their weights in the draw:
    ("degree", {"target": 0.0}, {}, 5**2),
    ("degree", {"target": 0.0}, {"weight": UNEVEN}, (5**2 + 5.5**2 + 4.5**2 + 4**2) / 4),
    # KL(½ ‖ ¾), KL(½ ‖ ¼), KL(¾ ‖ ¾), KL(¼ ‖ ¾):
    ("prior", {"keep": 0.75, "add": 0.25}, {}, (log(4 / 3) / 2 + log(4 / 3) / 2 + 0 + log(3) / 2) / 4),
    ("prior", {}, {"theta": (log(19), -log(19), log(19), log(19))}, 0.0),
    ("prior", {}, {"theta": (-log(19), -log(19), log(19), log(19))}, 0.9 * log(19) / 4),
]


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def square(weight=WEIGHT, theta=THETA):
    return RewiredGraph(SQUARE, theta=tensor([theta]), weight=tensor([weight]))


@pytest.mark.parametrize(("name", "options", "given", "expected"), EXAMPLES)
def test_by_hand(name, options, given, expected):
    value = regularizers[name](**options).penalty(tensor(LOGITS)[None], square(**given), Y, TRAIN)
    torch.testing.assert_close(value, tensor([expected]), rtol=1e-12, atol=1e-12)


def test_every_regularizer_has_an_example():
    assert {name for name, *_ in EXAMPLES} == set(regularizers)


def test_classes_that_nothing_counts_for_are_left_out():
    """A third class that nobody is believed to be of would be at distance ‖r_c‖ from the others."""
    regularizer, train = regularizers["inter-class"](), torch.ones(1, 4, dtype=torch.bool)
    two, three = (regularizer.penalty(torch.zeros(1, 4, c).double(), square(), Y, train) for c in (2, 3))
    assert two > 0
    torch.testing.assert_close(two, three)


def test_nodes_without_neighbors_show_no_neighborhood():
    """Without 2-3 and 0-3 node 3 is isolated: its prediction must not matter."""
    graph = square(weight=(1.0, 0.0, 0.5, 0.0))
    other = tensor(LOGITS)
    other[3] = tensor((5.0, 0.0))
    for name in ("inter-class", "label-consistency", "neighborhood-consistency", "mix"):
        values = [regularizers[name]().penalty(logits[None], graph, Y, TRAIN) for logits in (tensor(LOGITS), other)]
        assert torch.equal(*values)


def test_given_edge_weights_count_as_in_the_layers():
    """Given weights 2, 1, 1 and 1 for the candidate, as if the draw had been (2, ½, ½, 1)."""
    given = PairGraph.build(
        edges((0, 1), (1, 2), (2, 3)), 4, edge_weight=tensor((2.0, 1.0, 1.0)), candidate_index=edges((0, 3))
    )
    graph = RewiredGraph(given, theta=tensor([THETA]), weight=tensor([WEIGHT]))
    for name in ("label-consistency", "neighborhood-consistency", "inter-class", "mix", "degree"):
        regularizer = regularizers[name]()
        value = regularizer.penalty(tensor(LOGITS)[None], graph, Y, TRAIN)
        same = regularizer.penalty(tensor(LOGITS)[None], square(weight=(2.0, 0.5, 0.5, 1.0)), Y, TRAIN)
        torch.testing.assert_close(value, same)


def test_a_directed_graph_is_counted_along_its_arcs():
    """0 → 1 and 2 → 1: in-degrees 0, 2, 0; p̃_1 = (1/3, 2/3), p̃_0 = (0, 1), p̃_2 = (1, 0)."""
    graph = PairGraph.build(edges((0, 1), (2, 1)), 3, undirected=False)
    rewired = RewiredGraph(graph, theta=tensor([(0.0, 0.0)]), weight=tensor([(1.0, 1.0)]))
    y, train = torch.tensor([1, 1, 0]), torch.ones(1, 3, dtype=torch.bool)
    logits = torch.zeros(1, 3, 2, dtype=torch.float64)

    def value(name, **options):
        return regularizers[name](**options).penalty(logits, rewired, y, train).item()

    assert value("label-consistency") == pytest.approx(1 / 2)
    assert value("neighborhood-consistency") == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert value("degree", target=1.0) == pytest.approx(2 / 3)
    goal = 2 / 3 + 5  # an arc is an edge of its target alone
    assert value("degree", target=0.0) == pytest.approx((2 * goal**2 + (goal - 2) ** 2) / 3)


@pytest.mark.parametrize("target", [0.0, 5.0])
def test_a_graph_without_nodes_lacks_no_neighbor(target):
    graph = RewiredGraph(PairGraph.build(edges(), 0), theta=torch.zeros(2, 0), weight=torch.zeros(2, 0))
    logits, y = torch.zeros(2, 0, 3), torch.zeros(0, dtype=torch.int64)
    value = regularizers["degree"](target=target).penalty(logits, graph, y, torch.zeros(2, 0, dtype=torch.bool))
    assert value.tolist() == [0.0, 0.0]


SOFT = torch.tensor([[[0.0, log(3)], [0.0, 0.0], [log(3), 0.0]]], dtype=torch.float64)
LABELS = torch.tensor([1, 0, -1])  # the last is not labelled
FIRST = torch.tensor([[True, False, False]])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("soft", [[0.0, 1.0], [0.5, 0.5], [0.75, 0.25]]), ("one-hot", [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])],
)
def test_labels_where_trained_predictions_elsewhere(kind, expected):
    labels = LabelConsistency(labels=kind).soft_labels(SOFT, square(), LABELS, FIRST)
    torch.testing.assert_close(labels, tensor([expected]))


def test_confidence_is_one_minus_the_share_of_the_largest_entropy():
    certain = confidence(SOFT, FIRST, torch.float64)
    surprise = (log(4) - 0.75 * log(3)) / log(2)
    torch.testing.assert_close(certain, torch.tensor([[1.0, 0.0, 1 - surprise]], dtype=torch.float64))


def test_confidence_of_extreme_logits_is_one():
    logits = torch.tensor([[[1e4, 0.0, -1e4], [-3e4, 3e4, 0.0]]])
    assert confidence(logits, torch.zeros(1, 2, dtype=torch.bool), torch.float32).tolist() == [[1.0, 1.0]]


DATA = small_data()
GRAPH = PairGraph.of(DATA)
REPLICAS, OUT = 2, normal(2, 24, 3)
DRAWN = RewiredGraph(GRAPH, normal(2, GRAPH.num_pairs), positive(2, GRAPH.num_pairs))


def of(replica):
    rows = slice(replica, replica + 1)
    return RewiredGraph(GRAPH, DRAWN.theta[rows], DRAWN.weight[rows])


def split(k):
    return Data(y=DATA.y, train_mask=DATA.train_mask[:, k])


def test_names_and_options():
    assert [regularizers[name] for name in ("lc", "pc", "dc", "inter_class")] == [
        LabelConsistency,
        NeighborhoodConsistency,
        Degree,
        InterClass,
    ]
    assert regularizers.complete("pc", {"weight": 2}) == {"weight": 2.0, "labels": "soft"}
    assert repr(LabelConsistency(0.05)) == "LabelConsistency(0.05, labels=soft)"


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


def test_predictions_in_half_precision_are_taken():
    for name in regularizers:
        term = regularizers[name]()
        out, single = OUT[0].half(), RewiredGraph(GRAPH, DRAWN.theta[:1].float(), DRAWN.weight[:1].float())
        value = term(out, single, split(0))
        torch.testing.assert_close(value, term(out.double(), single, split(0)), rtol=1e-4, atol=1e-4, check_dtype=False)


def test_prior_is_exact_far_from_the_middle():
    """KL(σ(θ) ‖ π) tends to −log π and −log(1 − π)."""
    graph = PairGraph.build(random_edges(5, 1, seed=3), 5)
    for theta, expected in ((50.0, 0.05129329438755058), (-50.0, 2.995732273553991), (1e4, 0.05129329438755058)):
        logits = torch.full((1, graph.num_pairs), theta, requires_grad=True)
        value = Prior()(OUT[0], RewiredGraph(graph, logits, torch.ones_like(logits)), Data())
        value.backward()
        assert value.item() == pytest.approx(expected, rel=1e-6)
        assert logits.grad.abs().max() < 1e-15


def test_labels_are_asked_for_only_where_they_are_used():
    for term in (Degree(), Prior()):
        assert term(OUT[0], of(0), Data()).isfinite()
    for missing in ("y", "train_mask"):
        data = split(0)
        del data[missing]
        with pytest.raises(DataError, match=f"data.{missing}"):
            LabelConsistency()(OUT[0], of(0), data)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LabelConsistency(float("nan")), "weight of LabelConsistency"),
        (lambda: InterClass(margin=0.0), "margin"),
        (lambda: Prior(keep=1.0), "keep"),
        (lambda: Degree()(OUT[0, 0], of(0), Data()), r"output \[N, C\] or \[R, N, C\], but was given .* \[3\]"),
        (lambda: LabelConsistency()(OUT[0], of(0), DATA), "2 splits"),
        (lambda: LabelConsistency()(OUT[0, 1:], of(0), DATA), "24 nodes"),
        (lambda: Mix(prototypes="other"), "there is no value of the option 'prototypes' called 'other'"),
    ],
)
def test_mistakes_are_told(make, words):
    with pytest.raises(UserError, match=words):
        make()
