"""Run folders: where they lie, what is in them, that the record comes last, and who may train what."""

import json
import math
import os
import signal
import threading
from dataclasses import replace
from itertools import chain

import pytest
import torch

from gumbel_mpnn.runs.session import OpenJob, Session
from gumbel_mpnn.runs.spec import Job
from gumbel_mpnn.runs.store import Record, SettingFolder, find_records, read_record
from gumbel_mpnn.training import train
from gumbel_mpnn.util.errors import DataError
from gumbel_mpnn.util.files import save_tensors
from helpers import fresh_processes, make_settings, make_task, replicas, small_data
from quick_fit import quick

SETTINGS = make_settings(epochs=3)
A, B, C, D = ALL = replicas((0, 0), (0, 1), (1, 0), (1, 1))
JOB = Job(SETTINGS, small_data(), "abc", ALL)


@pytest.fixture(scope="module")
def outcomes():
    return train(make_task(), SETTINGS, ALL)


@pytest.fixture
def folder(tmp_path):
    return SettingFolder.of(tmp_path, "try", JOB)


def recorded(outcome):
    return Record.of(outcome, JOB, "accuracy", torch.device("cpu"))


def write(folder, outcome):
    folder.write(outcome, recorded(outcome), make_task().graph)


def tree(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


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


def test_all_finished_runs_are_found_in_order(tmp_path, folder, outcomes):
    other = SettingFolder.of(tmp_path, "another", JOB)
    write(folder, outcomes[2])
    write(folder, outcomes[0])
    write(other, outcomes[2])
    (folder.folder(D)).mkdir()
    found = list(find_records(tmp_path))
    assert [record.replica for record in found] == [C, A, C]
    assert [record.test for record in found] == [outcomes[2].test, outcomes[0].test, outcomes[2].test]


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
    run.folder.write(replace(outcome, history=rows), run.records[0], make_task().graph)
    text = (run.folder.folder(outcome.replica) / "history.jsonl").read_text()
    read = [json.loads(line, parse_constant=lambda name: pytest.fail(name)) for line in text.splitlines()]
    assert [row.get("train_loss", "checksum") for row in read] == [None, None, 1.0, "checksum"]
    assert run.history.train_loss.isna().tolist() == [True, True, False]


def checkpoint(folder, *group):
    save_tensors(folder.checkpoint(group), {}, {"replicas": [str(replica) for replica in group]})


def left(folder):
    """Files besides those of runs, and locks."""
    return [path.name for path in folder.path.iterdir() if not path.name.startswith("split")]


def opened(folder, wanted):
    """The runs of the folder that a session wants."""
    return OpenJob(0, replace(JOB, replicas=wanted), Session(folder.path.parents[3], "try"))


def hold_all(folder, told):
    claims = opened(folder, ALL)
    told.send(len(claims.take(4)))
    signal.pause()


class TestClaims:
    @pytest.fixture
    def finish(self, folder, outcomes):
        def write_all(*chosen):
            for outcome in outcomes:
                if outcome.replica in chosen:
                    write(folder, outcome)

        return write_all

    @pytest.mark.parametrize(("most", "sizes"), [(1, [1, 1, 1, 1]), (2, [2, 2]), (3, [2, 2]), (4, [4]), (100, [4])])
    def test_few_groups_of_even_size(self, folder, most, sizes):
        with opened(folder, ALL) as claims:
            groups = [claims.take(most) for _ in sizes]
            assert list(map(len, groups)) == sizes
            assert [*chain(*groups)] == ALL
            assert claims.take(most) == []
        assert left(folder) == []

    def test_what_is_finished_is_not_claimed(self, folder, finish):
        finish(B)
        with opened(folder, ALL) as claims:
            assert claims.missing == [A, C, D]
            assert claims.take(4) == [A, C, D]

    def test_what_another_one_has_is_left_alone(self, folder):
        with opened(folder, [A, B]) as first, opened(folder, ALL) as second:
            assert first.take(2) == [A, B]
            assert second.take(4) == [C, D]
            first.release([A])
            assert second.take(4) == [A]

    def test_what_was_finished_meanwhile_is_not_claimed(self, folder, finish):
        with opened(folder, ALL) as claims:
            claims.free = lambda: ALL  # looked at before
            finish(A)
            assert claims.take(4) == [B, C, D]

    def test_a_group_with_a_checkpoint_comes_first_and_whole(self, folder, finish):
        checkpoint(folder, D, B, C)
        finish(B)
        with opened(folder, ALL) as claims:
            assert claims.take(1) == [D, B, C]
            assert claims.take(4) == [A]

    def test_unless_others_have_a_part_of_it_or_nobody_wants_it(self, folder):
        checkpoint(folder, A, B)
        with opened(folder, [A]) as other, opened(folder, ALL) as claims:
            assert other.take(1) == [A]
            assert claims.take(4) == [B, C, D]
        assert folder.checkpoint([A, B]).exists()

    @pytest.mark.parametrize("content", [b"", b"no tensors", b"\x08\0\0\0\0\0\0\0{}      "])
    def test_a_file_that_is_no_checkpoint_is_nobodys(self, folder, content):
        folder.path.mkdir(parents=True)
        folder.checkpoint([A, B]).write_bytes(content)
        with opened(folder, ALL) as claims:
            assert claims.take(4) == ALL

    def test_forgetting_a_group_leaves_nothing(self, folder, finish):
        with opened(folder, ALL) as claims:
            claims.take(4)
            checkpoint(folder, *ALL)
            (folder.path / f".{folder.checkpoint(ALL).name}.99-abc").write_bytes(b"half")
            finish(*ALL)
            claims.forget(ALL)
            assert claims.take(4) == []
        assert left(folder) == []

    def test_waiting_ends_with_the_work(self, folder, finish):
        with opened(folder, ALL) as claims:
            claims.take(4)
            waiting = threading.Thread(target=opened(folder, ALL).wait)
            waiting.start()
            waiting.join(0.1)
            assert waiting.is_alive()
            finish(*ALL)
            claims.forget(ALL)
        waiting.join(60)
        assert not waiting.is_alive()

    def test_a_killed_process_holds_nothing(self, folder):
        context = fresh_processes()
        ours, theirs = context.Pipe()
        child = context.Process(target=hold_all, args=(folder, theirs), daemon=True)
        child.start()
        assert ours.recv() == 4
        with opened(folder, ALL) as claims:
            assert claims.take(4) == []
            child.kill()
            claims.wait()
            child.join()
            assert claims.take(4) == ALL
