import torch

from gumbel_mpnn.data import check, demo_graph
from gumbel_mpnn.data.tasks.demo import CORE_DEGREE, NOISE_DEGREE


def test_the_demo_graph_is_a_sound_graph_of_its_size():
    data = demo_graph()
    facts = check(data)
    assert (facts.num_nodes, facts.num_classes, facts.num_self_loops, facts.num_duplicate_edges) == (1000, 4, 0, 0)
    assert abs(facts.degree_mean - CORE_DEGREE - NOISE_DEGREE) < 1
    assert data.x.shape == (1000, 16)
    assert data.is_undirected()
    assert data.is_coalesced()
    assert (data.name, data.metric) == ("demo", "accuracy")


def test_ten_splits_of_20_and_30_per_class():
    data = demo_graph()
    for mask, count in ((data.train_mask, 20), (data.val_mask, 30), (data.test_mask, 200)):
        assert torch.stack([mask[data.y == label].sum(0) for label in range(4)]).eq(count).all()
        assert mask.shape == (1000, 10)


def test_the_core_is_homophilous_and_the_rest_is_not():
    data = demo_graph()
    same = (data.y[data.edge_index[0]] == data.y[data.edge_index[1]]).float()
    assert same[data.edge_is_core].mean() > 0.8
    assert abs(same[~data.edge_is_core].mean() - 0.25) < 0.03
    assert abs(int(data.edge_is_core.sum()) / 1000 - CORE_DEGREE) < 0.2


def test_both_directions_of_an_edge_are_of_one_kind():
    data = demo_graph()
    dense = torch.zeros(1000, 1000)
    dense[data.edge_index[0], data.edge_index[1]] = data.edge_is_core.float() + 1
    assert torch.equal(dense, dense.T)


def test_the_seed_decides():
    assert torch.equal(demo_graph().x, demo_graph(0).x)
    assert torch.equal(demo_graph().train_mask, demo_graph(0).train_mask)
    assert not torch.equal(demo_graph().x, demo_graph(1).x)
