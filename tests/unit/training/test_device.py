"""How many replicas train at once, the upper bound of what one of them takes, and the memory that is free."""

import os
import sys

import pytest
import torch

from gumbel_mpnn.nn import GCN
from gumbel_mpnn.training import build
from gumbel_mpnn.training.build import build_model, outline_model
from gumbel_mpnn.util.errors import TooLargeError
from helpers import make_settings, make_task, replicas
from measured_memory import CASES, bytes_of_one_more, peak_bytes_on_cpu, settings_for, task_for

MOST_ABOVE = 7
ONE = replicas((0, 0))


@pytest.mark.parametrize(("model", "options", "rewiring", "shape"), CASES, ids=str)
def test_the_upper_bound_is_above_what_a_replica_takes(model, options, rewiring, shape, tmp_path):
    settings = settings_for(model, options, rewiring)
    make_anew = task_for(settings, shape)
    measured = bytes_of_one_more(lambda count: peak_bytes_on_cpu(make_anew(), settings, count, tmp_path))
    assert 0 < measured <= build.plan_groups(settings, make_anew())[1] <= MOST_ABOVE * measured


@pytest.mark.parametrize(("replicas", "expected"), [(0, 1), (1.5, 1), (4.5, 4)])
def test_a_group_is_what_fits_and_at_least_one(replicas, expected):
    each = build.plan_groups(make_settings(), make_task())[1]
    assert build.plan_groups(make_settings(), make_task(), int(replicas * each / build.SHARE_OF_FREE))[0] == expected


def test_a_cpus_groups_have_no_large_hidden_layer(monkeypatch):
    monkeypatch.setattr(build, "LARGE_ARRAY", 3 * 4 * make_task().graph.num_nodes * 8)
    assert build.plan_groups(make_settings(), make_task())[0] == 3


def test_a_run_that_is_much_too_large_is_refused():
    for width in (2**18, 2**20):
        with pytest.raises(TooLargeError, match=r"^one run of gcn on toy does not fit .* of cpu: try a smaller"):
            build.plan_groups(make_settings(options={"hidden_channels": width, "num_layers": 9}), make_task())


def test_planning_builds_no_model_and_draws_nothing():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    outline, real = outline_model(make_settings(), make_task()), build_model(make_settings(), make_task(), ONE)
    assert torch.equal(torch.rand(1), expected)
    assert {value.device.type for value in outline.parameters()} == {"meta"}
    assert [value.shape for value in outline.parameters()] == [value.shape for value in real.parameters()]


def test_a_model_that_needs_real_tensors_is_built(monkeypatch):
    make = GCN.make_conv
    # Reading a number fails on the meta device.
    monkeypatch.setattr(GCN, "make_conv", lambda *given: float(torch.ones(())) and make(*given))
    assert build.plan_groups(make_settings(), make_task())[1] > 0


CPU = torch.device("cpu")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 1000 KiB left, and a function that limits this process to some bytes."""
    monkeypatch.setattr(build, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(build, "CGROUP", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal:  4000 kB\nMemAvailable:   1000 kB\nHugePages_Total:   0\n")

    def limited(limit, used, droppable):
        for name, value in (("max", limit), ("current", used), ("stat", f"anon 5\ninactive_file {droppable}")):
            (tmp_path / f"memory.{name}").write_text(f"{value}\n")

    return limited


@pytest.mark.parametrize(
    ("limit", "expected"), [(None, 1000 * 1024), ("max", 1000 * 1024), (2**40, 1000 * 1024), (5000, 5000 - 4000 + 1500)]
)
def test_the_limit_of_a_container_counts(machine, limit, expected):
    if limit is not None:
        machine(limit, 4000, 1500)
    assert build.available_bytes(CPU) == expected


def test_where_nobody_says_it_is_half_of_all(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "MEMINFO", tmp_path / "none")
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 6, "SC_PAGE_SIZE": 4096}.get)
    assert build.available_bytes(CPU) == 3 * 4096
    monkeypatch.delattr(os, "sysconf")  # as on Windows
    assert build.available_bytes(CPU) == sys.maxsize // 2
