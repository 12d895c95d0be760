"""Pairs of nodes as single numbers, and graphs without any."""

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.graph import contains, ordered, pair_key, pairs_of, undirected_keys, without_candidates, without_pairs
from helpers import edges


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.uint8])
def test_keys_and_pairs_are_each_others_inverse(kind):
    pairs = edges((0, 1), (200, 7), (7, 200), (3, 3))
    keys = pair_key(pairs.to(kind), 100_000)
    assert keys.tolist() == [1, 20_000_007, 700_200, 300_003]
    assert torch.equal(pairs_of(keys, 100_000), pairs)


def test_a_graph_without_nodes_has_no_pairs():
    assert pairs_of(undirected_keys(edges(), 0), 0).shape == (2, 0)


def test_undirected_keys_worked_by_hand():
    pairs = edges((2, 1), (1, 2), (3, 3), (0, 3))
    assert ordered(pairs).T.tolist() == [[1, 2], [1, 2], [3, 3], [0, 3]]
    assert undirected_keys(pairs, 4).tolist() == [3, 6]


def test_contains_worked_by_hand():
    keys, some = torch.tensor([2, 5, 9]), torch.tensor([9, 1, 5, 10, 5])
    assert contains(keys, some).tolist() == [True, False, True, False, True]
    assert contains(keys[:0], some).tolist() == [False] * 5
    assert contains(keys, some[:0]).tolist() == []


def test_what_is_about_pairs_goes_and_the_nodes_stay():
    data = Data(
        x=torch.ones(4, 2),
        edge_index=edges((0, 1), (1, 2)),
        edge_weight=torch.ones(2),
        strength=torch.ones(2),
        candidate_index=edges((0, 2)),
        name="path",
    )
    before = set(data.keys())
    assert set(without_candidates(data).keys()) == before - {"candidate_index"}
    bare = without_pairs(data, 4)
    assert set(bare.keys()) == {"x", "name", "num_nodes"}
    assert (bare.num_nodes, set(data.keys())) == (4, before)


def test_labels_as_many_as_edges_stay():
    data = Data(edge_index=edges((0, 1), (1, 2), (0, 2), (1, 0)), y=torch.arange(4))
    assert set(without_pairs(data, 4).keys()) == {"y", "num_nodes"}
