"""The rewired model on a CUDA device: captured steps are the plain ones, runs repeat, replicas are apart."""

import copy

import pytest
import torch

from gumbel_mpnn.rewiring.regularizers import regularizers
from gumbel_mpnn.rewiring.scorers import scorers
from gumbel_mpnn.runs.fit import fit
from gumbel_mpnn.settings import resolve
from gumbel_mpnn.training import captured, models, train
from helpers import make_task, numbers, random_edges, replicas, small_data

GROUP = replicas((0, 0), (1, 0), (0, 7))
KINDS = [
    *({"scorer": name} for name in scorers),
    {"scorer": "literal", "scorer.second_sigmoid": True},
    {"scorer": "class-space", "samples": 2, "agreement": 1.0, "prior": 1.0},
    {"scorer": "class-space", "evaluation": "mean_of_samples", "beliefs": "graph"},
    {"scorer": "class-facts", "beliefs": "rewired", "scorer.pair_loss": 1.0},
    {"scorer": "neighborhood", "scorer.decoys": 3.0},
    *({"regularizer": name, "regularizer.weight": 0.5} for name in regularizers if name != "prior"),
    {
        "regularizer": "mix",
        "regularizer.weight": 0.5,
        "regularizer.labels": "one-hot",
        "regularizer.weighting": "entropy",
        "regularizer.prototypes": "labels",
        "regularizer.factor": "printed",
    },
]
each_kind = pytest.mark.parametrize("rewiring", KINDS, ids=str)


def task_on_gpu():
    data = small_data(nodes=300, features=100)
    data.candidate_index = random_edges(300, 400, seed=5)
    return make_task(data, "cuda")


def settings_of(rewiring):
    model = {"hidden_channels": 16, "dropout": 0.4, "norm": "layer"}
    tables = {"model": model, "train": {"epochs": 10, "lr": 0.01}, "rewiring": rewiring}
    return resolve("own", "gumbel-mpnn", tables, models.complete, rewires=True)


@each_kind
def test_captured_steps_are_the_plain_ones_and_repeat(rewiring, monkeypatch):
    task, settings = task_on_gpu(), settings_of(rewiring)
    first, again = train(task, settings, GROUP), train(task, settings, GROUP)
    assert numbers(first) == numbers(again)
    monkeypatch.setattr(captured, "WARM_UP", 10**6)
    assert numbers(train(task, settings, GROUP)) == numbers(first)


def test_a_graph_on_the_device_is_rewired_there():
    data = small_data(nodes=60)
    run = fit(data, "gumbel-mpnn", settings={"train": {"epochs": 2}, "model": {"hidden_channels": 8}}, splits=[0])
    there = run.rewire(copy.copy(data).to("cuda"))
    assert {there[name].device.type for name in ("x", "y", "edge_index", "edge_weight", "edge_origin")} == {"cuda"}
    assert torch.equal(there.edge_index.cpu(), run.rewire(data).edge_index)
    assert data.x.device.type == "cpu"


@pytest.mark.parametrize("name", ["gcn", "sage", "gat", "mlp", "gumbel-mpnn"])
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_activations_in_16_bits_give_about_the_same_loss(name, norm):
    losses = []
    for short in (False, True):
        tables = {
            "model": {"hidden_channels": 16, "dropout": 0.0, "norm": norm},
            "train": {"epochs": 5, "lr": 0.01, "bfloat16": short},
        }
        settings = resolve("own", name, tables, models.complete, rewires=name == "gumbel-mpnn")
        losses.append([outcome.history[-1]["train_loss"] for outcome in train(task_on_gpu(), settings, GROUP)])
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.1)
