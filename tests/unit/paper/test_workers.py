"""Processes that train beside the command: real ones, on a data set that is generated."""

import multiprocessing
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gumbel_mpnn._util import locks
from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.data import specs
from gumbel_mpnn.paper import Request, reproduce, reproduction
from gumbel_mpnn.paper.reproduction import start_workers
from gumbel_mpnn.paper.tables import requested_experiment, requested_jobs
from gumbel_mpnn.training.trainer import Trainer
from helpers import generated, small_data

OVERRIDES = ("train.epochs=1", "model.hidden_channels=4")
ASKED = {
    "only": ("bottleneck-10", "gcn", "gumbel-mpnn"),
    "splits": (0,),
    "seeds": 1,
    "overrides": OVERRIDES,
    "device": "cpu",
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def records():
    return sorted(Path("runs").rglob("record.json"))


def jobs_of(request):
    return requested_jobs(requested_experiment("bottleneck", request), request)


@pytest.fixture
def in_this_process():
    """Call a worker's work here, without what is done to its process."""
    return reproduction.assist


def test_they_train_what_is_asked_for_and_end_with_the_block(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    request, threads = Request(**ASKED, workers=2), torch.get_num_threads()
    wanted = len(jobs_of(request))
    with start_workers(["bottleneck"], request):
        (worker,) = multiprocessing.active_children()
        while worker.is_alive() and len(records()) < wanted:
            time.sleep(0.05)
        assert len(records()) == wanted > 0
        assert torch.get_num_threads() == 1
    assert not worker.is_alive()
    assert torch.get_num_threads() == threads


def test_they_end_where_the_command_is_told_to(monkeypatch):
    """As by `timeout` or a scheduler of jobs, which send SIGTERM: nobody goes on in vain."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    before, children = signal.getsignal(signal.SIGTERM), []

    def command():
        with start_workers(["bottleneck"], Request(**ASKED, workers=2)):
            children.extend(multiprocessing.active_children())
            os.kill(os.getpid(), signal.SIGTERM)
            pytest.fail("goes on")

    with pytest.raises(KeyboardInterrupt):
        command()
    assert len(children) == 1
    assert not children[0].is_alive()
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_same_rows_as_alone(in_this_process, monkeypatch):
    request = Request(**ASKED, workers=3)
    in_this_process(2, ["bottleneck"], request)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", lambda _: pytest.fail("trained again"))
        helped = reproduce("bottleneck", **ASKED)
    alone = reproduce("bottleneck", **ASKED, runs="alone")
    assert helped.rows == alone.rows


def test_they_take_from_models_what_the_table_needs(in_this_process, monkeypatch, no_training):
    monkeypatch.setitem(specs, "cora", generated("cora", small_data))
    request = Request(**{**ASKED, "only": ("cora",)}, workers=2)
    in_this_process(1, ["degree"], request)
    for name in ("model.safetensors", "graph.npz"):
        for file in Path("runs").rglob(name):
            file.unlink()
    no_training()
    rows = [row for row in reproduce("degree", **{**ASKED, "only": ["cora"]}).rows if row["graph"] == "learned"]
    assert len(rows) == 4
    for row in rows:
        assert row["n"] == 1
        assert row["degree_mean"] >= 0
        assert row["expected"] > 0


def test_they_begin_at_different_jobs(in_this_process, monkeypatch):
    request, done = Request(**ASKED, workers=2), []
    monkeypatch.setattr(reproduction, "run_jobs", lambda _, jobs, *__, **___: done.extend(jobs))
    jobs = jobs_of(request)
    in_this_process(1, ["bottleneck"], request)
    half = len(jobs) // 2
    assert half > 0
    assert done == jobs[half:] + jobs[:half]


def test_a_job_that_fails_does_not_end_a_worker(in_this_process, monkeypatch):
    tried = []

    def fail(_, jobs, *__, **___):
        tried.extend(jobs)
        raise RuntimeError

    monkeypatch.setattr(reproduction, "run_jobs", fail)
    request = Request(**ASKED, workers=2)
    in_this_process(1, ["bottleneck"], request)
    assert len(tried) == len(jobs_of(request))


def test_they_end_with_the_one_who_started_them(in_this_process, monkeypatch):
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: SimpleNamespace(is_alive=lambda: False))
    in_this_process(1, ["bottleneck"], Request(**ASKED, workers=2))
    assert records() == []


def test_what_is_not_there_is_told_before_anybody_starts(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: pytest.fail("started"))
    request = Request(**{**ASKED, "only": ("nowhere",)}, workers=2)
    with pytest.raises(UserError, match="nowhere"), start_workers(["bottleneck"], request):
        pass


@pytest.mark.parametrize(("cores", "workers"), [(64, 3), (1, 1)])
def test_never_more_than_jobs_or_cores(monkeypatch, cores, workers):
    started = []

    class Worker(SimpleNamespace):
        pid = 1
        start = terminate = join = lambda _: None

    def start(**arguments):
        started.append(arguments["args"][2])
        return Worker()

    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: SimpleNamespace(Process=start))
    monkeypatch.setattr("gumbel_mpnn.runs.workers.share_cores", lambda _: None)
    with start_workers(["bottleneck"], Request(**ASKED, workers=500)) as request:
        assert started == [workers] * (workers - 1)
        assert request.workers == workers


def test_they_need_locks(monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    with pytest.raises(UserError, match="use one worker"), start_workers([], Request(**ASKED, workers=2)):
        pass


def test_one_worker_is_this_process():
    with start_workers(["bottleneck"], Request(**ASKED)):
        assert multiprocessing.active_children() == []
