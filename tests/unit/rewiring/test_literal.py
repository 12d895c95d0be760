"""The literal model is the paper's: values and gradients of every term, compared with its formulas."""

import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
import paper_formulas as paper
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.settings import rewiring_settings
from helpers import edges, normal, randomized

NODES, FEATURES, CLASSES, TAU, WEIGHT = 6, 3, 3, 0.1, 0.7
DATA = Data(
    x=normal(NODES, FEATURES),
    y=torch.tensor([0, 1, 2, 0, 1, 2]),
    edge_index=edges((0, 1), (1, 2), (2, 3), (3, 4)),
    candidate_index=edges((0, 3), (1, 4), (2, 5)),
)
GRAPH = PairGraph.of(DATA).directed()
PAIRS = list(map(tuple, GRAPH.pair_index.T.tolist()))
TRAIN = [[0, 1, 2], [3, 4]]
MASK = torch.tensor([[node in train for node in range(NODES)] for train in TRAIN])
NOISE = 0.05 + 0.9 * torch.rand(2, len(PAIRS), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
PRINTED = {"labels": "one-hot", "weighting": "entropy", "prototypes": "labels", "factor": "printed"}
OPTIONS = {"lc": ["labels"], "pc": ["labels"], "mix": PRINTED, "inter-class": PRINTED}


def literal_model(regularizer="none", options=None, **changes):
    """Two replicas of a GCN of two layers with the literal scorer, all parameters random."""
    given = {name: PRINTED[name] for name in OPTIONS.get(regularizer, [])} | (options or {})
    values = {"scorer": "literal", "origin": "none", "tau": TAU, "prior": 0.0, "regularizer": regularizer, **changes}
    values |= {} if regularizer == "none" else {"regularizer.weight": WEIGHT}
    values |= {f"regularizer.{name}": value for name, value in given.items()}
    model = gm.GumbelMPNN(
        in_channels=FEATURES,
        out_channels=CLASSES,
        hidden_channels=4,
        dropout=0.0,
        replicas=2,
        seeds=[0, 1],
        rewiring=rewiring_settings(values),
    )
    randomized(model)
    model.rewirer.init_own_parameters(None)  # the bias by origin is no parameter: 0
    model.rng.noise = lambda count: NOISE.clone()
    return model


def loss_of(model):
    return model.training_loss(DATA.x, GRAPH, DATA.y, MASK, torch.tensor(0.0))


def loss_by_the_paper(model, replica, regularizer="none", sigmoids=1, hard=True):
    """Cross-entropy + λ · L of one replica, with the parameters of `model`."""
    matrix, bias = model.rewirer.scorer.matrix[replica], model.rewirer.scorer.bias[replica, 0]
    noise = NOISE[replica].tolist()
    drawn = paper.rewired(DATA.x, PAIRS, noise, matrix, bias, TAU, sigmoids=sigmoids, hard=hard)
    hidden = DATA.x
    for conv in model.backbone.convs:
        hidden = torch.relu(paper.gcn_layer(hidden, drawn, conv.linear.weight[replica], conv.bias[replica, 0]))
    logits = hidden @ model.backbone.head.weight[replica] + model.backbone.head.bias[replica, 0]
    y, train = DATA.y.tolist(), TRAIN[replica]
    soft = paper.labels(logits, y, train)
    terms = {
        "dc": lambda: paper.loss_of_degree(drawn, 5.0, 0.0),
        "lc": lambda: paper.loss_of_labels(drawn, soft),
        "pc": lambda: paper.loss_of_neighborhoods(drawn, soft),
        "inter-class": lambda: paper.loss_between_classes(drawn, soft, soft, 1.0),
    }
    named = {"none": [], "mix": ["pc", "inter-class"]}.get(regularizer, [regularizer])
    return paper.cross_entropy(logits, y, train) + sum(WEIGHT * terms[name]() for name in named)


def assert_same_values_and_gradients(model, **how):
    ours, theirs = loss_of(model), torch.stack([loss_by_the_paper(model, replica, **how) for replica in range(2)])
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    parameters = dict(model.named_parameters())
    for replica in range(2):
        found, expected = (
            torch.autograd.grad(loss[replica], parameters.values(), retain_graph=True) for loss in (ours, theirs)
        )
        for name, one, other in zip(parameters, found, expected, strict=True):
            assert float(other[replica].abs().max()) > 1e-9, f"{name} has no gradient, so nothing is compared"
            torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-12, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("regularizer", ["none", "dc", "lc", "pc", "inter-class", "mix"])
def test_the_whole_loss_is_the_papers(regularizer):
    assert_same_values_and_gradients(literal_model(regularizer), regularizer=regularizer)


@pytest.mark.parametrize("sigmoids", [1, 2])
@pytest.mark.parametrize("hard", [True, False])
def test_with_one_and_two_sigmoids_and_hard_and_soft_draws(sigmoids, hard):
    model = literal_model("pc", **{"scorer.second_sigmoid": sigmoids == 2}, hard=hard)
    assert_same_values_and_gradients(model, regularizer="pc", sigmoids=sigmoids, hard=hard)


@pytest.mark.parametrize("sigmoids", [1, 2])
def test_probabilities_are_the_papers(sigmoids):
    model = literal_model(**{"scorer.second_sigmoid": sigmoids == 2})
    found = model.pair_probability(DATA.x, GRAPH)
    form = model.rewirer.scorer
    for replica in range(2):
        matrix, bias = form.matrix[replica], form.bias[replica, 0]
        expected = [paper.edge_probability(DATA.x, i, j, matrix, bias, sigmoids) for i, j in PAIRS]
        torch.testing.assert_close(found[replica], torch.stack(expected).detach())
    if sigmoids == 2:
        assert 0.5 < float(found.min()) < float(found.max()) < 0.7311


@pytest.mark.parametrize("margin", [1.0, 0.25])
def test_l_inter_as_printed_is_a_constant_because_one_hot_labels_have_no_entropy(margin):
    model = literal_model("inter-class", {"margin": margin})
    regularizer = model.terms.regularizers["regularizer"]
    model.train()
    logits, drawn = model(DATA.x, GRAPH, return_graph=True)
    value = regularizer.penalty(logits, drawn, DATA.y, MASK)
    assert value.tolist() == [margin * (CLASSES - 1)] * 2
    gradients = torch.autograd.grad(value.sum(), list(model.rewirer.parameters()))
    assert all(bool((gradient == 0).all()) for gradient in gradients)
