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


pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not part of this copy")


def run_toy(script, folder):
    """The lines that a benchmark prints on a toy; it must write nothing."""
    before = contents()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), "--toy"], env=environment, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert contents() == before
    assert list(folder.iterdir()) == []
    return done.stdout.splitlines()


def test_a_training_step_against_pyg(tmp_path):
    title, *rows = run_toy("step_cpu.py", tmp_path)
    assert title.startswith("step_cpu: graph a random graph, nodes 200, arcs ")
    assert [re.split(r"  +", row.strip())[0] for row in rows] == ["PyG GCNConv", "our GCN", "Gumbel-MPNN"]
    assert re.search(r"\d+\.\d\d ms   1\.000 of PyG GCNConv$", rows[0])
    assert all(re.search(r"\d+\.\d\d ms   \d+\.\d{3} of PyG GCNConv$", row) for row in rows[1:])


def test_sdrf_against_a_dense_version(tmp_path):
    *_, header, _, paper, reference, _ = run_toy("sdrf.py", tmp_path)
    columns = [name.strip() for name in header.split("|")]
    for mode, row in (("paper", paper), ("reference", reference)):
        cells = dict(zip(columns, (cell.strip() for cell in row.split("|")), strict=True))
        assert (cells["graph"], cells["mode"], cells["nodes"], cells["steps"]) == ("toy", mode, "60", "20")
        assert int(cells["times faster"].replace(",", "")) > 0


def test_mixtures_against_scikit_learn(tmp_path):
    assert any(
        re.search(r"ours \d+\.\d\d s, scikit-learn \d+\.\d\d s, \d+\.\d times", line)
        for line in run_toy("mixtures.py", tmp_path)
    )


def test_listing_runs(tmp_path):
    title, *rows = run_toy("list_runs.py", tmp_path)
    assert title == "list_runs: runs 300, settings 10"
    names = [re.split(r"  +", row.strip())[0] for row in rows]
    assert names == ["every record read", "listed, no index yet", "listed", "filtered"]


def test_the_start_of_the_command(tmp_path):
    title, *rows = run_toy("start_up.py", tmp_path)
    assert title == "start_up: graph a random graph"
    names = [re.split(r"  +", row.strip())[0] for row in rows]
    assert names == ["typer --help", "gumbel-mpnn --help", "train, one epoch"]
