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


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not part of this copy")
def test_a_training_step_against_pyg(tmp_path):
    before = contents()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(FOLDER / "step_cpu.py"), "--toy"],
        env=environment, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    title, *rows = done.stdout.splitlines()
    assert title.startswith("step_cpu: graph a random graph, nodes 200, arcs ")
    assert [re.split(r"  +", row.strip())[0] for row in rows] == ["PyG GCNConv", "gumbel-mpnn"]
    assert re.search(r"\d+\.\d\d ms   1\.000 of PyG GCNConv$", rows[0])
    assert re.search(r"\d+\.\d\d ms   \d+\.\d{3} of PyG GCNConv$", rows[1])
    assert contents() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not part of this copy")
def test_mixtures_against_scikit_learn(tmp_path):
    before = contents()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(FOLDER / "mixtures.py"), "--toy"],
        env=environment, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"ours \d+\.\d\d s, scikit-learn \d+\.\d\d s, \d+\.\d times", done.stdout)
    assert contents() == before
