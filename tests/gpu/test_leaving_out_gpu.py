"""Replicas that have stopped are left out of captured steps: memory goes back, and the others go on as if alone."""

import gc

import pytest
import torch

from gumbel_mpnn.settings import resolve
from gumbel_mpnn.training import models, train
from gumbel_mpnn.training.trainer import Trainer
from helpers import assert_close_curves, make_task, random_edges, replicas, small_data

GROUP = replicas((0, 0), (1, 0), (0, 7), (1, 4))
EPOCHS = 18
DEVICE = "cuda"


def settings_of(model, **options):
    tables = {
        "model": {"hidden_channels": 16, "dropout": 0.4, "norm": "layer", **options},
        "train": {"epochs": EPOCHS, "lr": 0.01, "patience": EPOCHS},
    }
    rewires = models[model].rewires
    if rewires:
        tables["rewiring"] = {"hard": False}
    return resolve("own", model, tables, models.complete, rewires=rewires)


def advance(trainer, epochs):
    for _ in range(epochs):
        trainer.step()
        trainer.evaluate()


@pytest.mark.parametrize("model", [name for name in models if name != "sdrf"])
def test_the_others_go_on_as_if_alone(model):
    data = small_data(nodes=300, features=100)
    settings = settings_of(model)
    if settings.rewiring is not None:
        data.candidate_index = random_edges(300, 400, seed=5)
    task = make_task(data, DEVICE)
    trainer = Trainer(task, settings, GROUP)
    for stopped in ([0, 2], [0]):  # first and third of four, then the first of the two that are left
        advance(trainer, EPOCHS // 3)
        trainer.current.running[stopped] = False
        trainer._leave_out_stopped()
    assert trainer.places == [3]
    advance(trainer, EPOCHS // 3)
    outcomes = trainer.outcomes(1.0)
    assert [outcome.epochs for outcome in outcomes] == [EPOCHS // 3, 2 * EPOCHS // 3, EPOCHS // 3, EPOCHS]
    for outcome in outcomes:
        (alone,) = train(task, settings, [outcome.replica])
        alone.history[len(outcome.history) :] = []
        assert_close_curves([outcome], [alone], "layer")


def test_the_memory_of_those_left_out_is_free():
    settings = settings_of("gcn", hidden_channels=256)
    task = make_task(small_data(nodes=20_000, features=100), DEVICE)
    gc.collect()
    torch.cuda.empty_cache()
    start = torch.cuda.memory_reserved()
    trainer = Trainer(task, settings, GROUP)
    advance(trainer, 6)
    before = torch.cuda.memory_reserved() - start
    trainer.current.running[:3] = False
    trainer._leave_out_stopped()
    advance(trainer, 6)
    assert torch.cuda.memory_reserved() - start < 0.5 * before
