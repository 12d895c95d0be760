"""An interrupted run goes on from its checkpoint and ends as if nothing had happened."""

import os

import pytest
import torch

from gumbel_mpnn.training import metrics, train, trainer
from gumbel_mpnn.util.errors import DataError, DataWarning
from gumbel_mpnn.util.files import load_tensors, save_tensors
from helpers import interrupted, make_settings, make_task, numbers, replicas

BUSY = {"dropout": 0.4, "input_dropout": 0.2, "norm": "batch", "residual": True}
EPOCHS = 9
GROUP = replicas((0, 0), (1, 3), (0, 5))


pytestmark = pytest.mark.usefixtures("every_epoch")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.safetensors"


@pytest.mark.parametrize("epochs", [(1,), (EPOCHS,), (2, 3, 7), (4, 4)], ids=str)
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
        interrupted(epoch, task, settings, GROUP, path)
    assert numbers(train(task, settings, GROUP, checkpoint=path)) == numbers(whole)


def test_a_finished_run_is_not_trained_again(path):
    task, settings = make_task(), make_settings("gcn", BUSY, epochs=EPOCHS)
    first = train(task, settings, GROUP, checkpoint=path)
    again = train(task, settings, GROUP, checkpoint=path, watch=pytest.fail)
    assert numbers(again) == numbers(first)


def test_a_program_that_dies_while_it_looks_at_the_test_nodes_has_lost_nothing(path, monkeypatch):
    task, settings = make_task(), make_settings("gcn", BUSY, epochs=EPOCHS)
    whole = train(task, settings, GROUP)
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "CHECKPOINT_SHARE", 1e-9)  # only one, after the first epoch
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


def test_a_checkpoint_of_other_replicas_is_refused(path):
    train(make_task(), make_settings(), replicas((0, 0)), checkpoint=path)
    with pytest.raises(DataError, match="is of other runs"):
        train(make_task(), make_settings(), replicas((0, 1)), checkpoint=path)


@pytest.mark.parametrize("keep", [0, 100, -1])
def test_a_damaged_checkpoint_is_set_aside(path, keep):
    task, settings = make_task(), make_settings(epochs=3)
    interrupted(3, task, settings, GROUP, path)
    damaged = path.read_bytes()[:keep]
    path.write_bytes(damaged)
    expected = r"cannot read .*checkpoint\.safetensors: .*; training begins anew; it is now called .*\.damaged"
    with pytest.warns(DataWarning, match=expected):
        again = train(task, settings, GROUP, checkpoint=path, resumed=pytest.fail)
    assert numbers(again) == numbers(train(task, settings, GROUP))
    assert path.with_name(f"{path.name}.damaged").read_bytes() == damaged


def test_no_flipped_bit_changes_a_result(path):
    task, settings = make_task(), make_settings(epochs=3)
    interrupted(3, task, settings, GROUP, path)
    whole, content = numbers(train(task, settings, GROUP)), path.read_bytes()
    for place in range(8, len(content), len(content) // 40):
        path.write_bytes(bytes([*content[:place], content[place] ^ 1 << place % 8, *content[place + 1 :]]))
        with pytest.warns(DataWarning, match="training begins anew"):
            assert numbers(train(task, settings, GROUP, checkpoint=path)) == whole, place


def test_a_checkpoint_that_cannot_be_opened_is_not_damaged(path):
    path.symlink_to("/proc/self/mem")  # reading its beginning is an error of the disk, even for root
    with pytest.raises(DataError, match=r"cannot open .*; check its permissions and the disk$"):
        train(make_task(), make_settings(epochs=3), GROUP, checkpoint=path)
    assert path.is_symlink()


TENSORS = {
    "float": torch.tensor([[1.0, -2.5]]),
    "double": torch.tensor([0.1], dtype=torch.float64),
    "long": torch.tensor([2**40]),
    "bool": torch.tensor([True, False]),
    "bytes": torch.arange(5, dtype=torch.uint8),
    "scalar": torch.tensor(3.0),
    "empty": torch.empty(0, 3),
    "strided": torch.arange(6.0).view(2, 3).T,
}


def test_tensors_and_note_come_back(path):
    note = {"epoch": 3, "replicas": ["split0-seed0"], "value": None}
    save_tensors(path, TENSORS, note)
    tensors, read = load_tensors(path)
    assert read == note
    assert set(tensors) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor), name


def test_loaded_tensors_outlive_the_file(path):
    save_tensors(path, {"a": torch.ones(1000)})
    tensors, _ = load_tensors(path)
    save_tensors(path, {"a": torch.zeros(1000)})
    tensors["a"] += 1
    assert torch.equal(tensors["a"], torch.full((1000,), 2.0))
    path.unlink()
    assert torch.equal(tensors["a"], torch.full((1000,), 2.0))


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:4],
        lambda content: content[:-1],
        lambda content: b"not a checkpoint at all",
        lambda content: content.replace(b"F32", b"F99"),
    ],
    ids=["empty", "no header", "last byte", "text", "header"],
)
def test_a_damaged_file_is_a_data_error(path, damage):
    save_tensors(path, TENSORS, {"epoch": 3})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=r"^cannot read .*; delete it to train this run again$"):
        load_tensors(path)


def test_a_missing_file_is_a_data_error(path):
    with pytest.raises(DataError, match=r"cannot open .*: No such file or directory; check its permissions"):
        load_tensors(path)
