"""Synthetic neighborhoods: what each node draws, and what stays of the graph."""

import pytest
import torch

from experiments.paper.components import MixtureNeighborhoods, neighborhood_supports
from gumbel_mpnn.data import check, demo_graph
from helpers import changed, edges

MASKS = ("train_mask", "val_mask", "test_mask")


@pytest.fixture(scope="module")
def demo():
    return demo_graph()


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


@pytest.mark.parametrize("components", [1, 7, 14])
def test_supports_are_different_sets_of_other_classes(components):
    supports = neighborhood_supports(5, components)
    for label, row in enumerate(supports):
        assert len(set(row)) == len(row) == components
        assert all(label not in support for support in row)
        assert [len(support) for support in row] == ([2] * 6 + [1] * 4 + [3] * 4)[:components]
    assert supports == [row[:components] for row in neighborhood_supports(5, 14)]
    assert supports != neighborhood_supports(5, components, seed=1)


@pytest.mark.parametrize("components", [1, 7])
def test_neighborhoods_follow_the_support_of_one_end(demo, components):
    mixture = MixtureNeighborhoods(components)(demo)
    source, target = mixture.edge_index
    supports = neighborhood_supports(4, components)
    assert (follows(mixture, supports, source, target) | follows(mixture, supports, target, source)).all()
    facts = check(mixture)
    assert mixture.is_undirected()
    assert (facts.num_self_loops, facts.num_duplicate_edges, facts.num_isolated) == (0, 0, 0)
    assert abs(facts.degree_mean - check(demo).degree_mean) < 1
    assert (mixture.component.bincount() * components / 1000 - 1).abs().max() < 0.2


def test_unlabelled_nodes_lose_their_edges(demo):
    y = demo.y.clone()
    y[:10] = -1
    mixture = MixtureNeighborhoods(2)(changed(demo, y=y, **dict.fromkeys(MASKS)))
    assert int(mixture.edge_index.min()) >= 10
    assert mixture.component[:10].eq(-1).all()
    assert mixture.component[10:].ge(0).all()


def test_nodes_stay_and_what_belongs_to_the_old_edges_goes(demo):
    data = changed(demo, edge_weight=torch.ones(demo.num_edges), candidate_index=edges((0, 1)))
    mixture = MixtureNeighborhoods(2)(data)
    for name in ("x", "y", *MASKS):
        assert torch.equal(mixture[name], demo[name])
    assert not {"edge_weight", "edge_is_core", "candidate_index"} & set(mixture.keys())
    assert (mixture.name, data.name) == ("demo-mixture-2", "demo")
    assert torch.equal(MixtureNeighborhoods(2)(data).edge_index, mixture.edge_index)
    assert not torch.equal(MixtureNeighborhoods(2, seed=1)(data).component, mixture.component)
