"""Several real processes, started by torchrun, train on the parts of one graph."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from gumbel_mpnn.cli import app
from gumbel_mpnn.training.checkpoint import load_tensors
from helpers import small_data

OPTIONS = {
    "model.hidden_channels": 8,
    "model.dropout": 0.5,
    "rewiring.scorer": '"class-space"',
    "rewiring.decoys": 0.5,
    "train.epochs": 60,
    "train.patience": 0,
    "train.lr": 0.01,
}
PATIENCE_SECONDS = 300
COMMAND = "from gumbel_mpnn.cli import main\nmain()\n"
# The command with early checkpoints, slowed down so that it does not end before the signal comes.
SLOW_COMMAND = """
import os, time
from pathlib import Path
from gumbel_mpnn.cli import set_up
set_up()
from gumbel_mpnn.training import loop
from gumbel_mpnn.training.trainer import Trainer
Path(__file__).with_name("pid-" + os.environ["RANK"]).write_text(str(os.getpid()))
loop.CHECKPOINT_SECONDS, loop.CHECKPOINT_SHARE = 0.3, float("inf")
step = Trainer.step
Trainer.step = lambda self: (time.sleep(0.1), step(self))
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A graph in an npz file."""
    data = small_data(nodes=80, features=8)
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    arrays = {f"{part}_masks": data[f"{part}_mask"].T.numpy() for part in ("train", "val", "test")}
    arrays |= {"node_features": data.x.numpy(), "node_labels": data.y.numpy(), "edges": data.edge_index.T.numpy()}
    np.savez(path, **arrays)
    return path


def arguments(folder, graph, partitions=4):
    sets = [word for name, value in OPTIONS.items() for word in ("--set", f"{name}={value}")]
    what = ["train", "--graph", str(graph), "--model", "gumbel-mpnn", "--partitions", str(partitions), *sets]
    return [*what, "--runs", str(folder / "runs"), "--device", "cpu", "--format", "json"]


def start(folder, graph, code=COMMAND):
    """The command in two processes, with its runs in `folder`."""
    script = folder / "command.py"
    script.write_text(code)
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", *launcher, str(script), *arguments(folder, graph)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def finished(process):
    try:
        return process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def curves(folder):
    """Losses and validation of every run, [runs, epochs, 3]."""
    files = sorted(folder.rglob("history.jsonl"))
    rows = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    return torch.tensor([[[row[name] for name in ("train_loss", "val", "val_loss")] for row in run if "epoch" in row]
                         for run in rows])  # fmt: skip


@pytest.fixture(scope="module")
def whole(graph, tmp_path_factory):
    """What two undisturbed processes end with: their folder and what they print."""
    folder = tmp_path_factory.mktemp("whole")
    process = start(folder, graph)
    stdout, stderr = finished(process)
    assert process.returncode == 0, stderr
    return folder, stdout, stderr


def test_two_processes_have_the_loss_curve_of_one(whole, graph, tmp_path):
    folder, stdout, stderr = whole
    assert json.loads(stdout)["n"] == 2  # printed once
    assert stderr.count("gumbel-mpnn on graph: 2 runs") == 1
    assert stderr.count("runs are in") == 1
    alone = CliRunner().invoke(app, arguments(tmp_path, graph))
    assert alone.exit_code == 0, alone.stderr
    one, two = curves(tmp_path), curves(folder)
    assert one.shape == (2, 60, 3)
    torch.testing.assert_close(two, one, rtol=1e-3, atol=1e-4)
    assert one[:, -1, 0].max() < one[:, 0, 0].min()  # it has learned


def epoch_of(folder):
    """The epoch of the checkpoint; 0 if there is none."""
    found = list(folder.rglob("checkpoint-*.safetensors"))
    return load_tensors(found[0])[1]["epoch"] if found else 0


def check_killed(lost, folder, graph):
    """Kill one process after the next checkpoint; the others end with a sentence, and the checkpoint stays."""
    before = epoch_of(folder)
    process = start(folder, graph, code=SLOW_COMMAND + COMMAND)
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while epoch_of(folder) <= before:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline, "no checkpoint came"
            time.sleep(0.01)
        os.kill(int((folder / f"pid-{lost}").read_text()), signal.SIGKILL)
        began = time.monotonic()
    finally:
        stdout, stderr = finished(process)
    assert time.monotonic() - began < 60
    assert process.returncode != 0
    assert stdout == ""
    assert "error: another process of this job has ended" in stderr
    assert not list(folder.rglob("record.json"))
    assert before < epoch_of(folder) < OPTIONS["train.epochs"]


def test_a_killed_process_ends_the_job_and_the_checkpoint_goes_on(whole, graph, tmp_path):
    for lost in (0, 1):
        check_killed(lost, tmp_path, graph)
    again = start(tmp_path, graph)
    _, stderr = finished(again)
    assert again.returncode == 0, stderr
    assert "continuing at epoch" in stderr
    assert torch.equal(curves(tmp_path), curves(whole[0]))
    assert not list(tmp_path.rglob("checkpoint-*"))


@pytest.mark.parametrize("rank", [0, 1])
def test_more_processes_than_parts(graph, tmp_path, monkeypatch, rank):
    """Each process ends, and the first one says why."""
    launched = {"TORCHELASTIC_RUN_ID": "this", "WORLD_SIZE": 2, "RANK": rank, "LOCAL_RANK": rank}
    for name, value in launched.items():
        monkeypatch.setenv(name, str(value))
    done = CliRunner().invoke(app, arguments(tmp_path, graph, partitions=1))
    assert done.exit_code == 2
    sentence = "error: this job has 2 processes, which train on the parts of a graph: set --partitions to 2 or more"
    assert done.stderr.splitlines() == ([sentence] if rank == 0 else [])
    assert not list(tmp_path.rglob("record.json"))
