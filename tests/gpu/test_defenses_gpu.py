"""Defenses on a GPU: the numbers of a CPU, and steps that can be captured and replayed."""

import pytest
import torch

from gumbel_mpnn.baselines import GNNGuard, SoftMedian
from gumbel_mpnn.config import resolve
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.training import models, train
from helpers import make_task, normal, random_edges, replicas, small_data

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here"),
]
each_model = pytest.mark.parametrize("model", [GNNGuard, SoftMedian])


@each_model
def test_the_same_as_on_a_cpu(model):
    graph, x = PairGraph.build(random_edges(50, 200), 50), normal(50, 6, dtype=torch.float32)
    here = model(6, out_channels=3, hidden_channels=8, seeds=[1, 2], replicas=2).eval()
    expected = here(x, graph)
    torch.testing.assert_close(here.cuda()(x.cuda(), graph.to("cuda")).cpu(), expected, rtol=1e-3, atol=1e-4)


@each_model
def test_training(model):
    name = {GNNGuard: "gnn-guard", SoftMedian: "soft-median"}[model]
    tables = {"model": {"hidden_channels": 8, "dropout": 0.0}, "train": {"lr": 0.01, "epochs": 12, "tf32": False}}
    settings, which = resolve("toy", name, tables, models.complete), replicas((0, 0), (1, 3))
    on_cpu, on_gpu = (train(make_task(small_data(60), device), settings, which) for device in ("cpu", "cuda"))
    for one, other in zip(on_cpu, on_gpu, strict=True):
        losses = ([row["train_loss"] for row in outcome.history] for outcome in (one, other))
        torch.testing.assert_close(*map(torch.tensor, losses), rtol=1e-2, atol=1e-3)
