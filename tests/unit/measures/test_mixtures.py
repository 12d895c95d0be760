"""Classes split into the components of their neighborhoods, on graphs whose components are known."""

import math

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.measures import decompose, edge_homophily, label_informativeness
from gumbel_mpnn.util.errors import DataError, UserError
from helpers import both_ways, changed, edges, small_data

TWO_KINDS = 12  # pairs of each kind


@pytest.fixture
def pairs():
    """Class 0 is half in pairs of its own (nodes 0 to 23), half tied to class 1 (24 to 35 and 36 to 47)."""
    own = [(2 * k, 2 * k + 1) for k in range(TWO_KINDS)]
    across = [(24 + k, 36 + k) for k in range(TWO_KINDS)]
    y = torch.tensor([0] * 36 + [1] * 12)
    return Data(edge_index=both_ways(edges(*own, *across)), y=y, num_nodes=48)


def test_two_kinds_of_neighborhoods_are_two_components(pairs):
    found = decompose(pairs)
    assert (found.num_components, found.total, found.totals) == ([2, 1], 3, (3, 3, 3))
    assert found.class_of.tolist() == [0, 0, 1]
    labels = found.pseudo_labels
    assert torch.equal(found.class_of[labels], pairs.y)
    assert len(labels[:24].unique()) == len(labels[24:36].unique()) == 1
    assert labels[0] != labels[24]


@pytest.mark.parametrize(("own_label", "tied"), [(True, [0.5, 0.5]), (False, [0, 1])])
def test_means_are_the_distributions(pairs, own_label, tied):
    means = decompose(pairs, own_label=own_label).mixtures[0].means_
    assert sorted(means.round(6).tolist()) == [tied, [1, 0]]


def test_bic_of_two_points_by_hand(pairs):
    # 24 and 12 rows at two points: every covariance is the regularization alone, and nothing is left to explain.
    density = -math.log(2 * math.pi * 1e-6)
    likelihood = 24 * (density + math.log(24 / 36)) + 12 * (density + math.log(12 / 36))
    assert decompose(pairs).bic[0] == pytest.approx(-2 * likelihood + 11 * math.log(36))


def test_a_node_with_nothing_around_it_is_a_point_like_any_other(pairs):
    alone = changed(pairs, y=torch.cat([pairs.y, torch.zeros(9, dtype=torch.int64)]), num_nodes=57)
    found = decompose(alone, own_label=False)
    assert found.num_components == [3, 1]
    assert len(found.pseudo_labels[48:].unique()) == 1


def test_each_class_has_the_best_mixture_of_all_seeds():
    data = small_data(nodes=150, classes=3)
    alone = [decompose(data, seeds=[seed], max_components=6) for seed in (4, 7)]
    both = decompose(data, seeds=[4, 7], max_components=6)
    assert both.totals == tuple(found.total for found in alone)
    assert both.bic == tuple(map(min, *(found.bic for found in alone)))
    assert max(both.num_components) <= 6


def test_the_same_seeds_give_the_same_labels():
    data = small_data(nodes=90)
    one, other = (decompose(data, seeds=1, max_components=5) for _ in range(2))
    assert torch.equal(one.pseudo_labels, other.pseudo_labels)


def test_nodes_without_a_label_get_none_and_are_not_counted(pairs):
    found = decompose(changed(pairs, y=torch.where(torch.arange(48) < 36, pairs.y, -1)))
    assert found.num_components == [1]
    assert found.pseudo_labels.tolist() == [0] * 36 + [-1] * 12


def test_classes_of_one_node_and_of_none(pairs):
    y = 2 * pairs.y
    y[47] = 3
    found = decompose(changed(pairs, y=y))
    assert (found.num_components[1], found.mixtures[1], found.bic[1]) == (0, None, 0)
    assert found.num_components[3] == 1
    assert found.pseudo_labels[47] == found.total - 1


def test_relabelled_data_are_measured(pairs):
    found = decompose(pairs)
    relabelled = found.relabel(pairs)
    assert torch.equal(relabelled.y, found.pseudo_labels)
    assert edge_homophily(relabelled) == 0.5
    # The 12 pairs within one component and 12 between the others: the label of one end tells that of the other.
    assert label_informativeness(relabelled) == pytest.approx(1)
    assert label_informativeness(pairs) < 0.5


@pytest.mark.parametrize("seeds", [0, [], [-1], 2.0, [1.5], "12"])
def test_seeds_are_needed(pairs, seeds):
    with pytest.raises(UserError, match="seed"):
        decompose(pairs, seeds=seeds)


@pytest.mark.parametrize(("name", "value"), [("max_components", 0), ("reg_covar", -1.0), ("reg_covar", math.nan)])
def test_options_out_of_range(pairs, name, value):
    with pytest.raises(ValueError, match=name):
        decompose(pairs, **{name: value})


def test_labels_are_needed(pairs):
    with pytest.raises(DataError, match="no labelled nodes"):
        decompose(changed(pairs, y=torch.full((48,), -1)))
    with pytest.raises(DataError, match="no labels"):
        decompose(changed(pairs, y=None))
