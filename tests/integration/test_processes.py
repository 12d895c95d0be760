"""Several real processes, started by torchrun, train on the parts of one graph."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

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


def start(folder, graph, *, processes=2, partitions=4, code=COMMAND):
    """The command in several processes, with its runs in `folder`."""
    folder.mkdir(exist_ok=True)
    script = folder / "command.py"
    script.write_text(code)
    sets = [word for name, value in OPTIONS.items() for word in ("--set", f"{name}={value}")]
    arguments = ["train", "--graph", str(graph), "--model", "gumbel-mpnn", "--partitions", str(partitions), *sets]
    arguments += ["--runs", str(folder / "runs"), "--device", "cpu", "--format", "json"]
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return subprocess.Popen(
        [sys.executable, "-m", *launcher, str(script), *arguments],
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
    alone = start(tmp_path, graph, processes=1)
    assert finished(alone)[1].count("Traceback") == 0
    assert alone.returncode == 0
    one, two = curves(tmp_path), curves(folder)
    assert one.shape == (2, 60, 3)
    torch.testing.assert_close(two, one, rtol=1e-3, atol=1e-4)
    assert one[:, -1, 0].max() < one[:, 0, 0].min()  # it has learned


@pytest.mark.parametrize("lost", [0, 1])
def test_a_killed_process_ends_the_job_and_the_checkpoint_goes_on(lost, whole, graph, tmp_path):
    process = start(tmp_path, graph, code=SLOW_COMMAND + COMMAND)
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while not (found := list(tmp_path.rglob("checkpoint-*.safetensors"))):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline, "no checkpoint came"
            time.sleep(0.01)
        os.kill(int((tmp_path / f"pid-{lost}").read_text()), signal.SIGKILL)
        began = time.monotonic()
    finally:
        stdout, stderr = finished(process)
    assert time.monotonic() - began < 60
    assert process.returncode != 0
    assert stdout == ""
    assert "error: another process of this job has ended" in stderr
    assert not list(tmp_path.rglob("record.json"))
    assert 0 < load_tensors(found[0])[1]["epoch"] < OPTIONS["train.epochs"]

    again = start(tmp_path, graph)
    stdout, stderr = finished(again)
    assert again.returncode == 0, stderr
    assert "continuing at epoch" in stderr
    assert torch.equal(curves(tmp_path), curves(whole[0]))
    assert not list(tmp_path.rglob("checkpoint-*"))


def test_more_processes_than_parts(graph, tmp_path):
    process = start(tmp_path, graph, partitions=1)
    _, stderr = finished(process)
    assert process.returncode != 0
    sentence = "error: this job has 2 processes, which train on the parts of a graph: set --partitions to 2 or more"
    assert stderr.count(sentence) == 1
    assert not list(Path(tmp_path).rglob("record.json"))
