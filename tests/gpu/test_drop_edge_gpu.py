"""DropEdge on a CUDA device: a step is captured and replayed, and still drops other edges each time."""

import pytest

from gumbel_mpnn.settings import resolve
from gumbel_mpnn.training import models, train
from helpers import make_task, numbers, replicas, small_data

GROUP = replicas((0, 0), (1, 0), (0, 7))


def settings(**options):
    tables = {"model": {"hidden_channels": 8, "dropout": 0.0, **options}, "train": {"lr": 1e-12, "epochs": 20}}
    return resolve("toy", "drop-edge", tables, models.complete)


@pytest.mark.parametrize("per_layer", [False, True])
def test_replayed_steps_drop_other_edges_and_repeat_with_the_seed(per_layer):
    task = make_task(small_data(nodes=300, features=100), "cuda")
    first, again = (train(task, settings(per_layer=per_layer), GROUP) for _ in range(2))
    assert numbers(first) == numbers(again)
    for outcome in first:  # parameters hardly move: only the edges change the loss
        assert len({row["train_loss"] for row in outcome.history}) > 15
