"""Tests of GPU kernels on the CPU, in Triton's interpreter."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest


def run_interpreted(script: Path) -> None:
    """Run the tests in `script`, all of which must pass and none be skipped.

    In a process of its own: whether Triton interprets is settled when it is imported.
    """
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(script)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
