"""Several processes on one store, some of them killed: every run is there once, with the numbers it should have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shared_store import RUNS

from quick_fit import contents

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files cannot be locked here")


def test_four_workers_killed_twenty_times(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    program = Path(__file__).with_name("shared_store.py")
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path), "0"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    whole, shared = contents(tmp_path / "whole/runs"), contents(tmp_path / "shared/runs")
    assert sum(name.endswith("record.json") for name in whole) == RUNS == 200
    assert shared == whole
    for store in ("whole", "shared"):
        written = (tmp_path / store / "written").read_text().split()
        assert len(set(written)) == len(written)
