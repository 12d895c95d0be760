"""Replicas that have stopped are trained no more, and nothing but rounding changes by that."""

from math import nan

import pytest

from gumbel_mpnn.settings import resolve
from gumbel_mpnn.training import Task, models, prepare, train, trainer
from gumbel_mpnn.util.errors import DivergedError
from helpers import assert_close_outcomes, interrupted, make_settings, make_task, numbers, replicas, small_data

GROUP = replicas((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2))
BUSY = {"dropout": 0.4, "input_dropout": 0.2, "norm": "layer", "residual": True}
PATIENT = {"epochs": 60, "patience": 6, "lr": 0.03}


@pytest.fixture
def sizes(monkeypatch):
    """How many replicas are trained in each epoch; after every evaluation it is looked at who still runs."""
    monkeypatch.setattr(trainer, "STOP_CHECK_EVERY", 1)
    seen, step = [], trainer.Trainer.step
    monkeypatch.setattr(trainer.Trainer, "step", lambda self: (seen.append(len(self.train_mask)), step(self)))
    return seen


@pytest.mark.parametrize("model", list(models))
def test_every_model_ends_as_if_all_were_trained_to_the_end(model, sizes, monkeypatch):
    tables = {"model": {"hidden_channels": 8, "dropout": 0.4, "norm": "layer"}, "train": PATIENT}
    settings = resolve("toy", model, tables, models.complete, rewires=models[model].rewires)
    data = prepare(small_data(), settings)
    task = Task.of(data, settings)
    outcomes = train(task, settings, GROUP)
    assert sizes[0] == len(GROUP)
    assert sizes[-1] < len(GROUP)
    monkeypatch.setattr(trainer, "LEAVE_OUT_BELOW", 0.0)
    assert_close_outcomes(outcomes, train(task, settings, GROUP))
    assert len({outcome.epochs for outcome in outcomes}) > 1


@pytest.mark.parametrize("eval_every", [1, 3])
def test_an_interrupted_group_goes_on_with_those_that_are_left(sizes, every_epoch, tmp_path, eval_every):
    settings = make_settings("gcn", BUSY, **PATIENT, eval_every=eval_every)
    task, path = make_task(), tmp_path / "checkpoint.safetensors"
    whole, trained = train(task, settings, GROUP), list(sizes)
    smaller = [epoch for epoch in range(1, len(trained)) if trained[epoch] < trained[epoch - 1]]
    assert len(smaller) > 1
    for epoch in smaller:
        for last in (epoch, epoch + 1, epoch + 2):  # goes on from the epoch before some are left out, and from that
            sizes.clear()
            interrupted(last, task, settings, GROUP, path)
        assert sizes == trained[epoch : epoch + 2]
    assert numbers(train(task, settings, GROUP, checkpoint=path)) == numbers(whole)


@pytest.mark.parametrize("stopped", [0, 3, 5])
def test_outcomes_can_be_asked_for_at_any_time(sizes, stopped):
    task, settings = make_task(), make_settings("gcn", BUSY, **{**PATIENT, "patience": 60})
    group = trainer.Trainer(task, settings, GROUP)
    for _ in range(4):
        group.step()
        group.evaluate()
    group.current.running[:stopped] = False
    group._leave_out_stopped()
    first, again = group.outcomes(6.0), group.outcomes(6.0)
    assert numbers(first) == numbers(again)
    assert [outcome.replica for outcome in first] == GROUP
    assert {outcome.seconds for outcome in first} == {1.0}
    group.step()
    group.evaluate()
    assert [outcome.epochs for outcome in group.outcomes(6.0)] == [4] * stopped + [5] * (6 - stopped)


def test_one_that_diverged_and_was_left_out_is_named(sizes, scripted):
    scripted([nan], [nan], [step / 30 for step in range(30)])
    with pytest.raises(DivergedError) as told:
        train(make_task(), make_settings("gcn", BUSY, epochs=30, patience=3), GROUP[:3])
    assert f"of {GROUP[0]}, {GROUP[1]} with" in str(told.value)
    assert sizes == [3] * 3 + [1] * 27
