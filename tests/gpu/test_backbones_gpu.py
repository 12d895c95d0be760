"""The same models on a CUDA device: deterministic, close to the CPU, finite, and no array of arcs times width."""

import pytest
import torch

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures, backbones
from gumbel_mpnn.training import train
from helpers import (
    assert_close_curves,
    interrupted,
    make_settings,
    make_task,
    normal,
    numbers,
    positive,
    random_edges,
    randomized,
    replicas,
    small_data,
)

BUSY = {"dropout": 0.4, "input_dropout": 0.2, "norm": "batch", "residual": True, "input_layer": True}
GROUP = replicas((0, 0), (1, 0), (0, 7))
KINDS = [(name, {}) for name in backbones] + [("gat", {"heads": 4})]
each_kind = pytest.mark.parametrize(("name", "options"), KINDS, ids=str)


def task_on(device, sparse=False):
    data = small_data(nodes=300, features=100)
    if sparse:
        data.x = data.x * (torch.rand(data.x.shape, generator=torch.Generator().manual_seed(0)) < 0.02)
    task = make_task(data, device)
    assert isinstance(task.features, SparseFeatures) == sparse
    return task


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@each_kind
def test_same_seed_same_result(name, options, sparse):
    task, settings = task_on("cuda", sparse), make_settings(name, {**BUSY, **options}, epochs=10, patience=5)
    first, again = train(task, settings, GROUP), train(task, settings, GROUP)
    assert numbers(first) == numbers(again)


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@each_kind
def test_a_few_steps_are_those_of_the_cpu(name, options, sparse, norm):
    settings = make_settings(name, {"dropout": 0.0, "residual": True, "norm": norm, **options}, epochs=6)
    here, there = (train(task_on(device, sparse), settings, GROUP) for device in ("cpu", "cuda"))
    assert all(value.device.type == "cpu" for outcome in there for value in outcome.state.values())
    assert_close_curves(there, here, norm)


@pytest.mark.parametrize("scale", [1.0, 1e3], ids=["usual", "extreme"])
@pytest.mark.parametrize("present", [0.0, 0.5, 1.0])
@each_kind
def test_output_and_gradients_are_finite(name, options, present, scale):
    graph = PairGraph.build(random_edges(50, 120), 50).to("cuda")
    model = backbones[name](6, out_channels=3, hidden_channels=8, replicas=2, seeds=[0, 1], **options).cuda().eval()
    weight = (torch.rand(2, graph.num_pairs, device="cuda") < present).float().requires_grad_()
    out = model(scale * normal(50, 6, dtype=torch.float32).cuda(), graph, weight)
    out.square().mean().backward()
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
    assert name == "mlp" or torch.isfinite(weight.grad).all()


@pytest.mark.parametrize("undirected", [True, False], ids=["undirected", "directed"])
@each_kind
def test_weight_zero_is_the_edge_removed(name, options, undirected):
    model = backbones[name](6, out_channels=3, hidden_channels=8, norm="batch", replicas=2, **options)
    model = randomized(model).cuda().eval()
    graph = PairGraph.build(random_edges(50, 120), 50, undirected=undirected)
    kept = torch.arange(graph.num_pairs) % 3 > 0
    smaller = PairGraph.build(graph.pair_index[:, kept], 50, undirected=undirected)
    weight, x = positive(2, graph.num_pairs), normal(50, 6).cuda()
    with torch.no_grad():
        zeroed = model(x, graph.to("cuda"), (weight * kept).cuda())
        removed = model(x, smaller.to("cuda"), weight[:, kept].cuda())
    torch.testing.assert_close(zeroed, removed, rtol=1e-5, atol=1e-5)


def test_memory_stays_below_arcs_times_width():
    nodes, width = 1500, 256
    graph = PairGraph.build(torch.ones(nodes, nodes).nonzero().T, nodes).to("cuda")
    x = torch.randn(1, nodes, width, device="cuda", requires_grad=True)
    weight = torch.rand(graph.num_pairs, device="cuda", requires_grad=True)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    graph.propagate(x, weight).square().sum().backward()
    assert torch.cuda.max_memory_allocated() - before < 4 * graph.num_arcs * width / 4


def test_streams_on_the_device_go_on_from_their_state():
    rng = ReplicaRNG([3, 5], "train", "cuda")
    rng.bernoulli((100,), 0.5)
    state = rng.get_state()
    first, _ = rng.bernoulli((100,), 0.5)
    rng.set_state(state)
    again, _ = rng.bernoulli((100,), 0.5)
    assert first.device.type == "cuda"
    assert torch.equal(first, again)
    alone, _ = ReplicaRNG([5], "train", "cuda").bernoulli((100,), 0.5)
    assert torch.equal(ReplicaRNG([3, 5], "train", "cuda").bernoulli((100,), 0.5)[0][1:], alone)


@each_kind
def test_an_interrupted_run_ends_like_a_whole_one(name, options, tmp_path, every_epoch):
    task, settings = task_on("cuda"), make_settings(name, {**BUSY, **options}, epochs=8, eval_every=3)
    path = tmp_path / "checkpoint.safetensors"
    interrupted(5, task, settings, GROUP, path)
    assert numbers(train(task, settings, GROUP, checkpoint=path)) == numbers(train(task, settings, GROUP))
