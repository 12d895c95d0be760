"""Graphs after attacks, from a small file of the format of the published ones."""

import dataclasses

import numpy as np
import pytest
import torch

from experiments.attacked import ATTACKS, META, NETTACK, after, read_attacked
from gumbel_mpnn.data import File, load, specs

NODES = 12


@pytest.fixture
def path(tmp_path):
    """Twelve nodes in a circle without features; attack k joins node 0 to k + 1."""
    nodes = np.arange(NODES)
    circle = np.stack([nodes, (nodes + 1) % NODES], axis=1).astype(np.int32)
    arrays = {
        "node_labels": nodes % 2,
        "edges": circle,
        "train_mask": nodes < 4,
        "val_mask": (nodes >= 4) & (nodes < 8),
        "test_mask": nodes >= 8,
        "nettack_targets": np.array([9, 11]),
    }
    for k, attack in enumerate(ATTACKS[1:]):
        arrays[f"edges_{attack.replace('-', '_')}"] = np.concatenate([circle, [[0, k + 2]]])
    np.savez(tmp_path / "small.npz", **arrays)
    return tmp_path / "small.npz"


def test_names():
    assert ("", *META, *NETTACK) == ATTACKS
    names = [after(f"attacked-{name}", attack) for name in ("cora", "citeseer", "polblogs") for attack in ATTACKS]
    assert [name for name in specs if name.startswith("attacked-")] == names
    assert specs["attacked-cora:nettack-1"].name == "attacked-cora"


@pytest.mark.parametrize(("k", "attack"), list(enumerate(ATTACKS[1:])))
def test_every_attack_has_its_own_edges_and_the_split_of_the_file(path, k, attack):
    clean, data = read_attacked("", [path]), read_attacked(attack, [path])
    assert data.edge_index.T.tolist() == [*clean.edge_index.T.tolist(), [0, k + 2]]
    for mask in ("train_mask", "val_mask"):
        assert torch.equal(data[mask], clean[mask])
    tested = data.test_mask.flatten().nonzero().flatten().tolist()
    assert tested == ([9, 11] if attack in NETTACK else [8, 9, 10, 11])


def test_loading_by_name(path, monkeypatch):
    changes = {"num_nodes": NODES, "num_edges": 13, "num_features": NODES, "num_classes": 2}
    spec = dataclasses.replace(specs["attacked-cora:meta-0.1"], files=(File(path.name),), **changes)
    monkeypatch.setitem(specs, "attacked-cora:meta-0.1", spec)
    data = load("Attacked_Cora:meta-0.1", root=path.parent)
    assert data.edge_index.shape == (2, 26)
    assert (data.name, data.protocol) == ("attacked-cora", "pro-gnn")
