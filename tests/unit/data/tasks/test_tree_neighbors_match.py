from collections import defaultdict

import numpy as np
import pytest
import torch
from torch_geometric.utils import k_hop_subgraph

from gumbel_mpnn import GCN, PairGraph
from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.data import check, check_masks
from gumbel_mpnn.data.tasks import tree_neighbors_match
from gumbel_mpnn.data.tasks.tree_neighbors_match import draw_orders, trees
from helpers import edges

LEAVES = [2, 3, 5, 6]
"""Of a tree of depth two, numbered depth first: 0 over 1 and 4, 1 over 2 and 3, 4 over 5 and 6."""


@pytest.fixture(scope="module")
def small():
    return tree_neighbors_match(3, max_orders=20, num_splits=3)


@pytest.fixture(scope="module")
def all_of_depth_two():
    return tree_neighbors_match(2, directed=False)


def test_the_trees_of_depth_one_by_hand():
    data = trees(np.array([[1, 0]]))  # the left leaf has key 0 and value 1, the right one key 1 and value 0
    assert torch.equal(data.edge_index, edges((1, 0), (2, 0), (4, 3), (5, 3)))
    root_0, root_1, left, right = [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 1], [0, 1, 1, 0]
    assert data.x.tolist() == [root_0, left, right, root_1, left, right]
    assert data.y.tolist() == [1, -1, -1, 0, -1, -1]
    assert data.batch.tolist() == [0, 0, 0, 1, 1, 1]


def test_a_tree_of_depth_two_by_hand():
    data = trees(np.array([[2, 0, 3, 1]]))
    third = slice(2 * 7, 3 * 7)  # the tree with key 2 at its root: the third leaf is asked for, and has the value 3
    assert data.edge_index[1, 2 * 6 : 3 * 6].sub(14).tolist() == [0, 1, 1, 0, 4, 4]
    assert data.y[third].tolist() == [3, -1, -1, -1, -1, -1, -1]
    keys, values = data.x[third].split(4, dim=1)
    nothing = [0, 0, 0, 0]
    assert keys[[0, 1, 4]].tolist() == [[0, 0, 1, 0], nothing, nothing]
    assert torch.equal(keys[LEAVES], torch.eye(4))
    assert values[[0, 1, 4]].tolist() == [nothing] * 3
    assert values[LEAVES].argmax(1).tolist() == [2, 0, 3, 1]


def test_every_root_is_labelled_with_the_value_of_the_leaf_that_has_its_key(small):
    facts = check(small)
    assert (facts.num_nodes, facts.num_edges, facts.num_classes) == (160 * 15, 160 * 14, 8)
    assert (facts.num_self_loops, facts.num_duplicate_edges, facts.num_isolated) == (0, 0, 0)
    for features, labels in zip(small.x.view(160, 15, 16), small.y.view(160, 15), strict=True):
        keys, values = features.split(8, dim=1)
        (leaf,) = [node for node in range(1, 15) if torch.equal(keys[node], keys[0])]
        assert labels.tolist() == [int(values[leaf].argmax())] + [-1] * 14
    assert torch.equal(*small.batch[small.edge_index])


def test_chance_is_one_over_the_leaves(small):
    roots = small.y >= 0
    assert small.y[roots].bincount().tolist() == [20] * 8
    assert small.x[roots].sum(0).tolist() == [20] * 8 + [0] * 8


def test_orders_are_distinct_permutations():
    assert sorted(map(tuple, draw_orders(3, 100, 0).tolist())) == [
        (0, 1, 2),
        (0, 2, 1),
        (1, 0, 2),
        (1, 2, 0),
        (2, 0, 1),
        (2, 1, 0),
    ]
    drawn = draw_orders(8, 50, 1)
    assert len(np.unique(drawn, axis=0)) == 50
    assert np.array_equal(np.sort(drawn, axis=1), np.tile(np.arange(8), (50, 1)))


def labels_by_sight(data, hops):
    """The labels of all trees that look the same within so many hops of the root."""
    alike = defaultdict(list)
    for root in (data.y >= 0).nonzero().flatten():
        near, _, _, _ = k_hop_subgraph(int(root), hops, data.edge_index)
        alike[data.x[near].numpy().tobytes()].append(int(data.y[root]))
    return list(alike.values())


def test_fewer_hops_do_not_tell_the_label_at_all(all_of_depth_two):
    for labels in labels_by_sight(all_of_depth_two, hops=1):
        assert np.bincount(labels).tolist() == [6] * 4  # each equally likely, whatever is seen


def test_as_many_hops_as_the_depth_tell_the_label(all_of_depth_two):
    seen = labels_by_sight(all_of_depth_two, hops=2)
    assert len(seen) == 96
    assert all(len(labels) == 1 for labels in seen)


@pytest.mark.parametrize(("layers", "known"), [(1, "nothing"), (2, "pairs"), (3, "all")])
def test_what_a_gcn_knows(layers, known):
    """A tree, one with two sibling leaves' values exchanged, and one with those of two leaves further apart."""
    data = trees(np.array([[0, 1, 2, 3], [1, 0, 2, 3], [2, 1, 0, 3]]))
    torch.manual_seed(0)
    model = GCN(8, out_channels=4, hidden_channels=32, num_layers=layers).eval()
    with torch.no_grad():
        tree, siblings, cousins = model(data.x, PairGraph.of(data))[[0, 4 * 7, 8 * 7]]
    assert torch.allclose(tree, siblings, atol=1e-6) == (known in ("nothing", "pairs"))
    assert torch.allclose(tree, cousins, atol=1e-6) == (known == "nothing")


def test_splits_hold_out_whole_orders(small):
    check_masks(small)
    for train, val, test in zip(small.train_mask.T, small.val_mask.T, small.test_mask.T, strict=True):
        by_order = [mask.view(20, 8 * 15).sum(1) for mask in (train, val, test)]
        assert [int((counts == 8).sum()) for counts in by_order] == [14, 2, 4]
        assert torch.equal(sum(by_order), torch.full((20,), 8))
        assert torch.equal(train | val | test, small.y >= 0)
    assert not torch.equal(small.test_mask[:, 0], small.test_mask[:, 1])
    assert (small.name, small.metric) == ("tree-neighbors-match", "accuracy")


def test_edges_go_up_or_both_ways(small):
    assert small.edge_index[0].gt(small.edge_index[1]).all()
    both = tree_neighbors_match(3, max_orders=20, directed=False)
    assert both.is_undirected()
    assert torch.equal(both.edge_index[:, both.edge_index[0] > both.edge_index[1]], small.edge_index)


def test_the_seed_decides(small):
    again = tree_neighbors_match(3, max_orders=20)
    assert torch.equal(again.x, small.x)
    assert torch.equal(again.train_mask, small.train_mask[:, :1])
    assert not torch.equal(tree_neighbors_match(3, max_orders=20, seed=1).x, small.x)


def test_what_cannot_be_drawn():
    with pytest.raises(UserError, match="must be 2 to 5, not 6"):
        tree_neighbors_match(6)
    with pytest.raises(UserError, match="must be 2 to 5, not 1"):
        tree_neighbors_match(1)
    with pytest.raises(UserError, match="max_orders must be at least 3, but is 2"):
        tree_neighbors_match(2, max_orders=2)
    with pytest.raises(UserError, match="num_splits must be at least 1, but is 0"):
        tree_neighbors_match(3, max_orders=20, num_splits=0)
