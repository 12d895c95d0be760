"""The benchmarks run, on a toy."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def contents():
    return {path: path.read_bytes() for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def run_toy(script, folder):
    """The lines that a script prints; nothing may be written."""
    before = contents()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), "--toy"],
        env=environment, cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert contents() == before
    assert list(folder.iterdir()) == []
    return done.stdout.splitlines()


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not part of this copy")
def test_a_training_step_against_pyg(tmp_path):
    title, *rows = run_toy("step_cpu.py", tmp_path)
    assert title.startswith("step_cpu: graph a random graph, nodes 200, arcs ")
    assert [re.split(r"  +", row.strip())[0] for row in rows] == ["PyG GCNConv", "gumbel-mpnn"]
    assert re.search(r"\d+\.\d\d ms   1\.000 of PyG GCNConv$", rows[0])
    assert re.search(r"\d+\.\d\d ms   \d+\.\d{3} of PyG GCNConv$", rows[1])


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not part of this copy")
def test_listing_runs(tmp_path):
    title, *rows = run_toy("list_runs.py", tmp_path)
    assert title == "list_runs: runs 300, settings 10"
    names = [re.split(r"  +", row.strip())[0] for row in rows]
    assert names == ["every record read", "listed, no index yet", "listed", "filtered"]
