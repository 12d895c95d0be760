import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError
from gumbel_mpnn.data import check, demo_graph
from gumbel_mpnn.data.tasks import add_noise_edges
from helpers import both_ways, changed, edges, small_data


@pytest.fixture(scope="module")
def demo():
    return demo_graph()


def noise_of(data):
    return data.edge_index[:, data.edge_is_noise]


def pairs_of(edge_index):
    return {tuple(sorted(pair)) for pair in edge_index.T.tolist()}


def test_the_only_free_pairs_by_hand():
    # Node 0 is disturbed and has an edge to 1 already; 4 has no label. Left are 0-2 and 0-3.
    data = Data(
        edge_index=both_ways(edges((0, 1), (2, 3))),
        y=torch.tensor([0, 0, 1, 1, -1]),
        edge_weight=torch.full((4,), 0.5),
        edge_is_core=torch.ones(4, dtype=torch.bool),
        num_nodes=5,
    )
    noisy = add_noise_edges(data, 2, nodes=[0])
    assert pairs_of(noise_of(noisy)) == {(0, 2), (0, 3)}
    assert torch.equal(noisy.edge_index[:, :4], data.edge_index)
    assert noisy.edge_is_noise.tolist() == [False] * 4 + [True] * 4
    assert noisy.edge_weight.tolist() == [0.5] * 4 + [1.0] * 4
    assert noisy.edge_is_core.tolist() == [True] * 4 + [False] * 4
    assert check(noisy).num_edges == 4
    with pytest.raises(DataError, match="there is no room for 3 noise edges: only 2 pairs"):
        add_noise_edges(data, 3, nodes=[0])


def test_all_free_pairs_are_counted_and_reached():
    data = small_data(nodes=9)
    data.edge_index = both_ways(edges((0, 1), (4, 4), (7, 8), (2, 0)))
    # Pairs with an end in {0, 1, 2}: 3 * 9 less 3 loops, less 3 counted twice, less 2 edges.
    noisy = add_noise_edges(data, 19, nodes=[0, 1, 2])
    assert len(pairs_of(noise_of(noisy))) == 19
    with pytest.raises(DataError, match="only 19 pairs"):
        add_noise_edges(data, 20, nodes=[0, 1, 2])


@pytest.mark.parametrize("count", [0, 1, 100, 5000])
def test_every_noise_edge_is_a_new_one_at_a_test_node(demo, count):
    noisy = add_noise_edges(demo, count)
    before, after = check(demo), check(noisy)
    assert after.num_edges == before.num_edges + count
    assert (after.num_self_loops, after.num_duplicate_edges) == (0, 0)
    assert int(noisy.edge_is_noise.sum()) == 2 * count
    assert noisy.is_undirected()
    assert demo.test_mask[:, 0][noise_of(noisy)].any(0).all()


def test_nothing_else_changes_and_the_graph_itself_stays(demo):
    edge_index = demo.edge_index.clone()
    noisy = add_noise_edges(demo, 50)
    assert torch.equal(demo.edge_index, edge_index)
    assert "edge_is_noise" not in demo
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(noisy[name], demo[name])


def test_a_smaller_count_gives_the_first_edges_of_a_larger_one(demo):
    large, small = add_noise_edges(demo, 3000), add_noise_edges(demo, 10)
    assert torch.equal(noise_of(large)[:, :20], noise_of(small))
    assert torch.equal(noise_of(add_noise_edges(demo, 10)), noise_of(small))
    assert not torch.equal(noise_of(add_noise_edges(demo, 10, seed=1)), noise_of(small))


def test_nodes_by_number_and_by_mask(demo):
    mask = demo.test_mask[:, 3]
    by_mask, by_number = (add_noise_edges(demo, 40, nodes=nodes) for nodes in (mask, mask.nonzero().flatten()))
    assert torch.equal(by_mask.edge_index, by_number.edge_index)
    assert mask[noise_of(by_mask)].any(0).all()
    one_split = changed(demo, test_mask=mask)
    assert torch.equal(add_noise_edges(one_split, 40).edge_index, by_mask.edge_index)


def test_a_directed_graph_gets_edges_towards_the_chosen_nodes():
    data = small_data()
    data.edge_index = edges((0, 1), (1, 2), (2, 3))
    noisy = add_noise_edges(data, 5, nodes=[3, 4])
    assert noise_of(noisy).shape == (2, 5)
    assert set(noise_of(noisy)[1].tolist()) <= {3, 4}


def test_noise_on_noise_is_all_noise(demo):
    twice = add_noise_edges(add_noise_edges(demo, 10), 10, seed=1)
    assert int(twice.edge_is_noise.sum()) == 40
    assert check(twice).num_duplicate_edges == 0


def test_classes_are_uniform_whatever_their_size_and_the_label_of_the_chosen_node():
    y = torch.cat([torch.zeros(900), torch.ones(90), torch.full((10,), 2)]).long()
    data = Data(edge_index=edges((0, 1), (1, 0)), y=y, num_nodes=1000)
    chosen = [5, 6, 7, 950, 951, 952]
    draws = [noise_of(add_noise_edges(data, 30, seed=seed, nodes=chosen))[:, ::2] for seed in range(40)]
    far, near = torch.cat(draws, dim=1)
    assert set(near.tolist()) == set(chosen)
    for label in (0, 1):
        assert (y[far[y[near] == label]].bincount(minlength=3) / 600 - 1 / 3).abs().max() < 0.08


def test_the_names_of_the_classes_do_not_matter(demo):
    # Where all classes are one, labels cannot matter: the draw must not depend on which one it is.
    one, other = (changed(demo, y=torch.full_like(demo.y, label)) for label in (0, 3))
    assert torch.equal(add_noise_edges(one, 200).edge_index, add_noise_edges(other, 200).edge_index)


def test_which_test_node_is_disturbed_does_not_depend_on_labels(demo):
    bare = changed(demo, edge_index=edges(), edge_is_core=None)
    near = [
        noise_of(add_noise_edges(changed(bare, y=y), 20))[1, ::2].tolist() for y in (demo.y, demo.y.roll(1), demo.y * 0)
    ]
    assert near[0] == near[1] == near[2]


def test_edges_are_any_integers(demo):
    small = changed(demo, edge_index=demo.edge_index.int())
    assert torch.equal(add_noise_edges(small, 50).edge_index, add_noise_edges(demo, 50).edge_index)


def test_candidates_are_left_alone_even_if_there_are_as_many_as_edges(demo):
    data = changed(demo, candidate_index=demo.edge_index.flip(1))
    assert torch.equal(add_noise_edges(data, 5).candidate_index, data.candidate_index)


def test_what_gets_no_noise(demo):
    with pytest.raises(DataError, match="no test_mask"):
        add_noise_edges(changed(demo, test_mask=None), 1)
    with pytest.raises(DataError, match="nodes names the nodes 0 to 1000"):
        add_noise_edges(demo, 1, nodes=[0, 1000])
    with pytest.raises(DataError, match=r"shape \[1000\], not \[3\]"):
        add_noise_edges(demo, 1, nodes=torch.tensor([True, False, True]))
    with pytest.raises(UserError, match="count must be at least 0, but is -1"):
        add_noise_edges(demo, -1)
    with pytest.raises(DataError, match="only 0 pairs"):
        add_noise_edges(demo, 1, nodes=[])
