"""Wrong edges: random ones, and hostile ones that are blind to test labels."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import degree, is_undirected, to_undirected

import gumbel_mpnn as gm
from gumbel_mpnn.data import HostileEdges, add_noise_edges, check, demo_graph
from gumbel_mpnn.data.noise import MOST_HOSTILE_EDGES
from gumbel_mpnn.graph import in_order
from gumbel_mpnn.util.errors import DataError, UserError
from helpers import both_ways, changed, edges, small_data

NO_EDGES = torch.empty(2, 0, dtype=torch.long)


@pytest.fixture(scope="module")
def demo():
    return demo_graph()


def noise_of(data):
    return data.edge_index[:, data.edge_is_noise]


def pairs_of(edge_index):
    return {tuple(sorted(pair)) for pair in edge_index.T.tolist()}


class TestRandom:
    def test_the_only_free_pairs_by_hand(self):
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
        with pytest.raises(DataError, match="there is no room for 3 noise edges: only 2 pairs"):
            add_noise_edges(data, 3, nodes=[0])

    def test_all_free_pairs_are_counted_and_reached(self):
        data = small_data(nodes=9)
        data.edge_index = both_ways(edges((0, 1), (4, 4), (7, 8), (2, 0)))
        # Pairs with an end in {0, 1, 2}: 3 * 9 less 3 loops, less 3 counted twice, less 2 edges.
        assert len(pairs_of(noise_of(add_noise_edges(data, 19, nodes=[0, 1, 2])))) == 19
        with pytest.raises(DataError, match="only 19 pairs"):
            add_noise_edges(data, 20, nodes=[0, 1, 2])

    @pytest.mark.parametrize("count", [0, 1, 5000])
    def test_every_edge_is_a_new_one_at_a_test_node(self, demo, count):
        edge_index = demo.edge_index.clone()
        noisy = add_noise_edges(demo, count)
        before, after = check(demo), check(noisy)
        assert after.num_edges == before.num_edges + count
        assert (after.num_self_loops, after.num_duplicate_edges) == (0, 0)
        assert noisy.is_undirected()
        assert demo.test_mask[:, 0][noise_of(noisy)].any(0).all()
        assert torch.equal(demo.edge_index, edge_index)
        assert "edge_is_noise" not in demo
        for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
            assert torch.equal(noisy[name], demo[name])

    def test_a_smaller_count_gives_the_first_edges_of_a_larger_one(self, demo):
        large, small = add_noise_edges(demo, 3000), add_noise_edges(demo, 10)
        assert torch.equal(noise_of(large)[:, :20], noise_of(small))
        assert not torch.equal(noise_of(add_noise_edges(demo, 10, seed=1)), noise_of(small))

    def test_nodes_by_number_and_by_mask(self, demo):
        mask = demo.test_mask[:, 3]
        by_mask, by_number = (add_noise_edges(demo, 40, nodes=nodes) for nodes in (mask, mask.nonzero().flatten()))
        assert torch.equal(by_mask.edge_index, by_number.edge_index)
        assert mask[noise_of(by_mask)].any(0).all()
        assert torch.equal(add_noise_edges(changed(demo, test_mask=mask), 40).edge_index, by_mask.edge_index)

    def test_a_directed_graph_gets_edges_towards_the_chosen_nodes(self):
        data = small_data()
        data.edge_index = edges((0, 1), (1, 2), (2, 3))
        noisy = add_noise_edges(data, 5, nodes=[3, 4])
        assert noise_of(noisy).shape == (2, 5)
        assert set(noise_of(noisy)[1].tolist()) <= {3, 4}

    def test_noise_on_noise_is_all_noise(self, demo):
        twice = add_noise_edges(add_noise_edges(demo, 10), 10, seed=1)
        assert int(twice.edge_is_noise.sum()) == 40
        assert check(twice).num_duplicate_edges == 0

    def test_classes_are_uniform_whatever_their_size_and_the_label_of_the_chosen_node(self):
        y = torch.cat([torch.zeros(900), torch.ones(90), torch.full((10,), 2)]).long()
        data = Data(edge_index=edges((0, 1), (1, 0)), y=y, num_nodes=1000)
        chosen = [5, 6, 7, 950, 951, 952]
        draws = [noise_of(add_noise_edges(data, 30, seed=seed, nodes=chosen))[:, ::2] for seed in range(40)]
        far, near = torch.cat(draws, dim=1)
        assert set(near.tolist()) == set(chosen)
        for label in (0, 1):
            assert (y[far[y[near] == label]].bincount(minlength=3) / 600 - 1 / 3).abs().max() < 0.08

    def test_labels_and_types_of_edges_do_not_matter(self, demo):
        # Where all classes are one, labels cannot matter: the draw must not depend on which one it is.
        one, other = (changed(demo, y=torch.full_like(demo.y, label)) for label in (0, 3))
        assert torch.equal(add_noise_edges(one, 200).edge_index, add_noise_edges(other, 200).edge_index)
        small = changed(demo, edge_index=demo.edge_index.int())
        assert torch.equal(add_noise_edges(small, 50).edge_index, add_noise_edges(demo, 50).edge_index)
        data = changed(demo, candidate_index=demo.edge_index.flip(1))
        assert torch.equal(add_noise_edges(data, 5).candidate_index, data.candidate_index)

    @pytest.mark.parametrize(
        ("changes", "options", "error", "message"),
        [
            ({"test_mask": None}, {"count": 1}, DataError, "no test_mask"),
            ({}, {"count": 1, "nodes": [0, 1000]}, DataError, "nodes names the nodes 0 to 1000"),
            ({}, {"count": -1}, UserError, "count must be at least 0, but is -1"),
            ({}, {"count": 1, "nodes": []}, DataError, "only 0 pairs"),
        ],
    )
    def test_what_gets_no_noise(self, demo, changes, options, error, message):
        with pytest.raises(error, match=message):
            add_noise_edges(changed(demo, **changes), **options)


def graph(**options) -> Data:
    data = small_data(**{"nodes": 60, **options})
    data.edge_index = to_undirected(data.edge_index)
    return data


def hostile(data: Data) -> set[tuple[int, int]]:
    return set(map(tuple, noise_of(data).t().tolist()))


class TestHostile:
    def test_they_end_at_validation_nodes_of_the_split(self):
        data = graph()
        out = HostileEdges(split=1)(data)
        targets = out.val_mask[:, 1].nonzero().ravel().tolist()
        assert set(targets) <= set(data.val_mask[:, 1].nonzero().ravel().tolist())
        assert len(targets) == 7  # a third of 20
        assert all({i, j} & set(targets) and i != j for i, j in hostile(out))
        assert torch.equal(out.val_mask[:, 0], data.val_mask[:, 0])
        assert torch.equal(out.train_mask, data.train_mask)
        assert is_undirected(out.edge_index)
        assert not hostile(out) & set(map(tuple, data.edge_index.t().tolist()))
        assert noise_of(out).unique(dim=1).shape == noise_of(out).shape

    def test_a_node_gets_at_most_half_as_many_as_it_has(self):
        data = small_data(nodes=60)  # directed, so that hostile edges point to the nodes that get them
        simple = to_undirected(data.edge_index[:, data.edge_index[0] != data.edge_index[1]])
        before = degree(simple[0], 60)
        out = HostileEdges()(data)
        new = degree(torch.tensor([target for _, target in hostile(out)]), 60)
        targets = out.val_mask[:, 0]
        assert torch.equal(new[targets], (before[targets] / 2).ceil().clamp(max=MOST_HOSTILE_EDGES))
        assert not new[~targets].any()

    def test_a_mask_without_splits(self):
        data = small_data(splits=1, nodes=30)
        data = changed(data, **{name: data[name][:, 0] for name in ("train_mask", "val_mask", "test_mask")})
        out = HostileEdges()(data)
        assert out.val_mask.shape == (30,)
        assert all(out.val_mask[target] for _, target in hostile(out))

    def test_labels_of_test_nodes_are_not_used(self):
        data = graph(splits=1)
        other = changed(data, y=torch.where(data.test_mask[:, 0], (data.y + 1) % 3, data.y))
        assert hostile(HostileEdges()(data)) == hostile(HostileEdges()(other))

    @pytest.mark.parametrize("features", ["different", "alike"])
    def test_the_numbering_of_the_nodes_does_not_matter(self, features):
        data = graph()
        if features == "alike":
            data.x = data.x.sign()
        order = torch.randperm(60, generator=torch.Generator().manual_seed(3))
        there = hostile(HostileEdges()(in_order(data, order)))
        assert {(int(order[i]), int(order[j])) for i, j in there} == hostile(HostileEdges()(data))

    def test_far_ends_are_of_other_classes_and_a_model_loses_at_the_targets(self, demo):
        attacked = HostileEdges()(demo)
        source, target = noise_of(attacked)
        assert (demo.y[source] == demo.y[target]).float().mean() < 0.2
        clean = changed(demo, val_mask=attacked.val_mask)
        short = {"preset": None, "splits": [0], "overrides": ["train.epochs=60", "model.hidden_channels=16"]}
        before, after = (gm.fit(of, "gcn", **short).val.mean for of in (clean, attacked))
        assert after < before

    def test_sparse_features_and_a_transform_before(self, monkeypatch):
        data = graph()
        expected = hostile(HostileEdges()(data))
        without = changed(data, edge_index=NO_EDGES)
        first = HostileEdges(first=lambda given: changed(given, edge_index=data.edge_index))
        assert hostile(first(without)) == expected
        monkeypatch.setattr("gumbel_mpnn.util.tensors.MOST_DENSE", 10)
        assert hostile(HostileEdges()(changed(data, x=data.x.to_sparse()))) == expected

    def test_every_class_is_attacked(self):
        """Nodes of the last class have one edge each, all others have many."""
        data = graph(splits=1)
        few = data.y == 2
        keep = ~(few[data.edge_index[0]] | few[data.edge_index[1]])
        nodes = few.nonzero().ravel()
        pairs = torch.stack([nodes, torch.zeros_like(nodes)])
        data.edge_index = torch.cat([data.edge_index[:, keep], pairs, pairs.flip(0)], dim=1)
        targets = HostileEdges()(data).val_mask[:, 0]
        assert set(data.y[targets].tolist()) == {0, 1, 2}

    def test_no_edges_or_no_room(self):
        with pytest.raises(DataError, match="no validation node has an edge"):
            HostileEdges()(changed(graph(), edge_index=NO_EDGES))
        pairs = torch.cartesian_prod(torch.arange(12), torch.arange(12)).T
        with pytest.raises(DataError, match="there is no room for hostile edges"):
            HostileEdges()(changed(small_data(nodes=12), edge_index=pairs[:, pairs[0] != pairs[1]]))
