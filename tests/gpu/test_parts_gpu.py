"""Parts of a graph come from the memory of the CPU to a CUDA device, one at a time."""

from dataclasses import replace

import pytest
import torch

from gumbel_mpnn.settings import resolve
from gumbel_mpnn.training import Task, models, train
from gumbel_mpnn.training.trainer import Trainer
from helpers import assert_close_outcomes, changed, make_settings, numbers, random_edges, replicas, small_data

GROUP = replicas((0, 0), (1, 3))


@pytest.mark.parametrize("features", ["raw", "standardized"])
def test_the_same_curves_as_on_a_cpu(features):
    settings = make_settings("gcn", {"dropout": 0.0}, partitions=3, class_weights="balanced")
    settings = replace(settings, data=replace(settings.data, features=features))
    on_cpu, on_gpu = (Task.of(small_data(nodes=60), settings, device) for device in ("cpu", "cuda"))
    assert_close_outcomes(train(on_gpu, settings, GROUP), train(on_cpu, settings, GROUP), tolerance=1e-3)


def test_rewiring_repeats_bit_for_bit():
    tables = {
        "model": {"hidden_channels": 8},
        "train": {"epochs": 6, "partitions": 3},
        "rewiring": {"scorer": {"name": "neighborhood", "decoys": 0.5}},
    }
    settings = resolve("toy", "gumbel-mpnn", tables, models.complete, rewires=True)
    data = changed(small_data(nodes=60), candidate_index=random_edges(60, 40, seed=5))
    task = Task.of(data, settings, "cuda")
    assert numbers(train(task, settings, GROUP)) == numbers(train(task, settings, GROUP))


def test_more_parts_take_less_memory():
    data = changed(small_data(nodes=20_000, features=32), edge_index=torch.arange(19_999).repeat(2, 1))
    data.edge_index[1] += 1

    def peak(count):
        settings = make_settings("gcn", {"hidden_channels": 256}, partitions=count)
        trainer = Trainer(Task.of(data, settings, "cuda"), settings, GROUP)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        trainer.step()
        trainer.evaluate()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before

    peak(1)  # kernels and workspaces
    assert peak(8) < 0.3 * peak(1)
