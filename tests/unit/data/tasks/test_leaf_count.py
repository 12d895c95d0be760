import random

import numpy as np
import pytest
import torch

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.data import check
from gumbel_mpnn.data.tasks import leaf_count
from gumbel_mpnn.data.tasks.leaf_count import balanced, draw_leaves, trees
from helpers import edges


@pytest.fixture(scope="module")
def small():
    return leaf_count(max_trees=140, num_splits=3)


def test_two_trees_of_depth_two_by_hand():
    #      0
    #    1   4      depth first; the leaves are 2, 3, 5, 6
    #   2 3 5 6
    data = trees(np.array([[1, 0, 1, 1], [0, 0, 1, 0]]), np.array([3, 1]))
    one_tree = edges((1, 0), (2, 1), (3, 1), (4, 0), (5, 4), (6, 4))
    assert torch.equal(data.edge_index, torch.cat([one_tree, one_tree + 7], dim=1))
    assert data.y.tolist() == [3, -1, -1, -1, -1, -1, -1, 1, -1, -1, -1, -1, -1, -1]
    assert data.batch.tolist() == [0] * 7 + [1] * 7
    assert torch.equal(data.x[:, :7], torch.eye(7).repeat(2, 1))
    none, zero, one = [0, 0], [1, 0], [0, 1]
    assert data.x[:7, 7:].tolist() == [none, none, one, zero, none, one, one]
    assert data.x[7:, 7:].tolist() == [none, none, zero, zero, none, one, zero]


def test_a_tree_of_depth_three_by_hand():
    parents = trees(np.zeros((1, 8), dtype=np.int64), np.array([0])).edge_index[1].tolist()
    assert parents == [0, 1, 2, 2, 1, 5, 5, 0, 8, 9, 9, 8, 12, 12]


def test_the_trees_of_depth_two_balanced_by_hand():
    # 1, 4, 6, 4, 1 strings have 0, 1, 2, 3, 4 ones: the mean is 3.2, so counts 1, 2, 3 stay with 3 trees each.
    data = leaf_count(depth=2, num_trees=16)
    assert data.class_names == ["1", "2", "3"]
    assert data.y[::7].bincount().tolist() == [3, 3, 3]
    assert check(data).num_nodes == 9 * 7


def test_the_first_trees_of_a_class_are_kept():
    kept, classes = balanced(np.array([2, 3, 3, 1, 2, 2, 3, 3, 2]))  # sizes 1, 4, 4, mean 3
    assert classes.tolist() == [2, 3]
    assert kept.tolist() == [0, 1, 2, 4, 5, 6]
    assert balanced(np.array([2, 3, 3, 1, 2, 2, 3, 3, 2]), max_trees=5)[0].tolist() == [0, 1, 2, 4]


def test_a_class_that_was_not_drawn_does_not_shift_the_others():
    kept, classes = balanced(np.array([4, 7, 7, 9, 9, 9]))  # sizes 1, 2, 3, mean 2; no tree counts 0 to 3
    assert (kept.tolist(), classes.tolist()) == ([3, 4], [9])


@pytest.mark.parametrize(("seed", "per_class"), [(0, 2000), (1, 1882), (3, 2000), (4, 2000)])
def test_the_sizes_of_the_original_at_depth_four(seed, per_class):
    counts = draw_leaves(4, 32_000, seed).sum(axis=1)
    kept, classes = balanced(counts)
    assert classes.tolist() == [5, 6, 7, 8, 9, 10, 11]
    assert np.bincount(counts[kept])[5:].tolist() == [per_class] * 7


def test_leaf_strings_are_distinct_and_read_from_the_left():
    assert len(np.unique(draw_leaves(4, 3000, 0), axis=0)) == 3000
    assert sorted(map(tuple, draw_leaves(1, 4, 0).tolist())) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    string = random.Random(7).sample(range(2**16), 1)[0]
    assert "".join(map(str, draw_leaves(4, 1, 7)[0])) == f"{string:016b}"


def test_every_root_is_labelled_with_its_count_and_no_other_node(small):
    facts = check(small)
    assert (facts.num_nodes, facts.num_edges, facts.num_classes) == (140 * 31, 140 * 30, 7)
    assert (facts.num_self_loops, facts.num_duplicate_edges, facts.num_isolated) == (0, 0, 0)
    roots = torch.arange(0, small.num_nodes, 31)
    assert torch.equal((small.y >= 0).nonzero().flatten(), roots)
    assert small.y[roots].bincount().tolist() == [20] * 7
    ones = torch.zeros(140).index_add(0, small.batch, small.x[:, -1])
    assert torch.equal(ones, small.y[roots] + 5.0)


def test_only_leaves_carry_a_bit(small):
    is_inner = torch.zeros(small.num_nodes, dtype=torch.bool)
    is_inner[small.edge_index[1]] = True
    assert torch.equal(small.x[:, -2:].sum(1), (~is_inner).float())
    assert torch.equal(small.x[:, :-2].argmax(1), torch.arange(31).repeat(140))


def test_trees_are_contiguous_and_disjoint(small):
    assert torch.equal(small.batch, torch.arange(140).repeat_interleave(31))
    assert torch.equal(*small.batch[small.edge_index])


def test_the_splits_are_of_70_10_20_percent_of_every_class(small):
    for mask, count in ((small.train_mask, 14), (small.val_mask, 2), (small.test_mask, 4)):
        assert mask.shape == (small.num_nodes, 3)
        assert torch.stack([mask[small.y == label].sum(0) for label in range(7)]).eq(count).all()
    assert torch.equal(small.train_mask | small.val_mask | small.test_mask, (small.y >= 0)[:, None].expand(-1, 3))
    assert not torch.equal(small.test_mask[:, 0], small.test_mask[:, 1])
    assert (small.name, small.metric) == ("leaf-count", "accuracy")


def test_edges_go_up_or_both_ways(small):
    assert small.edge_index[0].gt(small.edge_index[1]).all()
    both = leaf_count(max_trees=140, directed=False)
    assert both.is_undirected()
    assert both.is_coalesced()
    up = both.edge_index[:, both.edge_index[0] > both.edge_index[1]]
    assert torch.equal(up, small.edge_index)


def test_the_seed_decides(small):
    assert torch.equal(leaf_count(max_trees=140).x, small.x)
    assert torch.equal(leaf_count(max_trees=140).train_mask, small.train_mask[:, :1])
    assert not torch.equal(leaf_count(max_trees=140, seed=1).x, small.x)


def test_what_cannot_be_drawn():
    with pytest.raises(UserError, match="1 to 16 different trees of depth 2 to draw, not 17"):
        leaf_count(depth=2, num_trees=17)
    with pytest.raises(UserError, match="must be 1 to 5, not 6"):
        leaf_count(depth=6)
    with pytest.raises(UserError, match="each of the 7 classes, not 6"):
        leaf_count(max_trees=6)
    with pytest.raises(UserError, match="draw more trees"):
        leaf_count(depth=4, num_trees=1)
    with pytest.raises(UserError, match="num_splits must be at least 1, but is 0"):
        leaf_count(num_splits=0)
