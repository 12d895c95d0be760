"""The terms of the loss, each against its value worked out by hand, the loss as their sum, and agreement."""

import math

import pytest
import torch

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring import GumbelMPNN
from gumbel_mpnn.rewiring.decoys import Decoys, ShownDecoys
from gumbel_mpnn.rewiring.losses import (
    Agreement,
    BeliefLoss,
    Classification,
    DecoyLoss,
    Draw,
    PairLoss,
    Regularization,
    Step,
    Term,
    agreement,
    make_terms,
)
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


def step(outputs=(FIRST, SECOND), progress=0.5, floods=(None, None), **others):
    """A step that drew one pair in its first graph and both in its second."""
    weights = torch.tensor([[[1.0, 0.0]] * 2, [[1.0, 1.0]] * 2])
    drawn = zip(weights, outputs, floods, strict=False)
    draws = [Draw(RewiredGraph(GRAPH, THETA, weight), given, flood) for weight, given, flood in drawn]
    return Step(draws, Y, TRAIN, torch.tensor(progress), **others)


def value(term, step):
    found = term(step)
    assert found.shape == (2,)
    return found.tolist()


def test_classification_is_the_mean_over_training_nodes_and_graphs():
    # −log of the probability of the right class: node 0 has class 0, node 1 class 1.
    first = [(math.log(2) + math.log(2)) / 2, math.log(4)]
    second = [(math.log(4) + math.log(4)) / 2, math.log(2)]
    assert value(Classification(), step([FIRST])) == pytest.approx(first)
    expected = [(one + other) / 2 for one, other in zip(first, second, strict=True)]
    assert value(Classification(), step()) == pytest.approx(expected)


def test_beliefs_are_judged_on_training_nodes():
    assert value(BeliefLoss(), step(belief_logits=SECOND)) == pytest.approx([math.log(4), math.log(2)])


def test_pairs_of_training_nodes_are_told_apart_by_class():
    """Only 0 – 1 has two training nodes, in the first replica alone; they differ, and its probability is ½."""
    assert value(PairLoss(1.0), step()) == pytest.approx([math.log(2), 0])
    assert value(PairLoss(0.5), step()) == pytest.approx([math.log(2) / 2, 0])


def test_decoys_are_told_from_edges():
    """The given edge counts, and the pair 1 – 2 as a decoy where it is shown: in the second replica alone."""
    flood = ShownDecoys(Decoys(GRAPH, torch.tensor([False, True])), torch.tensor([[False, False], [False, True]]))
    edge_alone, both = -math.log(1 / 2), (-math.log(4 / 5) - math.log(1 - 1 / 2)) / 2
    for floods in ((flood, flood), (None, flood)):
        assert value(DecoyLoss(), step(floods=floods)) == pytest.approx([10 * edge_alone, 10 * both])


def test_a_regularizer_is_the_mean_over_the_graphs():
    # Degrees are 1, 1, 0 on the first graph and 1, 2, 1 on the second; 2 are asked for.
    first, second = (1 + 1 + 4) / 3, (1 + 0 + 1) / 3
    term = Regularization(Degree(0.5, target=2.0))
    assert value(term, step([FIRST])) == pytest.approx([first / 2] * 2)
    assert value(term, step()) == pytest.approx([(first + second) / 4] * 2)


def test_agreement_is_weighted():
    assert value(Agreement(3.0), step()) == pytest.approx((3 * agreement([FIRST, SECOND])).tolist())


@pytest.mark.parametrize(("progress", "share"), [(0.0, 0.0), (0.1, 0.25), (0.2, 0.5), (0.4, 1.0), (1.0, 1.0)])
def test_agreement_grows_over_its_share_of_the_epochs(progress, share):
    whole = value(Agreement(2.0), step())
    assert value(Agreement(2.0, ramp=0.4), step(progress=progress)) == pytest.approx([share * each for each in whole])


def terms_of(values):
    settings = rewiring_settings(values)
    return make_terms(settings, scorers[settings.scorer](1, 3, 2, **settings.options_of("scorer")))


def test_which_terms_there_are_and_that_their_settings_reach_them():
    beliefs, classification, prior = terms_of({})
    assert isinstance(beliefs, BeliefLoss)
    assert isinstance(classification, Classification)
    assert (type(prior.regularizer), prior.regularizer.weight) == (Prior, 1.0)
    off = {"regularizer": "mix", "regularizer.weight": 0.0, "agreement": 0.1, "samples": 2, "prior": 0.0}
    assert [type(term) for term in terms_of(off)] == [BeliefLoss, Classification, Agreement]
    every = {"regularizer": "degree", "prior": 0.3, "keep": 0.8, "add": 0.1, "samples": 2}
    every |= {"agreement": 0.4, "agreement_ramp": 0.2, "scorer": {"name": "class-facts", "pair_loss": 0.6}}
    every |= {"regularizer.weight": 2.0, "regularizer.target": 8.0, "regularizer.tolerance": 1.5}
    _, _, degree, prior, pairs, agreed = terms_of(every)
    assert pairs.weight == 0.6
    assert (degree.regularizer.weight, degree.regularizer.target, degree.regularizer.tolerance) == (2.0, 8.0, 1.5)
    assert (prior.regularizer.weight, prior.regularizer.keep, prior.regularizer.add) == (0.3, 0.8, 0.1)
    assert (agreed.weight, agreed.ramp) == (0.4, 0.2)
    decoys = terms_of({"scorer": {"name": "neighborhood", "decoys": 2.0}})
    assert [type(term) for term in decoys] == [BeliefLoss, DecoyLoss, Classification, Regularization]


class Noted(Term):
    """A term that writes down the step that it saw and its value."""

    def __init__(self, term):
        self.term, self.steps, self.values = term, [], []

    def __call__(self, step):
        self.steps.append(step)
        self.values.append(self.term(step))
        return self.values[-1]


def test_the_loss_of_training_is_their_sum():
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
    model.terms = [Noted(term) for term in model.terms]
    progress = torch.tensor(0.5)
    loss = model.training_loss(data.x, graph, data.y, data.train_mask.T, progress)
    assert [type(term.term) for term in model.terms] == [
        BeliefLoss,
        DecoyLoss,
        Classification,
        Regularization,
        Regularization,
        Agreement,
    ]
    assert all(float(term.values[0].detach().abs().min()) > 0 for term in model.terms)
    torch.testing.assert_close(loss, torch.stack([term.values[0] for term in model.terms]).sum(0))
    (seen,) = {id(term.steps[0]): term.steps[0] for term in model.terms}.values()
    assert len(seen.draws) == 2
    assert seen.progress is progress
    assert not torch.equal(seen.draws[0].graph.weight, seen.draws[1].graph.weight)


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
