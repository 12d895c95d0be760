"""A few of the faults of `make faults`: kills, bad disks and failed allocations in every command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_faults import COMMANDS

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here"),
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads cannot be counted before a fork"),
]
HERE = Path(__file__).parent


def report(program, *arguments):
    """What a program of this folder prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]), "OMP_NUM_THREADS": "1"}
    # pandas imports pyarrow, if it is there, whose allocator would start a thread, so that nothing could be forked.
    environment["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
    done = subprocess.run(
        [sys.executable, str(HERE / program), *map(str, arguments)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


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
