import numpy as np
import pytest
import torch

import attacked_graph
from gumbel_mpnn._util.errors import DataError, UnknownNameError, UserError
from gumbel_mpnn.data import load, specs
from gumbel_mpnn.data.attacked import ATTACKS


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setitem(specs, "attacked-small", attacked_graph.SPEC)
    return attacked_graph.write(tmp_path)


def test_the_names_of_the_attacks():
    meta = tuple(f"meta-{share}" for share in (0.05, 0.1, 0.15, 0.2, 0.25))
    assert (*meta, *(f"nettack-{count}" for count in range(1, 6))) == ATTACKS


def test_the_clean_graph_has_the_split_of_its_file(root):
    data = load("attacked-small", root=root)
    assert data.edge_index.shape == (2, 2 * attacked_graph.EDGES)
    assert [mask.sum(0).tolist() for mask in (data.train_mask, data.val_mask, data.test_mask)] == [[4], [4], [4]]
    assert (data.protocol, data.attack) == ("pro-gnn", "")


def test_without_features_they_are_the_identity_matrix(root):
    assert torch.equal(load("attacked-small", root=root).x, torch.eye(attacked_graph.NODES))


def test_features_of_the_file(root):
    x = np.eye(attacked_graph.NODES, dtype=np.uint8)[::-1]
    data = load("attacked-small", root=attacked_graph.write(root, node_features=x))
    assert torch.equal(data.x, torch.eye(attacked_graph.NODES).flip(0))


@pytest.mark.parametrize(("k", "attack"), list(enumerate(ATTACKS)))
def test_every_attack_has_its_own_edges(root, k, attack):
    clean, data = (load("attacked-small", root=root, attack=name) for name in ("", attack))
    added = {tuple(pair) for pair in data.edge_index.T.tolist()} - {tuple(pair) for pair in clean.edge_index.T.tolist()}
    assert added == ({(0, k + 2), (k + 2, 0)} if k + 2 < attacked_graph.NODES - 1 else set())
    assert data.attack == attack
    assert torch.equal(data.train_mask, clean.train_mask)


def test_nettack_is_tested_on_its_targets(root):
    assert load("attacked-small", root=root, attack="nettack-2").test_mask.flatten().nonzero().flatten().tolist() == [
        9,
        11,
    ]
    assert load("attacked-small", root=root, attack="meta-0.2").test_mask.sum() == 4


def test_an_unknown_attack(root):
    with pytest.raises(
        UnknownNameError, match=r"no attack on 'attacked-small' called 'pgd': known are meta-0\.05, meta-0\.1"
    ):
        load("attacked-small", root=root, attack="pgd")


def test_a_data_set_without_attacks():
    with pytest.raises(
        UserError, match=r"no attacks on data set 'demo', only on attacked-cora, .*: leave out the attack"
    ):
        load("demo", attack="meta-0.25")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges_meta_0.1": None}, r"small\.npz has no array 'edges_meta_0\.1'"),
        ({"edges_nettack_4": np.arange(3)}, r"array 'edges_nettack_4' of .* must have the shape \[E, 2\], not \[3\]"),
        ({"edges_meta_0.25": np.array([[0, 12]])}, "edge 0 goes from node 0 to node 12, but nodes are 0 to 11"),
        ({"nettack_targets": np.array([12])}, r"array 'nettack_targets' of .* names the nodes 12 to 12"),
        ({"val_mask": np.ones(3, bool)}, r"array 'val_masks' of .* must have the shape \[S, 12\]"),
        ({"edges": np.array([[0, 1]])}, "contain 1 edges instead of 12: replace them by the published files"),
    ],
)
def test_a_damaged_file(root, changes, message):
    with pytest.raises(DataError, match=message):
        load("attacked-small", root=attacked_graph.write(root, **changes), attack="meta-0.25")
