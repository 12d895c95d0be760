"""What every registered regularizer keeps to; a new one is tested by being registered."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring.regularizers import LabelConsistency, regularizers
from gumbel_mpnn.rewiring.rewirer import RewiredGraph
from helpers import LargestOutput, edges, normal, positive, random_edges

NODES, CLASSES = 9, 3
EDGES, CANDIDATES = random_edges(NODES, 16), random_edges(NODES, 8, seed=1)  # the last node is isolated
Y = torch.arange(NODES) % CLASSES
TRAIN = torch.arange(NODES)[None] % 4 == torch.arange(3)[:, None]
NAMES = list(regularizers)
each_regularizer = pytest.mark.parametrize("name", NAMES)
each_direction = pytest.mark.parametrize("undirected", [True, False], ids=["undirected", "directed"])


def pairs(undirected=True, **options):
    return PairGraph.build(EDGES, NODES, undirected=undirected, candidate_index=CANDIDATES, **options)


def rewired(graph, replicas=1, dtype=torch.float64):
    """Random θ and weights, some of them 0."""
    weight = positive(replicas, graph.num_pairs).to(dtype)
    weight[:, ::4] = 0
    return RewiredGraph(graph, 3 * normal(replicas, graph.num_pairs, seed=2).to(dtype), weight)


def logits_for(replicas=1, nodes=NODES, classes=CLASSES, scale=1.0, dtype=torch.float64):
    """Predictions [R, N, C]."""
    return (scale * normal(replicas, nodes, classes, seed=3)).to(dtype)


CASES = {
    "usual": {},
    "weights 0": {"weight": 0.0},
    "weights 1": {"weight": 1.0},
    "tiny weights": {"weight": 1e-30},
    "large logits": {"scale": 1e4, "theta": 60.0},
    "one class": {"classes": 1},
    "no training nodes": {"train": False},
    "only training nodes": {"train": True},
    "no pairs": {"graph": PairGraph.build(edges(), NODES)},
}


@each_direction
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", CASES)
@each_regularizer
def test_value_and_gradients_are_finite(name, case, dtype, undirected):
    given = CASES[case]
    regularizer = regularizers[name]()
    graph = rewired(given.get("graph") or pairs(undirected), 3, dtype)
    if "weight" in given:
        graph = replace(graph, weight=torch.full_like(graph.weight, given["weight"]))
    if "theta" in given:
        graph = replace(graph, theta=graph.theta.sign() * given["theta"])
    classes = given.get("classes", CLASSES)
    logits = logits_for(3, classes=classes, scale=given.get("scale", 1.0), dtype=dtype)
    train = torch.full_like(TRAIN, given["train"]) if "train" in given else TRAIN
    leaves = [tensor.requires_grad_() for tensor in (logits, graph.theta, graph.weight)]
    value = regularizer.penalty(logits, graph, Y % classes, train)
    assert value.shape == (3,)
    assert value.dtype == dtype
    assert value.isfinite().all()
    assert (value > -1e-6).all()
    (value.sum() + 0 * sum(leaf.sum() for leaf in leaves)).backward()
    assert all(leaf.grad.isfinite().all() for leaf in leaves)


@each_regularizer
def test_replicas_together_are_replicas_alone(name):
    regularizer, graph = regularizers[name](), rewired(pairs(), 3)
    logits = logits_for(3)
    together = regularizer.penalty(logits, graph, Y, TRAIN)
    for k in range(3):
        row = slice(k, k + 1)
        one = RewiredGraph(graph.graph, graph.theta[row], graph.weight[row])
        alone = regularizer.penalty(logits[row], one, Y, TRAIN[row])
        torch.testing.assert_close(alone, together[row], rtol=1e-12, atol=1e-12)


@each_regularizer
def test_labels_outside_the_training_set_do_not_matter(name):
    regularizer = regularizers[name]()

    def numbers(y):
        graph = rewired(pairs())
        leaves = [tensor.requires_grad_() for tensor in (logits_for(), graph.theta, graph.weight)]
        value = regularizer.penalty(leaves[0], graph, y, TRAIN[:1])
        (value.sum() + 0 * sum(leaf.sum() for leaf in leaves)).backward()
        return [value, *(leaf.grad for leaf in leaves)]

    shuffled, unknown = Y.clone(), Y.clone()
    shuffled[~TRAIN[0]] = Y[~TRAIN[0]].flip(0)
    unknown[~TRAIN[0]] = -1
    assert not torch.equal(shuffled, Y)
    for y in (shuffled, unknown):
        assert all(torch.equal(one, other) for one, other in zip(numbers(Y), numbers(y), strict=True))


@each_regularizer
def test_labels_of_training_nodes_matter_where_labels_are_used(name):
    regularizer, graph = regularizers[name](), rewired(pairs())
    logits = logits_for()
    values = [regularizer.penalty(logits, graph, y, TRAIN[:1]) for y in (Y, (Y + TRAIN[0]) % CLASSES)]
    mask_all = regularizer.penalty(logits, graph, Y, torch.ones_like(TRAIN[:1]))
    assert torch.equal(values[0], mask_all) == (not regularizer.uses_labels)
    assert torch.equal(*values) == (not regularizer.uses_labels)


@each_regularizer
def test_weight_scales_the_term(name):
    plain, graph = regularizers[name](), rewired(pairs())
    out, data = logits_for()[0], Data(y=Y, train_mask=TRAIN[0])
    penalty = plain.penalty(logits_for(), graph, Y, TRAIN[:1])[0]
    assert penalty > 0
    for weight in (0.0, 0.05, 1.0, 3.0):
        torch.testing.assert_close(regularizers[name](weight)(out, graph, data), weight * penalty)


@each_direction
@pytest.mark.parametrize("name", [name for name in NAMES if name != "prior"])
def test_weight_zero_is_the_pair_removed(name, undirected):
    """The prior judges probabilities, which a pair that was not drawn has too."""
    regularizer, graph = regularizers[name](), rewired(pairs(undirected))
    kept = graph.weight[0] != 0
    smaller = RewiredGraph(
        PairGraph.build(graph.graph.pair_index[:, kept], NODES, undirected=undirected),
        graph.theta[:, kept],
        graph.weight[:, kept],
    )
    logits = logits_for()
    values = [regularizer.penalty(logits, given, Y, TRAIN[:1]) for given in (graph, smaller)]
    torch.testing.assert_close(*values, rtol=1e-12, atol=1e-12)


@each_regularizer
def test_numbering_of_nodes_does_not_matter(name):
    regularizer = regularizers[name]()
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(5))
    plain, renamed = (
        PairGraph.build(names[EDGES], NODES, candidate_index=names[CANDIDATES])
        for names in (torch.arange(NODES), order.argsort())
    )
    of_pair = {tuple(sorted(pair)): k for k, pair in enumerate(order.argsort()[plain.pair_index].T.tolist())}
    rows = torch.tensor([of_pair[tuple(pair)] for pair in renamed.pair_index.T.tolist()])
    graph, logits = rewired(plain), logits_for()
    moved = RewiredGraph(renamed, graph.theta[:, rows], graph.weight[:, rows])
    value = regularizer.penalty(logits, graph, Y, TRAIN[:1])
    other = regularizer.penalty(logits[:, order], moved, Y[order], TRAIN[:1, order])
    torch.testing.assert_close(value, other, rtol=1e-12, atol=1e-12)


@each_direction
@each_regularizer
def test_gradients_are_those_of_differences(name, undirected):
    """Weights away from 0, where sums and distances are smooth; predictions are not let through."""
    regularizer, graph = regularizers[name](), pairs(undirected)
    theta, weight = normal(2, graph.num_pairs, seed=2), positive(2, graph.num_pairs)
    logits = logits_for(2)
    learned = [theta.requires_grad_(), weight.requires_grad_()]

    def value(theta, weight):
        # What does not depend on an input has gradient 0, which gradcheck wants to see.
        zero = 0 * (theta.sum() + weight.sum())
        return regularizer.penalty(logits, RewiredGraph(graph, theta, weight), Y, TRAIN[:2]) + zero

    assert torch.autograd.gradcheck(value, learned)


@each_regularizer
def test_edges_are_pushed_and_predictions_are_not(name):
    regularizer, graph = regularizers[name](), rewired(pairs())
    logits = logits_for().requires_grad_()
    for tensor in (graph.theta, graph.weight):
        tensor.requires_grad_()
    regularizer.penalty(logits, graph, Y, TRAIN[:1]).sum().backward()
    reached = [name for name in ("theta", "weight") if getattr(graph, name).grad is not None]
    assert logits.grad is None
    assert reached == (["theta"] if name == "prior" else ["weight"])


@each_regularizer
def test_no_array_of_pairs_times_classes_nor_of_nodes_squared(name):
    nodes, classes = 60, 8
    graph = PairGraph.build(random_edges(nodes, 4000), nodes)
    given = rewired(graph)
    regularizer = regularizers[name]()
    leaves = [given.theta, given.weight, logits_for(nodes=nodes, classes=classes)]
    for leaf in leaves:
        leaf.requires_grad_()
    y, train = torch.arange(nodes) % classes, torch.arange(nodes)[None] % 3 == 0
    graph.pairs  # noqa: B018 - laid out once, not in every step
    with LargestOutput() as largest:
        regularizer.penalty(leaves[2], given, y, train).sum().backward()
    assert largest.elements <= graph.num_arcs < nodes**2 < graph.num_pairs * classes


def test_a_sampled_edge_moves_its_logit():
    """Through hard weights with a straight-through gradient, θ of the wrong edge falls and of the right one rises."""
    theta = torch.zeros(1, 2, requires_grad=True)
    soft = theta.sigmoid()
    graph = RewiredGraph(PairGraph.build(edges((0, 1), (1, 2)), 3), theta, torch.ones(1, 2) + soft - soft.detach())
    data = Data(y=torch.tensor([0, 0, 1]), train_mask=torch.ones(3, dtype=torch.bool))
    LabelConsistency(0.5)(torch.zeros(3, 2), graph, data).backward()
    # L = w_12 / (w_01 + w_12) at (1, 1): derivatives −1/4 and 1/4, times λ = 1/2 and σ' = 1/4.
    torch.testing.assert_close(theta.grad, torch.tensor([[-1 / 32, 1 / 32]]))
