"""The paper's theorem: the bound by hand, the inequality on generated graphs, and where it says nothing."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_undirected

from gumbel_mpnn._util.errors import DataError, UserError
from gumbel_mpnn.data import mixture_neighborhoods
from gumbel_mpnn.measures import neighborhood_distributions, theorem_bound
from helpers import both_ways, edges, normal, small_data

# Nodes 0 and 1 are of class 0; around 0 are one of each class, around 1 two of class 1.
GRAPH = Data(
    edge_index=edges((0, 4), (0, 2), (1, 2), (1, 3)),
    y=torch.tensor([0, 0, 1, 1, 0]),
    x=torch.tensor([[2.0, 0], [4, 0], [0, 2], [0, 4], [0, 0]]),
)
PAIR = edges((0, 1))


def test_the_bound_by_hand():
    # Class means (2, 0) and (0, 3): expected neighbor features (1, 1.5) and (0, 3), their difference (1, -1.5).
    bound = theorem_bound(GRAPH, torch.tensor([[3.0, 0], [0, 2], [0, 0]]), PAIR)
    assert bound.difference.tolist() == [[1, -1.5]]
    assert bound.sigma_min == pytest.approx(2)
    assert bound.bound.tolist() == pytest.approx([2 * 3.25**0.5])
    assert bound.image.tolist() == pytest.approx([18**0.5])
    assert not bound.is_vacuous
    remark = "the theorem's bound is 3.606 in the mean over 1 pairs, whose expected embeddings are 4.243 apart"
    assert str(bound) == bound.remark == remark


def test_a_layer_that_takes_the_node_itself_too():
    # Around 0: two of class 0, one of class 1; around 1: one of class 0, two of class 1.
    bound = theorem_bound(GRAPH, torch.eye(2), PAIR, own_label=True)
    assert bound.difference.flatten().tolist() == pytest.approx([2 / 3, -1])


def test_layers_of_pyg_and_arrays_of_numpy_are_taken():
    layer = GCNConv(2, 3).lin
    means = torch.tensor([[2.0, 0], [0, 3]])
    bound = theorem_bound(GRAPH, layer, PAIR, class_means=means.numpy())
    assert torch.equal(bound.bound, theorem_bound(GRAPH, layer.weight, PAIR).bound)
    assert torch.equal(bound.bound, theorem_bound(GRAPH, layer.weight.detach().numpy(), PAIR).bound)


def test_a_layer_without_a_weight_is_said():
    with pytest.raises(UserError, match="GCNConv has no weight matrix"):
        theorem_bound(GRAPH, GCNConv(2, 3), PAIR)


def test_fewer_channels_than_features_make_it_vacuous():
    bound = theorem_bound(GRAPH, torch.nn.Linear(2, 1), PAIR)
    assert bound.sigma_min == 0
    assert bound.bound.tolist() == [0]
    assert bound.is_vacuous
    assert str(bound).startswith(
        "the theorem's bound is vacuous: W maps 2 features to 1 channels and so takes some direction to 0"
    )


def test_a_singular_square_matrix_makes_it_vacuous():
    bound = theorem_bound(GRAPH, torch.ones(2, 2), PAIR)
    assert bound.is_vacuous
    assert bound.bound.tolist() == pytest.approx([0], abs=1e-12)
    assert "W has not full rank as a map of 2 features" in bound.remark


def test_on_the_span_of_the_class_means_a_narrow_layer_still_has_a_bound():
    # The means of both classes lie on one line, (2, 0) and (0, 3): one channel along it is enough.
    along = torch.tensor([[2.0, -3.0]])
    bound = theorem_bound(GRAPH, along, PAIR)
    assert bound.is_vacuous
    assert bound.class_sigma_min == pytest.approx(13**0.5)
    assert bound.class_bound.tolist() == pytest.approx(bound.image.tolist())


def test_classes_that_features_do_not_tell_apart_have_no_bound():
    bound = theorem_bound(GRAPH, torch.eye(2), PAIR, class_means=torch.ones(2, 2))
    assert (bound.class_sigma_min, bound.bound.tolist(), bound.image.tolist()) == (0, [0], [0])


@st.composite
def small_tasks(draw):
    """A graph of six nodes in two classes, class means and spreads in two dimensions, and a layer."""
    pairs = [(a, b) for a in range(6) for b in range(a)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=4, unique=True))
    numbers = st.floats(-3, 3, width=32)
    means, spreads = (torch.tensor(draw(st.lists(numbers, min_size=4, max_size=4))).view(2, 2) for _ in range(2))
    rows = draw(st.integers(1, 3))
    weight = torch.tensor(draw(st.lists(numbers, min_size=2 * rows, max_size=2 * rows))).view(rows, 2)
    return Data(edge_index=edges(*chosen), y=torch.tensor([0, 0, 0, 1, 1, 1])), means, spreads, weight


@settings(max_examples=40, deadline=None)
@given(small_tasks())
def test_the_inequality_with_the_expectation_worked_out(task):
    """Features are mean ± spread of the class, the sign of each node by itself: 64 equally likely draws."""
    data, means, spreads, weight = (part if isinstance(part, Data) else part.double() for part in task)
    rows = neighborhood_distributions(data, own_label=False)
    usable = (rows.sum(1) > 0).tolist()
    pairs = [(i, j) for i, j in ((0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)) if usable[i] and usable[j]]
    if not pairs:
        return
    bound = theorem_bound(data, weight, edges(*pairs), class_means=means)
    adjacency = torch.zeros(6, 6, dtype=torch.float64)
    adjacency[tuple(both_ways(data.edge_index))] = 1
    average = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
    expected = torch.zeros(len(pairs), dtype=torch.float64)
    for signs in product((-1.0, 1.0), repeat=6):
        x = means[data.y] + torch.tensor(signs, dtype=torch.float64)[:, None] * spreads[data.y]
        h = average @ x @ weight.T
        first, second = edges(*pairs)
        expected += (h[first] - h[second]).norm(dim=1) / 64
    assert (bound.image <= expected + 1e-9).all()
    assert (bound.class_bound <= bound.image + 1e-9).all()
    assert (bound.bound <= bound.class_bound + 1e-9).all()


def test_the_inequality_on_a_generated_graph():
    """Two neighborhood components per class, Gaussian features, the mean distance over 300 draws of all features."""
    data = mixture_neighborhoods(small_data(nodes=120, classes=4), components=2, seed=1)
    means, weight = 3 * normal(4, 5, seed=2), normal(8, 5, seed=3)
    bound = theorem_bound(data, weight, class_means=means, samples=200)
    source, target = to_undirected(data.edge_index, num_nodes=120)
    average = torch.zeros(120, 120, dtype=torch.float64).index_put((target, source), torch.tensor(1.0).double())
    average = average / average.sum(1, keepdim=True).clamp(min=1)
    first, second = bound.pairs
    x = means[data.y] + normal(300, 120, 5, seed=4)
    h = average @ x @ weight.T
    distance = (h[:, first] - h[:, second]).norm(dim=2).mean(0)
    assert not bound.is_vacuous
    assert bound.bound.mean() > 0.1
    assert (bound.bound <= distance).all()
    assert (bound.image <= 1.02 * distance + 0.05).all()  # a mean over draws may be a little below its expectation


def test_drawn_pairs_share_a_label_and_have_neighbors():
    data = small_data(nodes=40, classes=4)
    data.y[5] = -1
    bound = theorem_bound(data, normal(7, 6), samples=500, seed=3)
    first, second = bound.pairs
    assert bound.pairs.shape == (2, 500)
    assert (data.y[first] == data.y[second]).all()
    assert (first != second).all()
    assert 5 not in bound.pairs
    assert 39 not in bound.pairs  # isolated
    assert torch.equal(bound.pairs, theorem_bound(data, normal(7, 6), samples=500, seed=3).pairs)
    assert (bound.bound <= bound.class_bound + 1e-9).all()


def test_a_sparse_feature_matrix_is_taken():
    sparse = GRAPH.clone()
    sparse.x = GRAPH.x.to_sparse()
    assert theorem_bound(sparse, torch.eye(2), PAIR).bound.equal(theorem_bound(GRAPH, torch.eye(2), PAIR).bound)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight": torch.eye(3)}, r"a weight \[h, 2\]"),
        ({"weight": torch.eye(2)[0]}, r"a weight \[h, 2\]"),
        ({"class_means": torch.eye(3)}, r"class means \[2, d\]"),
        ({"pairs": edges((0, 2))}, "same label"),
        ({"pairs": edges((0, 9))}, "nodes 0 to 9 of 5"),
        ({"pairs": torch.tensor([0, 1])}, r"shape \[2, K\]"),
    ],
)
def test_what_does_not_fit_together(changes, message):
    with pytest.raises(UserError, match=message):
        theorem_bound(GRAPH, **{"weight": torch.eye(2), "pairs": PAIR, **changes})


def test_a_graph_without_features_or_pairs():
    with pytest.raises(DataError, match="no features x"):
        theorem_bound(Data(edge_index=GRAPH.edge_index, y=GRAPH.y), torch.eye(2), PAIR)
    with pytest.raises(DataError, match="no 1000 pairs"):
        theorem_bound(Data(edge_index=edges(), y=GRAPH.y, x=GRAPH.x), torch.eye(2))
    unlabelled = Data(edge_index=GRAPH.edge_index, y=torch.full((5,), -1), x=GRAPH.x)
    with pytest.raises(DataError, match="no 1000 pairs"):
        theorem_bound(unlabelled, torch.eye(2))
