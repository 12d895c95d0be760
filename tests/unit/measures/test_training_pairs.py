"""Homophily by the number of training nodes of an edge, on a graph small enough to count by hand."""

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.measures import training_pairs
from gumbel_mpnn.util.errors import DataError
from helpers import both_ways, edges

# Nodes 0, 1, 2 are for training; node 5 has no label.
Y = torch.tensor([0, 0, 1, 0, 1, -1, 1])
TRAIN = torch.tensor([True, True, True, False, False, False, False])
EDGES = edges((0, 1), (0, 2), (1, 2), (0, 3), (2, 3), (3, 4), (4, 6), (4, 5), (0, 5))


def test_counted_by_hand():
    found = training_pairs(Data(edge_index=both_ways(EDGES), y=Y, num_nodes=7), TRAIN)
    assert {kind: values["num_edges"] for kind, values in found.items()} == {
        "train_train": 3,
        "train_other": 2,
        "other_other": 2,
    }
    homophily = [values["edge_homophily"] for values in found.values()]
    assert homophily == pytest.approx([1 / 3, 1 / 2, 1 / 2])
    # Ends among training nodes: four of class 0 and two of class 1, so by chance (16 + 4) / 36 = 5/9.
    assert found["train_train"]["adjusted_homophily"] == pytest.approx((1 / 3 - 5 / 9) / (4 / 9))


def test_what_is_not_defined_is_none():
    found = training_pairs(Data(edge_index=edges((0, 1)), y=Y, num_nodes=7), TRAIN)
    nothing = dict.fromkeys(["edge_homophily", "adjusted_homophily", "label_informativeness"])
    assert found["other_other"] == {"num_edges": 0, **nothing}
    assert found["train_train"] == {
        "num_edges": 1,
        **nothing,
        "edge_homophily": 1.0,
    }  # one class: the rest is undefined


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(DataError, match=r"the training mask must have the shape \[7\], not \[7, 2\]"):
        training_pairs(Data(edge_index=EDGES, y=Y, num_nodes=7), TRAIN[:, None].repeat(1, 2))
