"""Where runs are trained: addresses, options, and processes of this machine."""

import os
import threading
import time
from types import SimpleNamespace

import pytest
import torch

from gumbel_mpnn import Machines, UserError, fit
from gumbel_mpnn.runs import AutoSpec, RunSpec, machines
from gumbel_mpnn.runs.machines import default_workers, run_at_once
from gumbel_mpnn.util import locks
from helpers import small_data
from quick_fit import TABLES, contents, quick

pytestmark = pytest.mark.filterwarnings("ignore::gumbel_mpnn.util.errors.DataWarning")


@pytest.mark.parametrize(
    ("on", "address"),
    [
        ("ray", None),
        ("ray:auto", "auto"),
        ("ray:head:6379", "head:6379"),
        ("ray://head:10001", "ray://head:10001"),
    ],
)
def test_addresses(on, address):
    assert Machines.of(on).address == address
    assert not Machines.of(on).is_local


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on": "ray:"}, "on must be local, ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT, but is 'ray:'"),
        ({"on": "rays"}, "but is 'rays'"),
        ({"on": "dask://head"}, "but is 'dask://head'"),
        ({"on": "ray", "workers": 2}, "Ray decides how many tasks run at once"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"on": "ray", "cpus": 0}, "cpus must be above 0"),
        ({"on": "ray", "cpus": -1}, "cpus must be a number that is not negative"),
        ({"on": "ray", "cpus": 1.5}, "cpus above 1 must be a whole number, but is 1.5"),
        ({"on": "ray", "gpus": float("nan")}, "gpus must be a number"),
        ({"on": "ray", "retries": -1}, "retries must be at least 0"),
        ({"on": "ray", "store": "disk"}, "store must be auto, shared or driver, but is 'disk'"),
    ],
)
def test_what_is_not_valid(options, message):
    with pytest.raises(UserError) as told:
        Machines(**options)
    assert message in str(told.value)


def test_several_processes_equal_one(tmp_path, monkeypatch):
    """This process begins when the other one has finished a run."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    shared = tmp_path / "shared"

    class Patient:
        def begin(self, settings, replicas, finished, groups, bytes_needed):
            while not list(shared.rglob("record.json")):
                time.sleep(0.02)

        def __getattr__(self, name):
            return lambda *_: None

    how = {"seeds": 4, "settings": TABLES, "device": "cpu"}
    fit(small_data(), "gcn", **how, runs=shared, on=Machines(workers=2), monitor=Patient())
    quick(seeds=4, runs=tmp_path / "alone")
    assert contents(shared) == contents(tmp_path / "alone")


def test_they_need_a_folder():
    with pytest.raises(UserError, match="give it a name with runs="):
        fit(small_data(), "gcn", on=Machines(workers=2))


def test_they_need_a_transform_that_can_be_sent(tmp_path, monkeypatch, no_training):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    no_training()
    with pytest.raises(UserError, match=r"a transform that can be sent to other processes \(.+\): define it as a"):
        fit(small_data(), "gcn", runs=tmp_path, on=Machines(workers=2), transform=lambda data: data)


def test_the_first_error_stops_what_a_crew_does():
    """The first job ends only when the crew is stopped, because of the second one."""
    stopped, crew = threading.Event(), SimpleNamespace(slots=2)
    crew.stop = stopped.set

    def work(job):
        if job == 1:
            raise UserError("broken")
        assert stopped.wait(timeout=20)

    with pytest.raises(UserError, match="broken"):
        run_at_once(work, [0, 1], crew)


def test_jobs_that_raise_an_ignored_error_are_left_out():
    crew, ended = SimpleNamespace(slots=3), threading.Event()

    def work(job):
        if job == 1:
            raise UserError("ignored")
        if job == 0:
            ended.wait(timeout=20)
        else:
            ended.set()
        return -job

    assert list(run_at_once(work, [0, 1, 2], crew, (UserError,)).items()) == [(0, 0), (2, -2)]


def test_they_need_locks(monkeypatch, tmp_path):
    monkeypatch.setattr(locks, "fcntl", None)
    with pytest.raises(UserError, match="use one worker"):
        fit(small_data(), "gcn", runs=tmp_path, on=Machines(workers=2))


def test_groups_are_no_larger_than_a_part(tmp_path, trained):
    quick(seeds=5, runs=tmp_path, parts=3)
    assert sorted(map(len, trained)) == [3, 3, 4]


class TestDefaultWorkers:
    """How many processes train if the user names no number."""

    @pytest.fixture(autouse=True)
    def _four_threads(self, monkeypatch):
        monkeypatch.setattr(torch, "get_num_threads", lambda: 4)

    def test_one_for_each_thread_for_auto_on_a_cpu(self):
        assert default_workers(AutoSpec.of(small_data()), "cpu") == 4

    def test_no_more_than_half_of_the_rungs(self, monkeypatch):
        monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
        spec = AutoSpec.of(small_data())
        assert default_workers(spec, "cpu") == len(spec.rungs) // 2

    def test_one_for_other_models(self):
        assert default_workers(RunSpec.of(small_data(), "gcn"), "cpu") == 1

    def test_one_for_large_graphs(self, monkeypatch):
        monkeypatch.setattr(machines, "MOST_EDGES", 10)
        assert default_workers(AutoSpec.of(small_data()), "cpu") == 1
        assert default_workers(AutoSpec.of("cora"), "cpu") == 1

    def test_one_where_processes_cannot_share(self, monkeypatch):
        monkeypatch.setattr(machines, "can_lock", lambda: False)
        assert default_workers(AutoSpec.of(small_data()), "cpu") == 1
