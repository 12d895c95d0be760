"""Warnings about what training ignores in a graph, and about classes without a node."""

import warnings

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataWarning
from gumbel_mpnn.data.validate import warn_of_empty_classes, warn_of_ignored
from helpers import both_ways, changed, edges

PATH = Data(x=torch.ones(4, 1), edge_index=both_ways(edges((0, 1), (1, 2), (2, 3))))


def told(data, undirected=True):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_ignored(data, undirected)
    assert all(warning.category is DataWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def test_nothing_is_ignored():
    assert told(PATH) == told(changed(PATH, edge_weight=torch.ones(6))) == []
    assert told(changed(PATH, edge_index=edges())) == []


def test_edge_attr():
    assert told(changed(PATH, edge_attr=torch.ones(6, 2))) == [
        "the edge_attr of this graph is ignored, since models use edge weights only: set data.edge_weight if it is a"
        " weight, or delete it"
    ]


@pytest.mark.parametrize(
    ("loops", "said"),
    [([(2, 2), (2, 2)], "1 self-loop, which is"), ([(0, 0), (2, 2)], "2 self-loops, which are")],
)
def test_self_loops(loops, said):
    data = changed(PATH, edge_index=torch.cat([PATH.edge_index, edges(*loops)], dim=1))
    assert told(data) == [f"this graph has {said} left out: convolutions add their own"]


class TestEmptyClasses:
    @pytest.mark.parametrize(
        ("labels", "said"),
        [
            ([1, 5, 9, -1], "3 different numbers up to 9, so that there are 10 classes, 7 of them without a node"),
            ([1, 2, 2, 1], "2 different numbers up to 2, so that there are 3 classes, one of them without a node"),
        ],
    )
    def test_are_told(self, labels, said):
        with pytest.warns(DataWarning) as caught:
            warn_of_empty_classes(changed(PATH, y=torch.tensor(labels)))
        (warning,) = caught
        assert str(warning.message) == f"the labels y are {said}: number classes from 0"

    @pytest.mark.filterwarnings("error")
    def test_are_not_there_or_have_names(self):
        warn_of_empty_classes(changed(PATH, y=torch.tensor([0, 1, -1, 2])))
        warn_of_empty_classes(changed(PATH, y=torch.tensor([0, 2, 2, 0]), class_names=["a", "b", "c"]))


class TestDirections:
    def test_that_are_said(self):
        data = changed(PATH, undirected=False)
        assert told(data) == [
            "this graph is directed (undirected is false), but is treated as undirected: set data.undirected=false to"
            " train on directed edges"
        ]
        assert told(data, undirected=False) == []

    def test_that_are_seen(self):
        data = changed(PATH, edge_index=edges((0, 1), (1, 0), (1, 2), (2, 3), (0, 3), (0, 3)))
        assert told(data) == [
            "3 of the 5 edges of this graph have no reverse, but it is treated as undirected: set the setting"
            " data.undirected=false to train on directed edges, or data.undirected = True on the graph if it is"
            " undirected"
        ]
        assert told(data, undirected=False) == []
        assert told(changed(data, undirected=True)) == []

    def test_of_few_edges(self):
        assert told(changed(PATH, edge_index=edges((0, 1), (1, 0), (1, 2), (3, 0)))) == []
