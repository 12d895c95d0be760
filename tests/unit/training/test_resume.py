"""An interrupted run goes on from its checkpoint and ends as if nothing had happened."""

import os
import signal
import threading

import pytest
import torch

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn.training import loop, metrics, train, trainer
from gumbel_mpnn.training.checkpoint import load_tensors, save_tensors
from helpers import changed, make_settings, make_task, numbers, replicas, small_data

BUSY = {"dropout": 0.4, "input_dropout": 0.2, "norm": "batch", "residual": True}
EPOCHS = 9
GROUP = replicas((0, 0), (1, 3), (0, 5))


pytestmark = pytest.mark.usefixtures("every_epoch")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.safetensors"


def interrupt(task, settings, path, epoch, group=GROUP):
    """Train until `epoch` and break off there, before its checkpoint is written."""

    def watch(now, best):
        if now == epoch:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(task, settings, group, checkpoint=path, watch=watch)


@pytest.mark.parametrize("epochs", [(1,), (2,), (5,), (EPOCHS,), (2, 3, 7), (4, 4)], ids=str)
@pytest.mark.parametrize(
    ("model", "options", "settings"),
    [
        ("gcn", BUSY, {}),
        ("gat", {**BUSY, "heads": 2}, {"eval_every": 2}),
        ("sage", {**BUSY, "norm": "layer"}, {"eval_every": 4, "weight_decay": 0.01}),
        ("mlp", BUSY, {"patience": 2}),
    ],
    ids=["gcn", "gat-eval-every-2", "sage-eval-every-4", "mlp-patience"],
)
def test_interrupted_runs_end_bit_for_bit_like_whole_ones(path, model, options, settings, epochs):
    task, settings = make_task(), make_settings(model, options, epochs=EPOCHS, **settings)
    whole = train(task, settings, GROUP)
    for epoch in epochs:
        interrupt(task, settings, path, epoch)
    assert numbers(train(task, settings, GROUP, checkpoint=path)) == numbers(whole)


def test_interrupted_roc_auc_runs_too(path):
    task = make_task(changed(small_data(classes=2), metric="roc_auc"))
    settings = make_settings("gcn", BUSY, epochs=EPOCHS)
    interrupt(task, settings, path, 4)
    assert numbers(train(task, settings, GROUP, checkpoint=path)) == numbers(train(task, settings, GROUP))


def test_a_resumed_run_begins_where_the_checkpoint_was_written(path):
    task, settings, seen = make_task(), make_settings(epochs=6), []
    interrupt(task, settings, path, 4)
    train(task, settings, GROUP, checkpoint=path, watch=lambda epoch, best: seen.append(epoch))
    assert seen == [4, 5, 6]


def test_writing_checkpoints_changes_nothing(path):
    task, settings = make_task(), make_settings("gat", BUSY, epochs=EPOCHS)
    assert numbers(train(task, settings, GROUP, checkpoint=path)) == numbers(train(task, settings, GROUP))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_no_checkpoint_is_written_before_its_time(path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", float("inf"))
    interrupt(make_task(), make_settings(epochs=6), path, 6)
    assert not path.exists()


def test_a_finished_run_is_not_trained_again(path):
    task, settings = make_task(), make_settings("gcn", BUSY, epochs=EPOCHS)
    first = train(task, settings, GROUP, checkpoint=path)
    again = train(task, settings, GROUP, checkpoint=path, watch=pytest.fail)
    assert numbers(again) == numbers(first)


def test_the_last_checkpoint_has_the_last_state_and_not_the_best(path):
    """With more epochs, training goes on from it as if it had never ended."""
    task = make_task()
    short, long = (make_settings("gcn", BUSY, epochs=epochs, lr=0.1) for epochs in (20, 25))
    assert any(outcome.best_epoch < 20 for outcome in train(task, short, GROUP, checkpoint=path))
    assert numbers(train(task, long, GROUP, checkpoint=path)) == numbers(train(task, long, GROUP))


def test_a_program_that_dies_while_it_looks_at_the_test_nodes_has_lost_nothing(path, monkeypatch):
    task, settings = make_task(), make_settings("gcn", BUSY, epochs=EPOCHS)
    whole = train(task, settings, GROUP)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SHARE", 1e-9)  # only one, after the first epoch
        patch.setattr(trainer.Trainer, "outcomes", break_off)
        with pytest.raises(KeyboardInterrupt):
            train(task, settings, GROUP, checkpoint=path)
    assert numbers(train(task, settings, GROUP, checkpoint=path, watch=pytest.fail)) == numbers(whole)


def break_off(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("look_every", [1, 20])
def test_a_run_that_stopped_early_ends_the_same_again(path, monkeypatch, look_every):
    monkeypatch.setattr(trainer, "STOP_CHECK_EVERY", look_every)
    values = iter([0.5, 0.4, 0.9, *[0.1] * 100])
    monkeypatch.setitem(metrics, "accuracy", lambda logits, y, mask: torch.tensor([next(values)]))
    task, settings = make_task(), make_settings("gcn", BUSY, epochs=30, patience=4)
    (first,) = train(task, settings, GROUP[:1], checkpoint=path)
    assert (first.best_epoch, first.epochs) == (3, 7)
    (again,) = train(task, settings, GROUP[:1], checkpoint=path, watch=pytest.fail)
    assert numbers([again]) == numbers([first])


@pytest.mark.parametrize("call", [1, 4])
def test_an_interruption_while_a_checkpoint_is_written(path, monkeypatch, call):
    task, settings = make_task(), make_settings("gcn", BUSY, epochs=EPOCHS)
    whole = train(task, settings, GROUP)
    fsync, calls = os.fsync, []

    def break_off(handle):
        calls.append(handle)
        if len(calls) == call:
            raise KeyboardInterrupt
        fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", break_off)
        with pytest.raises(KeyboardInterrupt):
            train(task, settings, GROUP, checkpoint=path)
    assert path.exists() == (call > 1)
    assert numbers(train(task, settings, GROUP, checkpoint=path)) == numbers(whole)


@pytest.mark.parametrize(
    ("group", "options"), [([(0, 1)], {}), ([(0, 0)], {"hidden_channels": 16})], ids=["other replicas", "another model"]
)
def test_a_checkpoint_of_something_else_is_refused(path, group, options):
    train(make_task(), make_settings(), replicas((0, 0)), checkpoint=path)
    with pytest.raises(DataError, match="is of other runs"):
        train(make_task(), make_settings("gcn", options), replicas(*group), checkpoint=path)


def test_a_checkpoint_of_before_some_were_left_out_is_refused(path):
    train(make_task(), make_settings(), GROUP, checkpoint=path)
    tensors, note = load_tensors(path)
    del note["places"]
    save_tensors(path, tensors, note)
    with pytest.raises(DataError, match="older version: delete it"):
        train(make_task(), make_settings(), GROUP, checkpoint=path)


@pytest.mark.parametrize("keep", [0, 100, -1])
def test_a_damaged_checkpoint_is_set_aside(path, keep):
    task, settings = make_task(), make_settings(epochs=3)
    interrupt(task, settings, path, 3)
    damaged = path.read_bytes()[:keep]
    path.write_bytes(damaged)
    expected = r"cannot read .*checkpoint\.safetensors: .*; training begins anew; it is now called .*\.damaged"
    with pytest.warns(DataWarning, match=expected):
        again = train(task, settings, GROUP, checkpoint=path, resumed=pytest.fail)
    assert numbers(again) == numbers(train(task, settings, GROUP))
    assert path.with_name(f"{path.name}.damaged").read_bytes() == damaged


def test_no_flipped_bit_changes_a_result(path):
    task, settings = make_task(), make_settings(epochs=3)
    interrupt(task, settings, path, 3)
    whole, content = numbers(train(task, settings, GROUP)), path.read_bytes()
    for place in range(8, len(content), len(content) // 40):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.warns(DataWarning, match="training begins anew"):
            again = train(task, settings, GROUP, checkpoint=path)
        assert numbers(again) == whole, place


def test_a_checkpoint_that_cannot_be_opened_is_not_damaged(path):
    path.symlink_to("/proc/self/mem")  # reading its beginning is an error of the disk, even for root
    with pytest.raises(DataError, match=r"cannot open .*; check its permissions and the disk$"):
        train(make_task(), make_settings(epochs=3), GROUP, checkpoint=path)
    assert path.is_symlink()


def interrupt_by_signal(number, task, settings, path, epoch, monkeypatch):
    """Train and send the signal in the middle of the step after `epoch`, with checkpoints far apart."""
    step = trainer.Trainer._step

    def interrupted_step(self):
        if self.epoch == epoch:
            signal.raise_signal(number)
        step(self)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SECONDS", 1000.0)
        patch.setattr(trainer.Trainer, "_step", interrupted_step)
        train(task, settings, GROUP, checkpoint=path)


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises KeyboardInterrupt, even where the program that started the tests ignores it."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.SIGINT
    signal.signal(signal.SIGINT, former)


def test_ctrl_c_writes_a_checkpoint_of_the_whole_epoch(path, monkeypatch, ctrl_c):
    task, settings = make_task(), make_settings("gcn", BUSY, epochs=EPOCHS)
    whole, resumed = train(task, settings, GROUP), []
    with pytest.raises(KeyboardInterrupt):
        interrupt_by_signal(ctrl_c, task, settings, path, 4, monkeypatch)
    assert signal.getsignal(ctrl_c) is signal.default_int_handler
    assert numbers(train(task, settings, GROUP, checkpoint=path, resumed=resumed.append)) == numbers(whole)
    assert resumed == [5]


def test_a_second_ctrl_c_takes_effect_at_once(path, monkeypatch, ctrl_c):
    task, settings = make_task(), make_settings("gcn", BUSY, epochs=EPOCHS)
    evaluate = trainer.Trainer.evaluate
    monkeypatch.setattr(trainer.Trainer, "evaluate", lambda self: (evaluate(self), signal.raise_signal(ctrl_c)))
    with pytest.raises(KeyboardInterrupt):
        interrupt_by_signal(ctrl_c, task, settings, path, 0, monkeypatch)
    assert not path.exists()
    assert signal.getsignal(ctrl_c) is signal.default_int_handler


def test_a_signal_handler_of_the_user_stays(path, monkeypatch, ctrl_c):
    received = []
    signal.signal(ctrl_c, lambda number, frame: received.append(number))
    task, settings = make_task(), make_settings("gcn", BUSY, epochs=EPOCHS)
    interrupt_by_signal(ctrl_c, task, settings, path, 4, monkeypatch)
    assert received == [ctrl_c]


def test_training_in_another_thread_leaves_signals_alone(path, ctrl_c):
    task, settings, seen = make_task(), make_settings(epochs=2), []
    watch = lambda epoch, best: seen.append(signal.getsignal(ctrl_c))  # noqa: E731
    thread = threading.Thread(target=train, args=(task, settings, GROUP), kwargs={"watch": watch})
    thread.start()
    thread.join()
    assert set(seen) == {signal.default_int_handler}
