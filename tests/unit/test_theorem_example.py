"""The paper's theorem: the bound by hand, the inequality on generated graphs, and where it says nothing."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_examples import EXAMPLES, example
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from gumbel_mpnn.data import mixture_neighborhoods
from gumbel_mpnn.measures import neighborhood_distributions
from helpers import both_ways, edges, normal, small_data

if not EXAMPLES.is_dir():
    pytest.skip("the examples are not here", allow_module_level=True)

theorem = example("theorem")

# Nodes 0 and 1 are of class 0; around 0 are one of each class, around 1 two of class 1.
GRAPH = Data(
    edge_index=edges((0, 4), (0, 2), (1, 2), (1, 3)),
    y=torch.tensor([0, 0, 1, 1, 0]),
    x=torch.tensor([[2.0, 0], [4, 0], [0, 2], [0, 4], [0, 0]]),
)
PAIR = edges((0, 1))


def test_the_bound_by_hand():
    # Class means (2, 0) and (0, 3): expected neighbor features (1, 1.5) and (0, 3), their difference (1, -1.5).
    bounds = theorem.theorem_bounds(GRAPH, torch.tensor([[3.0, 0], [0, 2], [0, 0]]), PAIR)
    assert bounds.printed.tolist() == pytest.approx([2 * 3.25**0.5])
    assert bounds.expected.tolist() == pytest.approx([18**0.5])


def test_a_layer_that_takes_the_node_itself_too():
    # Around 0: two of class 0, one of class 1; around 1: one of class 0, two of class 1.
    bounds = theorem.theorem_bounds(GRAPH, torch.eye(2), PAIR, own_label=True)
    assert bounds.expected.tolist() == pytest.approx([(4 / 9 + 1) ** 0.5])


@pytest.mark.parametrize("weight", [torch.ones(1, 2), torch.ones(2, 2)], ids=["narrow", "singular"])
def test_where_a_direction_is_lost_the_printed_bound_is_zero(weight):
    assert theorem.theorem_bounds(GRAPH, weight, PAIR).printed.tolist() == pytest.approx([0], abs=1e-12)


def test_on_the_span_of_the_class_means_a_narrow_layer_still_has_a_bound():
    # The means of both classes lie on one line, (2, 0) and (0, 3): one channel along it is enough.
    bounds = theorem.theorem_bounds(GRAPH, torch.tensor([[2.0, -3.0]]), PAIR)
    assert bounds.printed.tolist() == [0]
    assert bounds.on_class_means.tolist() == pytest.approx([(13 * 3.25) ** 0.5])
    assert bounds.on_class_means.tolist() == pytest.approx(bounds.expected.tolist())


def test_classes_that_features_do_not_tell_apart_have_no_bound():
    bounds = theorem.theorem_bounds(GRAPH, torch.eye(2), PAIR, torch.ones(2, 2))
    assert (bounds.printed.tolist(), bounds.on_class_means.tolist(), bounds.expected.tolist()) == ([0], [0], [0])


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
    bounds = theorem.theorem_bounds(data, weight, edges(*pairs), means)
    adjacency = torch.zeros(6, 6, dtype=torch.float64)
    adjacency[tuple(both_ways(data.edge_index))] = 1
    average = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
    distance = torch.zeros(len(pairs), dtype=torch.float64)
    for signs in product((-1.0, 1.0), repeat=6):
        x = means[data.y] + torch.tensor(signs, dtype=torch.float64)[:, None] * spreads[data.y]
        h = average @ x @ weight.T
        first, second = edges(*pairs)
        distance += (h[first] - h[second]).norm(dim=1) / 64
    assert (bounds.expected <= distance + 1e-9).all()
    assert (bounds.on_class_means <= bounds.expected + 1e-9).all()
    assert (bounds.printed <= bounds.on_class_means + 1e-9).all()


def test_the_inequality_on_a_generated_graph():
    """Two neighborhood components per class, Gaussian features, the mean distance over 300 draws of all features."""
    data = mixture_neighborhoods(small_data(nodes=120, classes=4), components=2, seed=1)
    means, weight = 3 * normal(4, 5, seed=2), normal(8, 5, seed=3)
    first, second = pairs = theorem.same_class_pairs(data, 200)
    bounds = theorem.theorem_bounds(data, weight, pairs, means)
    source, target = to_undirected(data.edge_index, num_nodes=120)
    average = torch.zeros(120, 120, dtype=torch.float64).index_put((target, source), torch.tensor(1.0).double())
    average = average / average.sum(1, keepdim=True).clamp(min=1)
    x = means[data.y] + normal(300, 120, 5, seed=4)
    h = average @ x @ weight.T
    distance = (h[:, first] - h[:, second]).norm(dim=2).mean(0)
    assert bounds.printed.mean() > 0.1
    assert (bounds.printed <= distance).all()
    assert (bounds.expected <= 1.02 * distance + 0.05).all()  # a mean over draws may be a little below its expectation


def test_drawn_pairs_share_a_label_and_have_neighbors():
    data = small_data(nodes=40, classes=4)
    data.y[5] = -1
    first, second = pairs = theorem.same_class_pairs(data, 500, seed=3)
    assert pairs.shape == (2, 500)
    assert (data.y[first] == data.y[second]).all()
    assert (first != second).all()
    assert 5 not in pairs
    assert 39 not in pairs  # isolated
