"""The terms of the loss, each against its value worked out by hand, the loss as their sum, and agreement."""

import math

import pytest
import torch

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring import GumbelMPNN
from gumbel_mpnn.rewiring.losses import Draw, ShownDecoys, Terms, agreement, growing_agreement
from gumbel_mpnn.rewiring.regularizers import Degree, Prior
from gumbel_mpnn.rewiring.rewirer import RewiredGraph
from gumbel_mpnn.rewiring.scorers import scorers
from gumbel_mpnn.settings import RewiringSettings, rewiring_settings
from gumbel_mpnn.util.errors import UserError
from helpers import edges, normal, random_edges, small_data

GRAPH = PairGraph.build(edges((0, 1)), 3, candidate_index=edges((1, 2)))
"""Three nodes; the edge 0 – 1 is given, 1 – 2 is a candidate."""
THETA = torch.tensor([[0.0, math.log(3)], [math.log(4), 0.0]])
"""Probabilities ½ and ¾ in the first replica, ⅘ and ½ in the second."""
Y = torch.tensor([0, 1, 1])
TRAIN = torch.tensor([[True, True, False], [False, True, False]])


def logits(*rows):
    """[R, N, C] for two classes, from the probability of class 0 at every node."""
    share = torch.tensor(rows)
    return torch.stack([share.log(), (1 - share).log()], -1)


FIRST = logits([0.5, 0.5, 0.9], [0.5, 0.75, 0.1])
SECOND = logits([0.25, 0.75, 0.9], [0.5, 0.5, 0.1])


def draws(*outputs, floods=(None, None)):
    """One pair is drawn in the first graph and both are in the second."""
    weights = torch.tensor([[[1.0, 0.0]] * 2, [[1.0, 1.0]] * 2])
    drawn = zip(weights, outputs, floods, strict=False)
    return [Draw(RewiredGraph(GRAPH, THETA, weight), given, flood) for weight, given, flood in drawn]


def make_terms(**values):
    settings = rewiring_settings({"prior": 0.0, **values})
    return Terms(settings, scorers[settings.scorer](1, 3, 2, **settings.options_of("scorer")))


def value(name, drawn, progress=0.5, belief_logits=None, **values):
    """The only term beside the classification, or the classification itself."""
    terms = make_terms(**values)(drawn, Y, TRAIN, torch.tensor(progress), belief_logits)
    assert {*terms} == {name, "classification"}
    assert all(term.shape == (2,) for term in terms.values())
    return terms[name].tolist()


def test_classification_is_the_mean_over_training_nodes_and_graphs():
    # −log of the probability of the right class: node 0 has class 0, node 1 class 1.
    first = [(math.log(2) + math.log(2)) / 2, math.log(4)]
    second = [(math.log(4) + math.log(4)) / 2, math.log(2)]
    assert value("classification", draws(FIRST)) == pytest.approx(first)
    expected = [(one + other) / 2 for one, other in zip(first, second, strict=True)]
    assert value("classification", draws(FIRST, SECOND)) == pytest.approx(expected)


def test_beliefs_are_judged_on_training_nodes():
    assert value("beliefs", draws(FIRST), belief_logits=SECOND) == pytest.approx([math.log(4), math.log(2)])


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_pairs_of_training_nodes_are_told_apart_by_class(weight):
    """Only 0 – 1 has two training nodes, in the first replica alone; they differ, and its probability is ½."""
    found = value("pairs", draws(FIRST, SECOND), scorer={"name": "class-space", "pair_loss": weight})
    assert found == pytest.approx([weight * math.log(2), 0])


def test_decoys_are_told_from_edges():
    """The given edge counts, and the pair 1 – 2 as a decoy where it is shown: in the second replica alone."""
    given = torch.tensor([[True, False], [True, True]])
    flood = ShownDecoys(GRAPH, given, present=given)
    edge_alone, both = -math.log(1 / 2), (-math.log(4 / 5) - math.log(1 - 1 / 2)) / 2
    for floods in ((flood, flood), (None, flood)):
        found = value("decoys", draws(FIRST, SECOND, floods=floods), scorer={"name": "neighborhood", "decoys": 2.0})
        assert found == pytest.approx([10 * edge_alone, 10 * both])


def test_a_regularizer_is_the_mean_over_the_graphs():
    # Degrees are 1, 1, 0 on the first graph and 1, 2, 1 on the second; 2 are asked for.
    first, second = (1 + 1 + 4) / 3, (1 + 0 + 1) / 3
    degree = {"name": "degree", "weight": 0.5, "target": 2.0}
    assert value("regularizer", draws(FIRST), regularizer=degree) == pytest.approx([first / 2] * 2)
    assert value("regularizer", draws(FIRST, SECOND), regularizer=degree) == pytest.approx([(first + second) / 4] * 2)


@pytest.mark.parametrize(("progress", "share"), [(0.0, 0.0), (0.1, 0.25), (0.2, 0.5), (0.4, 1.0), (1.0, 1.0)])
def test_agreement_is_weighted_and_grows_over_its_share_of_the_epochs(progress, share):
    settings = {"agreement": 3.0, "agreement_ramp": 0.4, "samples": 2}
    found = value("agreement", draws(FIRST, SECOND), progress, **settings)
    assert found == pytest.approx((3 * share * agreement([FIRST, SECOND])).tolist())
    assert growing_agreement([FIRST, SECOND], 3.0, 0.0, torch.tensor(0.0)).tolist() == pytest.approx(
        (3 * agreement([FIRST, SECOND])).tolist()
    )


def test_which_terms_there_are_and_that_their_settings_reach_them():
    off = {"regularizer": "mix", "regularizer.weight": 0.0, "agreement": 0.1, "samples": 2}
    value("agreement", draws(FIRST, SECOND), **off)
    prior = make_terms(prior=0.3, keep=0.8, add=0.1).regularizers["prior"]
    assert (type(prior), prior.weight, prior.keep, prior.add) == (Prior, 0.3, 0.8, 0.1)
    options = {"regularizer.weight": 2.0, "regularizer.target": 8.0, "regularizer.tolerance": 1.5}
    degree = make_terms(regularizer="degree", **options).regularizers["regularizer"]
    assert (type(degree), degree.weight, degree.target, degree.tolerance) == (Degree, 2.0, 8.0, 1.5)


def test_the_loss_of_training_is_their_sum(monkeypatch):
    data = small_data()
    graph = PairGraph.build(data.edge_index, 24, candidate_index=random_edges(24, 20, seed=1))
    rewiring = RewiringSettings(
        scorer="neighborhood",
        samples=2,
        regularizer="mix",
        options={"regularizer.weight": 0.5, "scorer.decoys": 1.0},
        prior=0.1,
        agreement=0.3,
        agreement_ramp=0.8,
    )
    model = GumbelMPNN(
        in_channels=6, out_channels=3, hidden_channels=8, dropout=0.0, replicas=2, seeds=[1, 2], rewiring=rewiring
    ).train()
    calls = []
    monkeypatch.setattr(
        model, "terms", lambda *step, terms=model.terms: calls.append((step, terms(*step))) or calls[-1][1]
    )
    progress = torch.tensor(0.5)
    loss = model.training_loss(data.x, graph, data.y, data.train_mask.T, progress)
    (((drawn, _, _, seen, *_), terms),) = calls
    assert [*terms] == ["beliefs", "decoys", "classification", "regularizer", "prior", "agreement"]
    assert all(float(term.detach().abs().min()) > 0 for term in terms.values())
    torch.testing.assert_close(loss, torch.stack([*terms.values()]).sum(0))
    assert seen is progress
    first, second = drawn
    assert not torch.equal(first.graph.weight, second.graph.weight)


EVEN, LOW, HIGH = (0.0, 0.0), (0.0, math.log(3)), (math.log(3), 0.0)  # predictions (½, ½), (¼, ¾) and (¾, ¼)
SAMPLES = [(EVEN, HIGH, LOW, EVEN), (EVEN, LOW, LOW, LOW)]
# Mean predictions (½, ½), (½, ½), (¼, ¾), (3/8, 5/8). Squared and normalised: (½, ½), (½, ½), (.1, .9), (9, 25) / 34.
OUTPUTS = [torch.tensor(sample, dtype=torch.float64) for sample in SAMPLES]
OF_REPLICAS = list(normal(3, 2, 24, 4))


@pytest.mark.parametrize(
    ("outputs", "options", "expected"),
    [
        (OUTPUTS, {}, (0 + 1 / 8 + 2 * 0.15**2 + (64 + 0.25) / 34**2) / 4),
        (OUTPUTS, {"temperature": 1.0}, (0 + 1 / 8 + 0 + 2 / 64) / 4),
        (OUTPUTS[:1] * 3, {"temperature": 1.0}, 0.0),
    ],
)
def test_agreement_by_hand(outputs, options, expected):
    value = agreement(outputs, **options)
    assert value.shape == ()
    torch.testing.assert_close(value, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)


def test_replicas_together_are_replicas_alone():
    together = agreement(OF_REPLICAS)
    assert together.shape == (2,)
    for k in range(2):
        torch.testing.assert_close(agreement([output[k] for output in OF_REPLICAS]), together[k])


def test_all_samples_are_pulled_to_a_target_that_stands_still():
    logits = torch.zeros(2, 1, 2, dtype=torch.float64)
    logits[0, 0, 0] = 1.0
    logits.requires_grad_()
    agreement(list(logits)).backward()
    first, second = logits.grad[:, 0, 0]
    assert second < 0  # the undecided sample is drawn towards class 0
    predicted = logits.detach().softmax(-1)
    target = predicted.mean(0).square()
    target = target / target.sum(-1, keepdim=True)
    free = logits.detach().clone().requires_grad_()
    (free.softmax(-1) - target).square().sum(-1).mean().backward()
    torch.testing.assert_close(torch.stack([first, second]), free.grad[:, 0, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("classes", [1, 3])
def test_value_and_gradient_are_finite(classes, scale, dtype):
    logits = (scale * normal(2, 2, 9, classes)).to(dtype).requires_grad_()
    value = agreement(list(logits))
    value.sum().backward()
    assert value.dtype == dtype
    assert (value >= 0).all()
    assert value.isfinite().all()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (OF_REPLICAS[0], r"takes a list of two or more outputs, not a tensor of shape \[2, 24, 4\]"),
        (OF_REPLICAS[:1], r"was given \[2, 24, 4\]$"),
        ([OF_REPLICAS[0], OF_REPLICAS[0][0]], r"was given \[2, 24, 4\], \[24, 4\]$"),
    ],
)
def test_outputs_that_cannot_be_compared(outputs, message):
    with pytest.raises(UserError, match=message):
        agreement(outputs)
