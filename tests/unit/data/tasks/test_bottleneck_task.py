import pytest
import torch
from torch_geometric.utils import coalesce

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.data import check
from gumbel_mpnn.data.tasks import bottleneck
from helpers import both_ways, edges

MASKS = ("train_mask", "val_mask", "test_mask")


def test_two_graphs_of_three_nodes_per_side_by_hand():
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


def test_only_side_a_knows_the_label_and_only_side_b_is_asked():
    data = bottleneck(num_graphs=3)
    side_b = (torch.arange(300) % 100) >= 50
    assert torch.equal(data.y >= 0, side_b)
    assert not data.x[side_b, 150:].any()
    assert torch.equal(data.x[~side_b, 150:].argmax(1), data.y[data.partner[~side_b]])
    assert data.x[~side_b].sum(1).eq(2).all()


def test_only_partners_are_alike_and_no_partners_are_neighbors():
    data = bottleneck(nodes_per_side=4, num_classes=2, num_graphs=2)
    alike = data.x[:, :8] @ data.x[:, :8].T - torch.eye(16)
    assert torch.equal(alike.nonzero()[:, 1], data.partner)
    assert not data.partner[data.edge_index[0]].eq(data.edge_index[1]).any()
    shared = bottleneck(nodes_per_side=4, num_classes=2, num_graphs=2, shared_ids=True)
    assert torch.equal(shared.x[:, :4], torch.eye(4).repeat(4, 1))
    assert torch.equal(shared.y, data.y)


def test_one_bridge_per_graph():
    data = bottleneck(nodes_per_side=5, num_classes=2, num_graphs=4)
    side = torch.arange(40) // 5
    source, target = data.edge_index[:, side[data.edge_index[0]] < side[data.edge_index[1]]]
    assert source.tolist() == [0, 10, 20, 30]
    assert target.tolist() == [9, 19, 29, 39]


def test_a_random_side_has_about_its_fraction_of_the_edges():
    data = bottleneck(edge_probability=0.5, num_graphs=4)
    facts = check(data)
    assert data.is_undirected()
    assert abs((facts.num_edges - 4) / (8 * 50 * 49 / 2) - 0.5) < 0.03
    assert check(bottleneck(edge_probability=0)).num_edges == 1


@pytest.mark.parametrize(("nodes", "sizes"), [(10, (6, 2, 2)), (50, (30, 10, 10)), (200, (120, 40, 40))])
def test_the_splits_are_of_60_20_20_percent_of_side_b(nodes, sizes):
    data = bottleneck(nodes)
    check(data)  # every class to be predicted has a training node, disjoint masks, labelled nodes only
    for mask, size in zip(MASKS, sizes, strict=True):
        assert data[mask].sum(0).tolist() == [size] * 10
    assert not torch.equal(data.test_mask[:, 0], data.test_mask[:, 1])


def test_labels_are_uniform_and_the_splits_know_nothing_else_of_them():
    data = bottleneck(200, num_graphs=5)
    assert (data.y[data.y >= 0].bincount() / 1000 - 0.2).abs().max() < 0.05
    tests = torch.stack([data.y[data.test_mask[:, k]].bincount(minlength=5) for k in range(10)]).sum(0) / 2000
    assert (tests - 0.2).abs().max() < 0.05


def test_the_seed_decides_the_bottleneck():
    data, again, other = bottleneck(), bottleneck(num_splits=2), bottleneck(seed=1)
    assert torch.equal(data.x, again.x)
    assert torch.equal(data.test_mask[:, :2], again.test_mask)
    assert not torch.equal(data.y, other.y)
    assert (data.name, data.metric) == ("bottleneck", "accuracy")


def test_what_is_no_bottleneck():
    with pytest.raises(UserError, match="nodes_per_side must be at least 2, but is 1"):
        bottleneck(1)
    with pytest.raises(UserError, match=r"edge_probability must lie between 0 and 1, but is 1\.5"):
        bottleneck(5, edge_probability=1.5)
    with pytest.raises(UserError, match="num_graphs must be at least 1, but is 0"):
        bottleneck(num_graphs=0)
    with pytest.raises(UserError, match="1 training nodes are too few for 3 classes: increase nodes_per_side"):
        bottleneck(3, num_classes=1000)
