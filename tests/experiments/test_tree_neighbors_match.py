import numpy as np
import pytest
import torch

from experiments.tree_neighbors_match import tree_neighbors_match, trees
from gumbel_mpnn import GCN, PairGraph
from gumbel_mpnn.data import check
from helpers import edges

LEAVES = [2, 3, 5, 6]
"""Of a tree of depth two, numbered depth first: 0 over 1 and 4, 1 over 2 and 3, 4 over 5 and 6."""


@pytest.fixture(scope="module")
def small():
    return tree_neighbors_match(3, max_orders=20, num_splits=3)


def test_the_trees_of_depth_one_by_hand():
    data = trees(np.array([[1, 0]]))  # the left leaf has key 0 and value 1, the right one key 1 and value 0
    assert torch.equal(data.edge_index, edges((1, 0), (2, 0), (4, 3), (5, 3)))
    root_0, root_1, left, right = [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 1], [0, 1, 1, 0]
    assert data.x.tolist() == [root_0, left, right, root_1, left, right]
    assert data.y.tolist() == [1, -1, -1, 0, -1, -1]
    assert data.batch.tolist() == [0, 0, 0, 1, 1, 1]


def test_every_root_is_labelled_with_the_value_of_the_leaf_that_has_its_key(small):
    facts = check(small)
    assert (facts.num_nodes, facts.num_edges, facts.num_classes) == (160 * 15, 160 * 14, 8)
    assert (facts.num_self_loops, facts.num_duplicate_edges, facts.num_isolated) == (0, 0, 0)
    for features, labels in zip(small.x.view(160, 15, 16), small.y.view(160, 15), strict=True):
        keys, values = features.split(8, dim=1)
        (leaf,) = [node for node in range(1, 15) if torch.equal(keys[node], keys[0])]
        assert labels.tolist() == [int(values[leaf].argmax())] + [-1] * 14
    assert torch.equal(*small.batch[small.edge_index])


@pytest.mark.parametrize(("layers", "known"), [(1, "nothing"), (2, "pairs"), (3, "all")])
def test_what_a_gcn_knows(layers, known):
    """A tree, one with two sibling leaves' values exchanged, and one with those of two leaves further apart."""
    data = trees(np.array([[0, 1, 2, 3], [1, 0, 2, 3], [2, 1, 0, 3]]))
    torch.manual_seed(0)
    model = GCN(8, out_channels=4, hidden_channels=32, num_layers=layers).eval()
    with torch.no_grad():
        tree, siblings, cousins = model(data.x, PairGraph.of(data))[[0, 4 * 7, 8 * 7]]
    assert torch.allclose(tree, siblings, atol=1e-6) == (known in ("nothing", "pairs"))
    assert torch.allclose(tree, cousins, atol=1e-6) == (known == "nothing")
