"""Run folders: where they lie, what is in them, and that the record comes last."""

import json
import math
import os
from dataclasses import replace

import pytest
import torch

from gumbel_mpnn.runs import SettingFolder
from gumbel_mpnn.runs.record import find_records, read_record
from gumbel_mpnn.runs.store import record_of
from gumbel_mpnn.training import train
from gumbel_mpnn.util.errors import DataError
from helpers import make_settings, make_task, replicas
from quick_fit import quick

SETTINGS = make_settings(epochs=3)
A, B, C, D = replicas((0, 0), (0, 1), (1, 0), (1, 1))


@pytest.fixture(scope="module")
def outcomes():
    return train(make_task(), SETTINGS, [A, C])


@pytest.fixture
def folder(tmp_path):
    return SettingFolder.of(tmp_path, "try", SETTINGS, "abc")


def recorded(outcome):
    return record_of(outcome, SETTINGS, "abc", "accuracy", torch.device("cpu"))


def write(folder, outcome):
    folder.write(outcome, recorded(outcome))


def tree(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def test_the_layout(tmp_path, folder, outcomes):
    for outcome in outcomes:
        write(folder, outcome)
    base = f"try/toy/gcn/{SETTINGS.fingerprint('abc')}"
    assert tree(tmp_path) == [
        f"{base}/{replica}/{name}"
        for replica in ("split0-seed0", "split1-seed0")
        for name in ("history.jsonl", "model.safetensors", "record.json")
    ]


def test_what_was_written_is_read(folder, outcomes):
    write(folder, outcomes[0])
    assert folder.is_finished(A)
    assert folder.record(A) == recorded(outcomes[0])
    state = folder.state(A)
    assert state.keys() == outcomes[0].state.keys()
    assert all(torch.equal(state[name], value) for name, value in outcomes[0].state.items())
    *lines, checksum = (folder.folder(A) / "history.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == outcomes[0].history
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3]
    assert json.loads(checksum).keys() == {"checksum"}


def test_a_run_that_was_not_written_is_not_finished(folder, outcomes):
    write(folder, outcomes[0])
    assert not folder.is_finished(C)


def test_a_run_without_its_model_is_finished_for_those_who_want_none(folder, outcomes, monkeypatch):
    write(folder, outcomes[0])
    strict = SettingFolder(folder.path, models=True)
    assert strict.is_finished(A)
    (folder.folder(A) / "model.safetensors").unlink()
    assert (folder.is_finished(A), strict.is_finished(A)) == (True, False)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(OSError, match="full"):
            write(strict, outcomes[0])
    assert (folder.is_finished(A), strict.is_finished(A)) == (True, False)  # the old record is not lost
    write(strict, outcomes[0])
    assert strict.is_finished(A)


def full_disk(*_):
    raise OSError("the disk is full")


@pytest.mark.parametrize("call", [1, 2, 3], ids=["model", "history", "record"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_failure_while_writing_leaves_the_run_unfinished(tmp_path, folder, outcomes, monkeypatch, call, error):
    fsync, calls = os.fsync, []

    def break_off(handle):
        calls.append(handle)
        if len(calls) == call:
            raise error
        fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", break_off)
        with pytest.raises(error):
            write(folder, outcomes[0])
    assert not folder.is_finished(A)
    assert list(find_records(tmp_path)) == []
    whole = ["model.safetensors", "history.jsonl"][: call - 1]
    assert sorted(file.name for file in folder.folder(A).iterdir()) == sorted(whole)
    write(folder, outcomes[0])
    assert folder.record(A) == recorded(outcomes[0])


@pytest.mark.parametrize("text", ["", '{"fingerprint": "a', "[]", "null", '{"split": 1}', '{"unheard": 1}'], ids=str)
def test_a_damaged_record_is_a_data_error_in_one_sentence(tmp_path, text):
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_record(path)
    message = str(caught.value)
    assert message.startswith(f"cannot read the run record {path}: ")
    assert message.endswith("; delete its folder to do the run again")
    assert "\n" not in message


def test_a_truncated_record_is_a_data_error(folder, outcomes):
    write(folder, outcomes[0])
    path = folder.folder(A) / "record.json"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"cannot read the run record .*record\.json"):
        folder.record(A)


def test_bytes_that_are_no_text_are_a_data_error(tmp_path):
    (tmp_path / "record.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot read the run record"):
        read_record(tmp_path / "record.json")


def test_a_missing_record_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match=r"cannot open the run record .*No such file"):
        read_record(tmp_path / "record.json")


def test_all_finished_runs_are_found_in_order(tmp_path, folder, outcomes):
    other = SettingFolder.of(tmp_path, "another", SETTINGS, "abc")
    write(folder, outcomes[1])
    write(folder, outcomes[0])
    write(other, outcomes[1])
    (folder.folder(D)).mkdir()
    found = list(find_records(tmp_path))
    assert [record.replica for record in found] == [C, A, C]
    assert [record.test for record in found] == [outcomes[1].test, outcomes[0].test, outcomes[1].test]


def test_a_folder_that_is_not_there_has_no_runs(tmp_path):
    assert list(find_records(tmp_path / "nothing")) == []


def test_a_checkpoint_belongs_to_one_group_in_one_order(folder):
    groups = ([A], [A, B], [B, A], [A, B, C])
    for paths in ({folder.checkpoint(group) for group in groups}, {folder.group_file(group) for group in groups}):
        assert len(paths) == 4
        assert {path.parent for path in paths} == {folder.path}


def test_what_a_killed_process_left_half_written_is_swept(folder, outcomes):
    folder.folder(A).mkdir(parents=True)
    (folder.folder(A) / ".model.safetensors.1234-abcd").write_bytes(b"half")
    write(folder, outcomes[0])
    assert tree(folder.folder(A)) == ["history.jsonl", "model.safetensors", "record.json"]


def test_json_has_no_nan(tmp_path):
    """The fault: the training loss of an epoch after the best one was written as NaN or Infinity."""
    run = quick(runs=tmp_path, splits=[0])
    (outcome,) = train(make_task(), make_settings(), replicas((0, 0)))
    rows = [{**outcome.history[0], "train_loss": value} for value in (math.nan, math.inf, 1.0)]
    run.folder.write(replace(outcome, history=rows), run.records[0])
    text = (run.folder.folder(outcome.replica) / "history.jsonl").read_text()
    read = [json.loads(line, parse_constant=lambda name: pytest.fail(name)) for line in text.splitlines()]
    assert [row.get("train_loss", "checksum") for row in read] == [None, None, 1.0, "checksum"]
    assert run.history.train_loss.isna().tolist() == [True, True, False]
