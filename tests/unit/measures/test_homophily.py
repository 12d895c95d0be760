"""Homophily and label informativeness on graphs small enough to count by hand."""

import math

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

from gumbel_mpnn.measures import (
    adjusted_homophily,
    edge_homophily,
    edge_label_shares,
    label_informativeness,
    undirected_edges,
)
from gumbel_mpnn.util.errors import DataError, UserError
from helpers import both_ways, edges

MEASURES = (edge_homophily, adjusted_homophily, label_informativeness)

# A path a a b b with the shares [a a] 2/6, [a b] = [b a] 1/6, [b b] 2/6.
PATH = Data(edge_index=edges((0, 1), (1, 2), (2, 3)), y=torch.tensor([0, 0, 1, 1]))
# The same nodes as files may list them: one edge both ways, one twice, a self-loop.
LISTED = Data(edge_index=edges((0, 1), (1, 0), (1, 2), (2, 3), (2, 3), (3, 3)), y=PATH.y)


def test_a_path_counted_by_hand():
    assert torch.allclose(edge_label_shares(PATH), torch.tensor([[2, 1], [1, 2]], dtype=torch.float64) / 6)
    assert edge_homophily(PATH) == pytest.approx(2 / 3)
    assert adjusted_homophily(PATH) == pytest.approx((2 / 3 - 1 / 2) / (1 / 2))
    information = 2 / 3 * math.log(4 / 3) + 1 / 3 * math.log(2 / 3)
    assert label_informativeness(PATH) == pytest.approx(information / math.log(2))


def test_coalesced_takes_each_pair_once():
    assert undirected_edges(LISTED).tolist() == [[0, 1, 2], [1, 2, 3]]
    assert [measure(LISTED) for measure in MEASURES] == [measure(PATH) for measure in MEASURES]


def test_as_listed_takes_every_column():
    # Same label: 0-1 twice, 2-3 twice, 3-3 once, of six; class 0 has five of the twelve ends, class 1 seven.
    by_chance = (25 + 49) / 144
    assert edge_homophily(LISTED, "as_listed") == pytest.approx(5 / 6)
    assert adjusted_homophily(LISTED, "as_listed") == pytest.approx((5 / 6 - by_chance) / (1 - by_chance))
    p = {(0, 0): 4 / 12, (0, 1): 1 / 12, (1, 0): 1 / 12, (1, 1): 6 / 12}
    ends = [5 / 12, 7 / 12]
    information = sum(share * math.log(share / (ends[a] * ends[b])) for (a, b), share in p.items())
    entropy = -sum(end * math.log(end) for end in ends)
    assert label_informativeness(LISTED, "as_listed") == pytest.approx(information / entropy)


def test_bipartite_classes_tell_everything_and_are_not_alike():
    square = Data(edge_index=edges((0, 1), (1, 2), (2, 3), (3, 0)), y=torch.tensor([0, 1, 0, 1]))
    assert (edge_homophily(square), adjusted_homophily(square), label_informativeness(square)) == (0, -1, 1)


def test_an_edge_index_of_pyg_is_taken():
    data = Data(edge_index=EdgeIndex(both_ways(PATH.edge_index), sparse_size=(4, 4)), y=PATH.y)
    assert edge_homophily(data) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Data(edge_index=edges((0, 1)), num_nodes=2), "no labels y"),
        (Data(edge_index=edges((0, 1)), y=torch.tensor([0.0, 1.0])), r"integers of shape \[2\]"),
        (Data(edge_index=edges((0, 1)), y=torch.tensor([[0], [1]])), r"integers of shape \[2\]"),
        (Data(edge_index=edges((0, 1), (0, 7)), y=torch.tensor([0, 1])), "edge 1 goes from node 0 to node 7"),
        (Data(edge_index=torch.zeros(3, 2, dtype=torch.long), y=torch.tensor([0, 1])), r"shape \[2, E\]"),
        (Data(y=torch.tensor([0, 1])), "no edge_index"),
        (Data(edge_index=edges(), y=torch.tensor([], dtype=torch.long)), "no nodes"),
        (Data(edge_index=edges((0, 1)), y=torch.tensor([0, 10**6])), "the highest label is 1000000"),
        (Data(edge_index=edges((0, 1)).bool(), y=torch.tensor([0, 1])), r"integers of shape \[2, E\], not torch.bool"),
    ],
)
def test_what_cannot_be_measured_is_said(data, message):
    with pytest.raises(DataError, match=message):
        edge_homophily(data)


def test_an_unknown_convention():
    with pytest.raises(UserError, match="did you mean 'coalesced'"):
        edge_homophily(PATH, "coalesce")
