import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.data import check, demo_graph
from gumbel_mpnn.data.tasks import mixture_neighborhoods, neighborhood_supports
from gumbel_mpnn.data.tasks.neighborhoods import NodesByClass
from helpers import both_ways, changed, edges


@pytest.fixture(scope="module")
def demo():
    return demo_graph()


def degrees(data):
    return data.edge_index[1].bincount(minlength=data.num_nodes)


def follows(data, supports, source, target):
    """Whether the class of each source is in the support that its target picked."""
    allowed = torch.zeros(len(supports), len(supports[0]), len(supports), dtype=torch.bool)
    for label, row in enumerate(supports):
        for component, support in enumerate(row):
            allowed[label, component, list(support)] = True
    return allowed[data.y[target], data.component[target], data.y[source]]


def test_the_supports_of_three_classes_by_hand():
    supports = neighborhood_supports(3, 3)
    assert [row[0] for row in supports] == [(1, 2), (0, 2), (0, 1)]
    assert [set(row[1:]) for row in supports] == [{(1,), (2,)}, {(0,), (2,)}, {(0,), (1,)}]


@pytest.mark.parametrize("components", range(1, 15))
def test_supports_are_different_sets_of_other_classes(components):
    supports = neighborhood_supports(5, components)
    for label, row in enumerate(supports):
        assert len(set(row)) == len(row) == components
        assert all(label not in support for support in row)
        assert [len(support) for support in row] == ([2] * 6 + [1] * 4 + [3] * 4)[:components]
    assert supports == [row[:components] for row in neighborhood_supports(5, 14)]


def test_the_seed_decides_the_supports():
    assert neighborhood_supports(5, 3) == neighborhood_supports(5, 3, seed=0)
    assert neighborhood_supports(5, 3) != neighborhood_supports(5, 3, seed=1)


def test_two_classes_have_one_neighborhood_each():
    path = Data(edge_index=both_ways(edges((0, 1), (2, 3), (1, 2))), y=torch.tensor([0, 0, 1, 1]), num_nodes=4)
    mixture = mixture_neighborhoods(path, 1)
    assert mixture.component.tolist() == [0] * 4
    assert mixture.y[mixture.edge_index].sum(0).eq(1).all()  # every edge joins the two classes
    assert degrees(mixture).ge(1).all()  # every node drew one
    with pytest.raises(UserError, match="with 2 classes there are 1 different neighborhoods, fewer than 2"):
        mixture_neighborhoods(path, 2)


def test_nodes_by_class_by_hand():
    groups = NodesByClass.of(np.array([2, 0, -1, 2, 0, 2]))
    assert (groups.classes.tolist(), groups.size.tolist()) == ([0, 2], [2, 3])
    assert groups.pick(np.array([0, 0, 1, 1, 1]), np.array([0.49, 0.5, 0.3, 0.5, 0.99])).tolist() == [1, 4, 0, 3, 5]


@pytest.mark.parametrize("components", [1, 3, 7])
def test_directed_neighborhoods_follow_the_picked_support(demo, components):
    mixture = mixture_neighborhoods(demo, components, directed=True)
    supports = neighborhood_supports(4, components)
    assert follows(mixture, supports, *mixture.edge_index).all()
    assert degrees(mixture).le(degrees(demo)).all()
    assert degrees(mixture).sum() > 0.95 * degrees(demo).sum()
    assert check(mixture).num_duplicate_edges == 0


@pytest.mark.parametrize("components", [1, 3, 7])
def test_undirected_neighborhoods_follow_the_support_of_one_end(demo, components):
    mixture = mixture_neighborhoods(demo, components)
    source, target = mixture.edge_index
    supports = neighborhood_supports(4, components)
    assert (follows(mixture, supports, source, target) | follows(mixture, supports, target, source)).all()
    facts = check(mixture)
    assert mixture.is_undirected()
    assert mixture.is_coalesced()
    assert (facts.num_self_loops, facts.num_duplicate_edges, facts.num_isolated) == (0, 0, 0)
    assert abs(facts.degree_mean - check(demo).degree_mean) < 1
    assert mixture.y[source].ne(mixture.y[target]).all()


def test_components_classes_and_nodes_are_drawn_uniformly(demo):
    mixture = mixture_neighborhoods(demo, 3, directed=True)
    assert (mixture.component.bincount() / 1000 - 1 / 3).abs().max() < 0.06
    first, second = neighborhood_supports(4, 3)[0][0]
    source, target = mixture.edge_index
    drawn = mixture.y[source[(mixture.y[target] == 0) & (mixture.component[target] == 0)]].bincount(minlength=4)
    assert int(drawn.sum()) == int(drawn[first] + drawn[second])
    assert abs(int(drawn[first]) / int(drawn.sum()) - 0.5) < 0.06
    assert len(source.unique()) > 990


def test_a_hub_draws_half_its_degree():
    y = torch.arange(400) % 4
    star = Data(edge_index=both_ways(edges(*((0, i) for i in range(1, 400)))), y=y, num_nodes=400)
    mixture = mixture_neighborhoods(star, 1, seed=3)
    # 200 draws from 200 nodes (two classes of 100), duplicates merged: about 200 (1 - 1/e), and what others drew.
    assert 110 < int(degrees(mixture)[0]) < 145


def test_unlabelled_nodes_lose_their_edges(demo):
    y = demo.y.clone()
    y[:10] = -1
    bare = dict.fromkeys(("train_mask", "val_mask", "test_mask"))
    mixture = mixture_neighborhoods(changed(demo, y=y, **bare), 2)
    assert not degrees(mixture)[:10].any()
    assert mixture.component[:10].eq(-1).all()
    assert mixture.component[10:].ge(0).all()
    assert check(mixture).num_isolated == 10


def test_nodes_stay_and_what_belongs_to_the_old_edges_goes(demo):
    weight = torch.ones(demo.num_edges)
    data = changed(demo, edge_weight=weight, candidate_index=edges((0, 1)), max_candidates_per_node=1)
    mixture = mixture_neighborhoods(data, 2)
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(mixture[name], demo[name])
    assert not {"edge_weight", "edge_is_core", "candidate_index", "max_candidates_per_node"} & set(mixture.keys())
    assert {"edge_weight", "edge_is_core", "candidate_index", "max_candidates_per_node"} <= set(data.keys())
    assert (mixture.name, data.name) == ("demo-mixture-2", "demo")


def test_the_seed_decides_the_mixture(demo):
    first, again, other = (mixture_neighborhoods(demo, 3, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.edge_index, again.edge_index)
    assert not torch.equal(first.component, other.component)


def test_what_is_no_mixture(demo):
    with pytest.raises(UserError, match="components must be at least 1, but is 0"):
        mixture_neighborhoods(demo, 0)
    with pytest.raises(UserError, match="with 4 classes there are 7 different neighborhoods, fewer than 8"):
        mixture_neighborhoods(demo, 8)
    with pytest.raises(UserError, match="with 0 classes there are 0"):
        mixture_neighborhoods(changed(demo, y=torch.full_like(demo.y, -1)), 1)
