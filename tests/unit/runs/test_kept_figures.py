"""What is made from trained models, kept so that the models may go."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gumbel_mpnn.data import specs
from gumbel_mpnn.paper import Job, Request, run_jobs
from gumbel_mpnn.paper.work import find_jobs
from gumbel_mpnn.runs import BusyError
from helpers import generated, small_data
from quick_fit import quick

JOB = Job("small", "gcn", preset=None)


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """How to do and to find a job whose experiment takes something from models."""
    monkeypatch.setitem(specs, "small", generated("small", small_data))
    experiment = SimpleNamespace(name="try", from_models="taken", needed_from=lambda _: "taken", searches=False)
    changes = ("train.epochs=2", "model.hidden_channels=4")
    request = Request(seeds=1, splits=(0,), runs=tmp_path, overrides=changes, device="cpu")
    return (
        lambda: run_jobs(experiment, [JOB], request)[JOB],
        lambda: find_jobs(experiment, [JOB], request).get(JOB),
    )


def delete_models(run):
    for folder in run.folders:
        (Path(folder) / "model.safetensors").unlink()


def test_it_is_made_once(tmp_path):
    run, calls = quick(splits=[0], runs=tmp_path), []

    def make():
        calls.append(1)
        return {"pairs": (1, 2), "mean": 0.1 + 0.2}

    assert not run.has_stored("mine")
    first = run.stored("mine", make)
    assert run.has_stored("mine")
    assert run.stored("mine", make) == first == {"pairs": [1, 2], "mean": 0.1 + 0.2}
    assert quick(splits=[0], runs=tmp_path).stored("mine", make) == first
    assert calls == [1]
    run.stored("another", make)
    assert calls == [1, 1]


def test_it_is_of_these_very_records(tmp_path):
    both = quick(splits=[0, 1], runs=tmp_path)
    both.stored("mine", lambda: "both")
    assert quick(splits=[0], runs=tmp_path).stored("mine", lambda: "one") == "one"
    done_again = replace(both.records[0], seconds=both.records[0].seconds + 1)
    assert not replace(both, records=(done_again, *both.records[1:])).has_stored("mine")
    assert both.has_stored("mine")


def test_what_is_damaged_is_made_again(tmp_path):
    run = quick(splits=[0], runs=tmp_path)
    run.stored("mine", lambda: [1])
    next(run.folder.path.glob("figures-mine-*.json")).write_text("[1")
    assert not run.has_stored("mine")
    assert run.stored("mine", lambda: [2]) == [2]
    assert run.stored("mine", lambda: [3]) == [2]


def test_a_store_that_cannot_be_written_to(tmp_path, monkeypatch):
    run = quick(splits=[0], runs=tmp_path)

    def refuse(handle):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "fsync", refuse)
    assert run.stored("mine", lambda: [2]) == [2]
    assert not run.has_stored("mine")


def test_models_may_go_once_all_was_taken_from_them(jobs):
    do, find = jobs
    run = do()
    run.stored("taken", lambda: {"test": run.test.mean})
    delete_models(run)
    assert find().records == do().records == run.records
    assert not list(run.folder.path.rglob("model.safetensors"))


def test_runs_are_done_again_where_nothing_was_taken(jobs):
    do, find = jobs
    run = do()
    run.stored("something else", lambda: 1)
    assert find() is not None
    delete_models(run)
    assert find() is None
    assert do().test == run.test
    assert list(run.folder.path.rglob("model.safetensors"))


MEASURES = """
import sys, time
from pathlib import Path
import gumbel_mpnn as gm

def make():
    with open("made", "a") as file:
        file.write("once\\n")
    while not Path("go").exists():
        time.sleep(0.02)
    return "theirs"

gm.load_run(sys.argv[1]).stored("mine", make)
"""


@pytest.fixture
def measuring(tmp_path, monkeypatch):
    """A run from which another process is computing something, and this process."""
    monkeypatch.chdir(tmp_path)
    run = quick(splits=[0], runs=tmp_path / "runs")
    other = subprocess.Popen([sys.executable, "-c", MEASURES, str(run.folder.path)])
    while not Path("made").exists():
        assert other.poll() is None
        time.sleep(0.02)
    yield run, other
    other.kill()
    other.wait()


def make_here():
    with Path("made").open("a") as file:
        file.write("again\n")
    return "ours"


def test_what_another_process_is_making_is_waited_for(measuring):
    run, other = measuring
    with pytest.raises(BusyError, match="another process is computing mine"):
        run.stored("mine", make_here, wait=False)
    assert run.stored("something else", lambda: "ours", wait=False) == "ours"
    threading.Timer(0.2, Path("go").touch).start()
    assert run.stored("mine", make_here) == "theirs"
    assert other.wait() == 0
    assert Path("made").read_text() == "once\n"
    assert not list(run.folder.path.glob(".figures*"))


def test_what_a_process_was_making_when_it_died_is_made_again(measuring):
    run, other = measuring
    other.kill()
    other.wait()
    assert run.stored("mine", make_here, wait=False) == "ours"
    assert Path("made").read_text() == "once\nagain\n"
    assert not list(run.folder.path.glob(".figures*"))


def test_what_could_not_be_made_is_not_in_the_way(tmp_path):
    run = quick(splits=[0], runs=tmp_path)
    with pytest.raises(ZeroDivisionError):
        run.stored("mine", lambda: 1 / 0)
    assert run.stored("mine", lambda: [1], wait=False) == [1]
