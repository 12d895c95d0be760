"""Hostile edges: only at validation nodes, few of them, towards another class, and blind to test labels."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import degree, is_undirected, to_undirected

import gumbel_mpnn as gm
from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.tasks import Besieged
from gumbel_mpnn.data.tasks.siege import MOST
from gumbel_mpnn.graph.content_order import in_order
from helpers import changed, small_data


def graph(**options) -> Data:
    data = small_data(**{"nodes": 60, **options})
    data.edge_index = to_undirected(data.edge_index)
    return data


def hostile(data: Data) -> set[tuple[int, int]]:
    return set(map(tuple, data.edge_index[:, data.edge_is_noise].t().tolist()))


def test_hostile_edges_end_at_validation_nodes_of_the_split():
    data = graph()
    out = Besieged(split=1)(data)
    targets = out.val_mask[:, 1].nonzero().ravel().tolist()
    assert set(targets) <= set(data.val_mask[:, 1].nonzero().ravel().tolist())
    assert len(targets) == 7  # a third of 20
    assert all({i, j} & set(targets) for i, j in hostile(out))
    assert torch.equal(out.val_mask[:, 0], data.val_mask[:, 0])
    assert torch.equal(out.train_mask, data.train_mask)
    assert is_undirected(out.edge_index)
    assert not hostile(out) & set(map(tuple, data.edge_index.t().tolist()))
    assert all(i != j for i, j in hostile(out))


def test_a_node_gets_at_most_half_as_many_as_it_has():
    data = small_data(nodes=60)  # directed, so that hostile edges point to the nodes that get them
    simple = to_undirected(data.edge_index[:, data.edge_index[0] != data.edge_index[1]])
    before = degree(simple[0], 60)
    out = Besieged()(data)
    new = degree(torch.tensor([target for _, target in hostile(out)]), 60)
    targets = out.val_mask[:, 0]
    assert torch.equal(new[targets], (before[targets] / 2).ceil().clamp(max=MOST))
    assert not new[~targets].any()


def test_a_mask_without_splits_and_a_directed_graph():
    data = small_data(splits=1, nodes=30)
    data = changed(data, **{name: data[name][:, 0] for name in ("train_mask", "val_mask", "test_mask")})
    out = Besieged()(data)
    assert out.val_mask.shape == (30,)
    assert all(out.val_mask[target] for _, target in hostile(out))


def test_labels_of_test_nodes_are_not_used():
    data = graph(splits=1)
    other = changed(data, y=torch.where(data.test_mask[:, 0], (data.y + 1) % 3, data.y))
    assert hostile(Besieged()(data)) == hostile(Besieged()(other))


@pytest.mark.parametrize("features", ["different", "alike"])
def test_the_numbering_of_the_nodes_does_not_matter(features):
    data = graph()
    if features == "alike":
        data.x = data.x.sign()
    order = torch.randperm(60, generator=torch.Generator().manual_seed(3))
    there = hostile(Besieged()(in_order(data, order)))
    assert {(int(order[i]), int(order[j])) for i, j in there} == hostile(Besieged()(data))


def test_far_ends_speak_for_another_class():
    data = gm.load("demo")
    out = Besieged()(data)
    ends = out.edge_index[:, out.edge_is_noise]
    same = (data.y[ends[0]] == data.y[ends[1]]).float().mean()
    assert same < 0.2


def test_a_model_loses_at_the_targets():
    data = gm.load("demo")
    besieged = Besieged()(data)
    clean = changed(data, val_mask=besieged.val_mask)
    short = {"preset": None, "splits": [0], "overrides": ["train.epochs=60", "model.hidden_channels=16"]}
    before, after = (gm.fit(of, "gcn", **short).val.mean for of in (clean, besieged))
    assert after < before


def test_without_edges():
    data = changed(graph(), edge_index=torch.empty(2, 0, dtype=torch.long))
    with pytest.raises(DataError, match="no validation node has an edge"):
        Besieged()(data)


def test_sparse_features_stay_sparse(monkeypatch):
    data = graph()
    monkeypatch.setattr("gumbel_mpnn._util.sparse_tensors.MOST_DENSE", 10)
    assert hostile(Besieged()(changed(data, x=data.x.to_sparse()))) == hostile(Besieged()(data))


def test_a_transform_comes_first():
    data = graph()
    without = changed(data, edge_index=torch.empty(2, 0, dtype=torch.long))
    out = Besieged(first=lambda given: changed(given, edge_index=data.edge_index))(without)
    assert hostile(out) == hostile(Besieged()(data))


def test_every_class_is_attacked():
    """Nodes of the last class have one edge each, all others have many."""
    data = graph(splits=1)
    few = data.y == 2
    keep = ~(few[data.edge_index[0]] | few[data.edge_index[1]])
    nodes = few.nonzero().ravel()
    pairs = torch.stack([nodes, torch.zeros_like(nodes)])
    data.edge_index = torch.cat([data.edge_index[:, keep], pairs, pairs.flip(0)], dim=1)
    targets = Besieged()(data).val_mask[:, 0]
    assert set(data.y[targets].tolist()) == {0, 1, 2}


def test_no_edge_twice():
    for seed in range(5):
        out = Besieged()(graph(seed=seed))
        arcs = out.edge_index[:, out.edge_is_noise]
        assert arcs.unique(dim=1).shape == arcs.shape


def test_no_room():
    nodes = torch.arange(12)
    pairs = torch.cartesian_prod(nodes, nodes).T
    data = changed(small_data(nodes=12), edge_index=pairs[:, pairs[0] != pairs[1]])
    with pytest.raises(DataError, match="there is no room for hostile edges"):
        Besieged()(data)
