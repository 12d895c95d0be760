"""Faults that were found and mended once; each test failed before."""

import os
import subprocess
import sys

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.atomic import write_atomically
from gumbel_mpnn.errors import DataError, UserError
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import GCN, Streams, as_features, backbones
from gumbel_mpnn.registry import Registry
from gumbel_mpnn.training import loop, roc_auc, train
from helpers import changed, edges, make_settings, make_task, replicas, small_data

SEEDS = [3, 5, 8]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_streams_of_several_replicas_take_their_state_back():
    # In a process of its own: the fault took the interpreter down.
    code = (
        "from gumbel_mpnn.nn import Streams; s = Streams([3, 5], 'train'); t = s.get_state();"
        " a = s.uniform((3,), 0, 1); s.set_state(t); assert (s.uniform((3,), 0, 1) == a).all()"
    )
    assert subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT).returncode == 0


@pytest.mark.parametrize("probability", [1.0, 1 - 1e-6])
def test_keep_all_keeps_all(probability):
    mask, exact = Streams([0], "train").keep((1000,), probability)
    assert exact == 1
    assert mask.all()


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("given", [edges(), edges((1, 1))], ids=["no edges", "a self-loop"])
def test_a_graph_without_pairs(given, undirected):
    graph = PairGraph.build(given, 3, undirected=undirected)
    assert (graph.num_pairs, graph.num_arcs) == (0, 0)
    assert graph.pair_arcs.shape == (2 if undirected else 1, 0)
    x = torch.ones(2, 3, 4, requires_grad=True)
    assert torch.equal(graph.propagate(x, torch.ones(2, 0)), torch.zeros(2, 3, 4))
    assert graph.degree().tolist() == [[0.0, 0.0, 0.0]]
    assert graph.pair_scores(x, x).shape == (2, 0)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("name", list(backbones))
def test_a_model_on_a_graph_without_pairs(name, weighted):
    model = backbones[name](5, out_channels=3, hidden_channels=8, replicas=2)
    weight = torch.ones(2, 0, requires_grad=True) if weighted else None
    out = model(torch.randn(4, 5), PairGraph.build(edges(), 4), weight)
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("lr", [1e30, 1e20])
@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
@pytest.mark.parametrize("name", list(backbones))
def test_diverging_training_is_an_error(name, metric, lr):
    task = make_task(changed(small_data(classes=2), metric=metric))
    with pytest.raises(UserError, match=r"training diverged .*smaller train\.lr"):
        train(task, make_settings(name, {"num_layers": 3}, lr=lr), replicas((0, 0)))


@pytest.mark.parametrize("bad", [edges((0, 5)), edges((5, 0)), edges((0, -1))], ids=str)
@pytest.mark.parametrize("as_candidates", [False, True])
def test_an_edge_to_nowhere_is_refused(bad, as_candidates):
    given = {"edge_index": edges((0, 1)), "candidate_index": bad} if as_candidates else {"edge_index": bad}
    with pytest.raises(DataError):
        PairGraph.build(num_nodes=4, **given)


def test_sparse_features_with_an_edge_index():
    x, model = torch.eye(8), GCN(8, out_channels=3, hidden_channels=8).eval()
    torch.testing.assert_close(model(as_features(x), edges((0, 1))), model(x, edges((0, 1))))


def test_a_checkpoint_of_other_replicas_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)
    path = tmp_path / "checkpoint.safetensors"
    train(make_task(), make_settings(), replicas((0, 0)), checkpoint=path)
    with pytest.raises(DataError):
        train(make_task(), make_settings(), replicas((0, 1)), checkpoint=path)


def test_a_checkpoint_of_another_model_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)
    path = tmp_path / "checkpoint.safetensors"
    train(make_task(), make_settings(), replicas((0, 0)), checkpoint=path)
    with pytest.raises(DataError):
        train(make_task(), make_settings("gcn", {"hidden_channels": 16}), replicas((0, 0)), checkpoint=path)


@pytest.mark.parametrize("name", list(backbones))
def test_gradients_are_finite_for_tiny_weights(name):
    graph = PairGraph.build(edges((0, 1), (1, 2)), 4)
    model = backbones[name](5, out_channels=3, hidden_channels=8)
    weight = torch.full((2,), 1e-40, requires_grad=True)
    model(torch.randn(4, 5), graph, weight).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    assert weight.grad is None or torch.isfinite(weight.grad).all()


def test_a_refused_registration_leaves_no_trace():
    registry = Registry("layer")
    registry.register("old")(GCN)
    with pytest.raises(ValueError, match="registered already"):
        registry.register("new", "old")(GCN)
    assert "new" not in registry


@pytest.mark.parametrize("change", [{"y": None}, {"edge_index": None}, {"metric": "f1"}], ids=str)
def test_a_task_without_labels_edges_or_metric_is_a_data_error(change):
    with pytest.raises(UserError):
        train(make_task(changed(small_data(), **change)), make_settings(), replicas((0, 0)))


def test_edges_made_in_inference_mode():
    with torch.inference_mode():
        assert GCN(5, out_channels=3, hidden_channels=8)(torch.randn(3, 5), edges((0, 1))).shape == (3, 3)


def test_roc_auc_is_exact_for_many_pairs():
    y = torch.tensor([0, 1] * 20001)
    score = torch.arange(40002.0)
    logits = torch.stack([torch.zeros(40002), score], -1)[None]
    wins, pairs = 20001 * 20002 // 2, 20001**2
    assert roc_auc(logits, y, torch.ones(1, 40002, dtype=torch.bool)).item() == pytest.approx(wins / pairs, abs=1e-12)


def test_files_follow_the_umask(tmp_path):
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.write_bytes(b"")
    write_atomically(ours, b"")
    assert ours.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize(
    "table",
    [{"train": {"lr": float("inf")}}, {"train": {"weight_decay": float("inf")}}, {"train": {"lr": 10**400}}],
    ids=["lr", "wd", "huge"],
)
def test_infinite_settings_are_refused(table):
    with pytest.raises(UserError):
        make_settings(**table["train"])


def test_state_takes_a_stream_back():
    streams = Streams(SEEDS, "train")
    streams.keep((5,), 0.5)
    state = streams.get_state()
    first = streams.uniform((5,), 0, 1)
    later = streams.uniform((5,), 0, 1)
    streams.set_state(state)
    assert torch.equal(streams.uniform((5,), 0, 1), first)
    assert not torch.equal(first, later)
    other = Streams([0, 0, 0], "init")
    other.set_state(state)
    assert torch.equal(other.uniform((5,), 0, 1), first)


def test_keep_is_exact_at_the_ends():
    streams = Streams(SEEDS, "train")
    for probability, answer in ((0.0, False), (1.0, True)):
        mask, exact = streams.keep((1000,), probability)
        assert exact == probability
        assert mask.unique().tolist() == [answer]


def test_training_after_a_look_in_inference_mode():
    graph, model = PairGraph.build(edges((0, 1), (1, 2)), 3), GCN(5, out_channels=3, hidden_channels=8)
    with torch.inference_mode():
        model(torch.randn(3, 5), graph)
    model(torch.randn(3, 5), graph).sum().backward()


def test_learned_edge_weights_of_data():
    data = Data(x=torch.randn(3, 5), edge_index=edges((0, 1), (1, 2)), edge_weight=torch.ones(2, requires_grad=True))
    model = GCN(5, out_channels=3, hidden_channels=8)
    for _ in range(2):
        model(data).sum().backward()
