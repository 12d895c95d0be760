"""A few of the faults of `make faults`: kills, bad disks and failed allocations in every command."""

import os
from pathlib import Path

import pytest
from command_faults import COMMANDS
from long_form import report

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here"),
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads cannot be counted before a fork"),
]


def test_every_command_meets_every_fault(tmp_path):
    found = report("command_faults.py", tmp_path, "--points", 2)
    assert found["problems"] == []
    assert list(found["commands"]) == [command.name for command in COMMANDS]
    for command in COMMANDS:
        counts = found["commands"][command.name]
        assert counts["operations"] > 10
        assert (counts["kill"], counts["EIO"], counts["ENOSPC"], counts["EFBIG"]) == (2, 2, 2, 2)
    assert found["commands"]["train"]["memory"] == 2


def test_four_writers_that_are_killed(tmp_path):
    found = report("four_writers.py", tmp_path, 8)
    assert found["problems"] == []
    assert found["kills"] >= 8
