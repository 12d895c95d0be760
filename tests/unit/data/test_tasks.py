import random
from functools import partial

import numpy as np
import pytest
import torch
from torch_geometric.utils import coalesce

from gumbel_mpnn.data import bottleneck, check, demo_graph, leaf_count
from gumbel_mpnn.data.tasks import (
    CORE_DEGREE,
    NOISE_DEGREE,
    balanced,
    draw_leaves,
    trees,
)
from gumbel_mpnn.util.errors import UserError
from helpers import both_ways, edges

MASKS = ("train_mask", "val_mask", "test_mask")


@pytest.mark.parametrize("make", [demo_graph, bottleneck, partial(leaf_count, max_trees=140)])
def test_the_seed_decides(make):
    data, again, other = make(), make(), make(seed=1)
    assert torch.equal(data.x, again.x)
    assert torch.equal(data.test_mask, again.test_mask)
    assert not torch.equal(data.x, other.x)
    if make is not demo_graph:
        assert torch.equal(make(num_splits=2).train_mask[:, :1], make(num_splits=1).train_mask)


class TestDemo:
    @pytest.fixture(scope="class")
    def data(self):
        return demo_graph()

    def test_its_size_and_splits(self, data):
        facts = check(data)
        assert (facts.num_nodes, facts.num_classes, facts.num_self_loops, facts.num_duplicate_edges) == (1000, 4, 0, 0)
        assert abs(facts.degree_mean - CORE_DEGREE - NOISE_DEGREE) < 1
        assert data.x.shape == (1000, 16)
        assert data.is_undirected()
        for mask, count in zip(MASKS, (20, 30, 200), strict=True):
            assert torch.stack([data[mask][data.y == label].sum(0) for label in range(4)]).eq(count).all()

    def test_the_core_is_homophilous_and_the_rest_is_not(self, data):
        same = (data.y[data.edge_index[0]] == data.y[data.edge_index[1]]).float()
        assert same[data.edge_is_core].mean() > 0.8
        assert abs(same[~data.edge_is_core].mean() - 0.25) < 0.03
        assert abs(int(data.edge_is_core.sum()) / 1000 - CORE_DEGREE) < 0.2
        kind = torch.zeros(1000, 1000)
        kind[data.edge_index[0], data.edge_index[1]] = data.edge_is_core.float() + 1
        assert torch.equal(kind, kind.T)


class TestBottleneck:
    def test_two_graphs_of_three_nodes_per_side_by_hand(self):
        data = bottleneck(nodes_per_side=3, num_classes=2, num_graphs=2, num_splits=4)
        one = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (0, 5)]  # two triangles and the bridge
        two = [(i + 6, j + 6) for i, j in one]
        assert torch.equal(data.edge_index, coalesce(both_ways(edges(*one, *two))))
        assert data.batch.tolist() == [0] * 6 + [1] * 6
        assert data.partner.tolist() == [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]
        ids = torch.eye(6)
        assert torch.equal(data.x[:, :6], torch.cat([ids[:3], ids[:3], ids[3:], ids[3:]]))
        facts = check(data)
        assert (facts.num_nodes, facts.num_edges, facts.num_unlabelled) == (12, 14, 6)
        assert [int(data[mask].sum()) for mask in MASKS] == [16, 4, 4]  # 4, 1 and 1 of 6 nodes in each of 4 splits

    def test_only_side_a_knows_the_label_and_only_side_b_is_asked(self):
        data = bottleneck(num_graphs=3)
        side_b = (torch.arange(300) % 100) >= 50
        assert torch.equal(data.y >= 0, side_b)
        assert not data.x[side_b, 150:].any()
        assert torch.equal(data.x[~side_b, 150:].argmax(1), data.y[data.partner[~side_b]])
        assert not data.partner[data.edge_index[0]].eq(data.edge_index[1]).any()

    @pytest.mark.parametrize(("nodes", "sizes"), [(10, (6, 2, 2)), (50, (30, 10, 10))])
    def test_the_splits_are_of_60_20_20_percent_of_side_b(self, nodes, sizes):
        data = bottleneck(nodes)
        check(data)  # every class to be predicted has a training node, disjoint masks, labelled nodes only
        assert [data[mask].sum(0).tolist() for mask in MASKS] == [[size] * 10 for size in sizes]
        assert not torch.equal(data.test_mask[:, 0], data.test_mask[:, 1])

    def test_labels_are_uniform_and_the_splits_know_nothing_else_of_them(self):
        data = bottleneck(200, num_graphs=5)
        assert (data.y[data.y >= 0].bincount() / 1000 - 0.2).abs().max() < 0.05
        tests = torch.stack([data.y[data.test_mask[:, k]].bincount(minlength=5) for k in range(10)]).sum(0) / 2000
        assert (tests - 0.2).abs().max() < 0.05

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"nodes_per_side": 1}, "nodes_per_side must be at least 2, but is 1"),
            ({"nodes_per_side": 3, "num_classes": 1000}, "1 training nodes are too few for 3 classes: increase"),
        ],
    )
    def test_what_cannot_be_made(self, options, message):
        with pytest.raises(UserError, match=message):
            bottleneck(**options)


class TestLeafCount:
    @pytest.fixture(scope="class")
    def small(self):
        return leaf_count(max_trees=140, num_splits=3)

    def test_two_trees_of_depth_two_by_hand(self):
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

    def test_the_trees_of_depth_two_balanced_by_hand(self):
        # 1, 4, 6, 4, 1 strings have 0, 1, 2, 3, 4 ones: the mean is 3.2, so counts 1, 2, 3 stay with 3 trees each.
        data = leaf_count(depth=2, num_trees=16)
        assert data.class_names == ["1", "2", "3"]
        assert data.y[::7].bincount().tolist() == [3, 3, 3]

    @pytest.mark.parametrize(
        ("counts", "most", "kept", "classes"),
        [
            ([2, 3, 3, 1, 2, 2, 3, 3, 2], None, [0, 1, 2, 4, 5, 6], [2, 3]),  # sizes 1, 4, 4, mean 3
            ([2, 3, 3, 1, 2, 2, 3, 3, 2], 5, [0, 1, 2, 4], [2, 3]),
            ([4, 7, 7, 9, 9, 9], None, [3, 4], [9]),  # sizes 1, 2, 3, mean 2; no tree counts 0 to 3
        ],
    )
    def test_the_first_trees_of_a_class_are_kept(self, counts, most, kept, classes):
        found = balanced(np.array(counts), most)
        assert [each.tolist() for each in found] == [kept, classes]

    @pytest.mark.parametrize(("seed", "per_class"), [(0, 2000), (1, 1882)])
    def test_the_sizes_of_the_original_at_depth_four(self, seed, per_class):
        counts = draw_leaves(4, 32_000, seed).sum(axis=1)
        kept, classes = balanced(counts)
        assert classes.tolist() == [5, 6, 7, 8, 9, 10, 11]
        assert np.bincount(counts[kept])[5:].tolist() == [per_class] * 7

    def test_leaf_strings_are_distinct_and_read_from_the_left(self):
        assert len(np.unique(draw_leaves(4, 3000, 0), axis=0)) == 3000
        string = random.Random(7).sample(range(2**16), 1)[0]
        assert "".join(map(str, draw_leaves(4, 1, 7)[0])) == f"{string:016b}"

    def test_the_splits_are_of_70_10_20_percent_of_every_class(self, small):
        for mask, count in zip(MASKS, (14, 2, 4), strict=True):
            assert torch.stack([small[mask][small.y == label].sum(0) for label in range(7)]).eq(count).all()
        assert not torch.equal(small.test_mask[:, 0], small.test_mask[:, 1])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"depth": 2, "num_trees": 17}, "at depth 2 there are not 17 of them"),
            ({"depth": 6}, "trees have a depth of 1 to 5, and at depth 6"),
            ({"depth": 4, "num_trees": 1}, "draw more trees"),
        ],
    )
    def test_what_cannot_be_drawn(self, options, message):
        with pytest.raises(UserError, match=message):
            leaf_count(**options)
