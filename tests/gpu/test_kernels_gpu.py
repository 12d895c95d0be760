"""Sparse products, dropout and replay on a CUDA device against plain torch."""

from dataclasses import replace

import pytest
import torch

from graph_cases import GRAPHS, REPLICAS, WIDTHS, check_against_float64
from gumbel_mpnn.graph import PairGraph, SparseLayout, matmul, sampled_product
from gumbel_mpnn.graph.products import attention
from gumbel_mpnn.nn import ReplicaRNG, backbones
from gumbel_mpnn.nn.layers import Linear, activate, dropout, make_norm
from gumbel_mpnn.rewiring import GumbelMPNN
from gumbel_mpnn.settings import DataSettings
from gumbel_mpnn.training import captured, metrics, train
from helpers import make_settings, make_task, normal, numbers, randomized, replicas, small_data


def pattern(rows, cols, share, seed=0):
    """A random layout whose first row is full and whose last row and column are empty."""
    there = torch.rand(rows, cols, generator=torch.Generator().manual_seed(seed)) < share
    there[0], there[-1], there[:, -1] = True, False, False
    row, col = there.nonzero().T
    return SparseLayout.build(row, col, rows, cols)


@pytest.mark.parametrize("width", [1, 2, 5, 32, 33, 128, 300])
@pytest.mark.parametrize("batch", [1, 3])
def test_products_equal_the_dense_ones(batch, width):
    layout = pattern(70, 90, 0.1)
    values, x, y = normal(batch, layout.nnz, seed=1), normal(batch, 90, width, seed=2), normal(batch, 70, width, seed=3)
    row, col = layout.row.long().cuda(), layout.col.long().cuda()
    results = []
    for sparse in (True, False):
        v, a, b = (tensor.cuda().requires_grad_() for tensor in (values, x, y))
        if sparse:
            out, scores = matmul(layout.to("cuda"), v, a), sampled_product(layout.to("cuda"), b, a)
        else:
            dense = v.new_zeros(batch, 70, 90).index_put((torch.arange(batch).cuda()[:, None], row, col), v)
            out, scores = dense @ a, (b @ a.transpose(1, 2))[:, row, col]
        grads = torch.autograd.grad(out.square().sum() + scores.square().sum(), [v, a, b])
        results.append([out, scores, *grads])
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", GRAPHS)
def test_products_are_those_of_float64_on_the_cpu(name, width, replicas):
    check_against_float64(name, width, replicas, "cuda")


def test_a_step_needs_no_memory_for_arcs_times_channels():
    nodes, width = 2_000, 256
    both = torch.triu_indices(nodes, nodes, 1, device="cuda")[:, ::2]
    graph = PairGraph.build(both, nodes, candidate_index=both[:, :0])
    model = GumbelMPNN(in_channels=8, out_channels=3, hidden_channels=width, num_layers=2, replicas=1).cuda()
    x, y = torch.randn(nodes, 8, device="cuda"), torch.arange(nodes, device="cuda") % 3
    mask, start = torch.ones(1, nodes, dtype=torch.bool, device="cuda"), torch.zeros((), device="cuda")
    for _ in range(2):  # the first lays out what the second only uses
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        model.training_loss(x, graph, y, mask, start).sum().backward()
    peak = torch.cuda.max_memory_allocated() - before
    assert peak < 4 * graph.num_arcs * width / 4  # a quarter of one such array


def test_products_take_shared_values_and_strided_operands():
    layout = pattern(20, 30, 0.2).to("cuda")
    values, x = normal(layout.nnz, seed=1).cuda(), normal(7, 30, 3, seed=2).cuda().permute(2, 1, 0)
    out = matmul(layout, values, x)
    for replica in range(3):
        torch.testing.assert_close(out[replica], matmul(layout, values[None], x[replica : replica + 1].contiguous())[0])
    y = normal(7, 20, 3, seed=3).cuda().permute(2, 1, 0)
    torch.testing.assert_close(sampled_product(layout, y, x), sampled_product(layout, y.contiguous(), x.contiguous()))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 3)], ids=str)
def test_an_empty_layout_gives_zeros(shape):
    nothing = torch.empty(0, dtype=torch.int64)
    layout = SparseLayout.build(nothing, nothing, *shape).to("cuda")
    a, b = torch.ones(2, shape[0], 4, device="cuda"), torch.ones(2, shape[1], 4, device="cuda", requires_grad=True)
    out = matmul(layout, torch.ones(2, 0, device="cuda"), b)
    assert torch.equal(out, torch.zeros(2, shape[0], 4, device="cuda"))
    out.sum().backward()
    assert torch.equal(b.grad, torch.zeros_like(b))
    assert sampled_product(layout, a, b).shape == (2, 0)


def test_products_are_the_same_to_the_last_bit_every_time():
    layout = pattern(500, 500, 0.3).to("cuda")
    values, x = normal(2, layout.nnz, dtype=torch.float32).cuda(), normal(2, 500, 64, dtype=torch.float32).cuda()
    first, scores = matmul(layout, values, x), sampled_product(layout, x, x)
    for _ in range(5):
        assert torch.equal(matmul(layout, values, x), first)
        assert torch.equal(sampled_product(layout, x, x), scores)


@pytest.mark.parametrize("probability", [0.2, 0.5, 0.9])
def test_dropout_drops_the_share_and_scales_up_the_rest(probability):
    x = torch.ones(2, 300, 101, device="cuda", requires_grad=True)
    out = dropout(x, probability, ReplicaRNG([0, 1], "train", "cuda"))
    dropped = (out == 0).double().mean(dim=(1, 2)).tolist()
    assert dropped == pytest.approx([probability] * 2, abs=0.01)
    assert out[out != 0].unique().tolist() == pytest.approx([1 / (1 - probability)], rel=1e-4)
    assert not torch.equal(out[0], out[1])
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


def activated(device, name, nodes, width, training, dtype=torch.float32):
    """Output, gradients and running statistics of norm and ReLU without dropout."""
    norm = randomized(make_norm(name, 2, width)).to(device, dtype).train(training)
    x = (3 * normal(2, nodes, width, dtype=dtype) + 1).to(device).requires_grad_()
    bias = normal(2, 1, width, seed=2, dtype=dtype).to(device).requires_grad_()
    out = activate(x, bias, norm, 0.0, ReplicaRNG([0, 1], "train", device))
    probe = normal(2, nodes, width, seed=1, dtype=dtype).to(device)
    grads = torch.autograd.grad((out * probe).sum(), [x, bias, *norm.parameters()])
    return [value.cpu() for value in (out, *grads, *norm.buffers())]


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize(("nodes", "width"), [(1, 1), (7, 5), (300, 33), (1000, 256)], ids=str)
@pytest.mark.parametrize("name", ["none", "layer", "batch"])
def test_norm_and_relu_are_those_of_the_cpu(name, nodes, width, training):
    here, there = (activated(device, name, nodes, width, training) for device in ("cpu", "cuda"))
    torch.testing.assert_close(there, here, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["none", "layer", "batch"])
def test_norm_and_relu_of_64_bits_are_those_of_the_cpu(name):
    here, there = (activated(device, name, 300, 33, True, torch.float64) for device in ("cpu", "cuda"))
    torch.testing.assert_close(there, here, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("metric", list(metrics))
@pytest.mark.parametrize("name", list(backbones))
def test_replayed_epochs_are_the_plain_ones(name, metric, monkeypatch):
    data = small_data(nodes=200, features=20, classes=2)
    data.metric = metric
    task = make_task(data, "cuda")
    options = {"dropout": 0.4, "input_dropout": 0.2, "norm": "batch"}
    settings = make_settings(name, options, epochs=30, eval_every=2, patience=8)
    group = replicas((0, 0), (1, 0))
    replayed = train(task, settings, group)
    monkeypatch.setattr(captured, "WARM_UP", 10**9)
    assert numbers(replayed) == numbers(train(task, settings, group))


@pytest.mark.parametrize("metric", list(metrics))
def test_replayed_epochs_of_many_classes_with_own_features_and_weights(metric, monkeypatch):
    data = small_data(nodes=200, features=20, classes=4)
    data.metric = metric
    task = make_task(data, "cuda", features="standardized")
    plain = make_settings("gcn", {"dropout": 0.4, "input_dropout": 0.2}, epochs=20, class_weights="balanced")
    settings = replace(plain, data=DataSettings(features="standardized"))
    group = replicas((0, 0), (1, 0))
    replayed = train(task, settings, group)
    monkeypatch.setattr(captured, "WARM_UP", 10**9)
    assert numbers(replayed) == numbers(train(task, settings, group))


@pytest.mark.parametrize("metric", list(metrics))
def test_metrics_are_those_of_a_cpu(metric):
    logits, y = normal(2, 3000, 4, dtype=torch.float32), torch.arange(3000) % 4
    mask = normal(2, 3000, seed=1) > 0
    here = metrics[metric](logits, y, mask)
    torch.testing.assert_close(metrics[metric](logits.cuda(), y.cuda(), mask.cuda()).cpu(), here)


@pytest.mark.parametrize("widths", [(7, 64), (64, 64), (128, 100), (300, 20)], ids=str)
@pytest.mark.parametrize("shared", [True, False])
def test_linear_layers_are_those_of_float64(widths, shared):
    layer = randomized(Linear(3, *widths)).cuda()
    x, probe = normal(1 if shared else 3, 5000, widths[0]).cuda(), normal(3, 5000, widths[1], seed=1).cuda()
    results = []
    for dtype in (torch.float32, torch.float64):
        layer, features = layer.to(dtype), x.to(dtype).requires_grad_()
        out = layer(features[0] if shared else features)
        grads = torch.autograd.grad((out * probe.to(dtype)).sum(), [features, *layer.parameters()])
        results.append([tensor.double() for tensor in (out, *grads)])
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-3)


def test_attention_does_not_hide_a_nan():
    layout = SparseLayout.build(torch.tensor([0, 0]), torch.tensor([1, 2]), 3, 3).to("cuda")
    source = torch.tensor([[0.0, torch.nan, 1.0]], device="cuda")
    shares, own = attention(layout, torch.ones(1, 2, device="cuda"), torch.zeros(1, 3, device="cuda"), source, 0.2)
    assert shares.isnan().all()
    assert own[0].isnan().tolist() == [True, True, False]


def test_layers_of_more_numbers_than_32_bits_count():
    """The last nodes are computed as the first ones are."""
    nodes, width = 2**23 + 16, 256
    x = torch.zeros(1, nodes, width, device="cuda", dtype=torch.bfloat16)
    x[:, :16] = x[:, -16:] = torch.randn(16, width, device="cuda", dtype=torch.bfloat16)
    seeds, call = torch.zeros(1, dtype=torch.int64, device="cuda"), torch.zeros((), dtype=torch.int64, device="cuda")
    from gumbel_mpnn.nn.kernels.norm import norm_relu_dropout
    from gumbel_mpnn.nn.kernels.replica import fused_dropout

    offset = torch.zeros(1, 1, width, device="cuda")
    y = norm_relu_dropout(x, offset, None, None, None, None, "none", 1e-5, 0.0, seeds, call)
    assert torch.equal(y[:, -16:], x[:, -16:].relu())
    assert torch.equal(y[:, :16], y[:, -16:])
    kept = fused_dropout(x.fill_(1), 0.5, seeds, call)
    assert 0.4 < float((kept[:, -16:] > 0).float().mean()) < 0.6
    assert set(kept[:, -16:].unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(kept[:, :16], kept[:, -16:])
