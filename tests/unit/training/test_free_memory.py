import os
import sys

import pytest
import torch

from gumbel_mpnn.training import device as free_memory
from gumbel_mpnn.training.device import available_bytes

CPU = torch.device("cpu")
FREE = 1000 * 1024
V1 = {"limit": "memory.limit_in_bytes", "usage": "memory.usage_in_bytes", "droppable": "total_inactive_file"}
V2 = {"limit": "memory.max", "usage": "memory.current", "droppable": "inactive_file"}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A function that says which cgroups this process is in; the machine has 1000 KiB left."""
    monkeypatch.setattr(free_memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(free_memory, "CGROUPS", tmp_path / "cgroup")
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text("MemTotal:  4000 kB\nMemAvailable:   1000 kB\nHugePages_Total:   0\n")

    def in_cgroups(*lines):
        (tmp_path / "proc" / "self" / "cgroup").write_text("".join(f"{line}\n" for line in lines))

    return in_cgroups


@pytest.fixture
def cgroup(tmp_path):
    """A function that makes a cgroup with a limit."""

    def make(path, limit, usage, droppable=0, names=V2):
        folder = tmp_path / "cgroup" / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / names["limit"]).write_text(f"{limit}\n")
        (folder / names["usage"]).write_text(f"{usage}\n")
        (folder / "memory.stat").write_text(f"anon 5\n{names['droppable']} {droppable}\n")

    return make


def test_this_machine_has_memory():
    assert available_bytes(CPU) > 2**20


def test_without_limits_it_is_what_the_machine_has(machine, cgroup):
    machine("0::/user/session")
    cgroup("user/session", "max", 10)
    cgroup("user", "max", 10)
    assert available_bytes(CPU) == FREE


def test_where_nobody_says_it_is_half_of_all(tmp_path, monkeypatch):
    monkeypatch.setattr(free_memory, "PROC", tmp_path)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 6, "SC_PAGE_SIZE": 4096}.get)
    assert available_bytes(CPU) == 3 * 4096


def test_where_the_size_of_memory_is_not_known_everything_fits(tmp_path, monkeypatch):
    """As on Windows; training that runs out of memory goes on with fewer runs at once."""
    monkeypatch.setattr(free_memory, "PROC", tmp_path)
    monkeypatch.delattr(os, "sysconf")
    assert available_bytes(CPU) == sys.maxsize // 2


@pytest.mark.parametrize("where", ["", "batch", "batch/job"])
def test_the_limit_may_be_of_any_cgroup_around(machine, cgroup, where):
    machine("0::/batch/job")
    cgroup("batch/job", "max", 10)
    cgroup(where, 5000, 2000)
    assert available_bytes(CPU) == 3000


def test_the_tightest_limit_counts(machine, cgroup):
    machine("0::/batch/job")
    cgroup("batch", 9000, 8500)
    cgroup("batch/job", 5000, 2000)
    assert available_bytes(CPU) == 500


def test_pages_of_files_can_be_dropped(machine, cgroup):
    machine("0::/")
    cgroup("", 5000, 4000, droppable=1500)
    assert available_bytes(CPU) == 2500


@pytest.mark.parametrize(("usage", "left"), [(6000, 0), (0, 5000)])
def test_what_is_left_is_neither_below_nothing_nor_above_the_limit(machine, cgroup, usage, left):
    machine("0::/")
    cgroup("", 5000, usage, droppable=100 if usage == 0 else 0)
    assert available_bytes(CPU) == left


@pytest.mark.parametrize("inside", [True, False], ids=["a job of the machine", "a container that sees its own root"])
def test_version_1(machine, cgroup, inside):
    machine("7:cpu,cpuacct:/docker/abc", "5:memory:/docker/abc", "1:name=systemd:/docker/abc", "0::/docker/abc")
    cgroup("memory/docker/abc" if inside else "memory", 5000, 2000, droppable=200, names=V1)
    assert available_bytes(CPU) == 3200


def test_a_limit_of_more_than_there_is_changes_nothing(machine, cgroup):
    machine("5:memory:/")
    cgroup("memory", 2**63 - 4096, 2000, names=V1)
    assert available_bytes(CPU) == FREE
