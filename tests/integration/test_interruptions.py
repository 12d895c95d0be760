"""A real process is killed or interrupted while it trains; the same command then ends in the same numbers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gumbel_mpnn.data import from_npz
from gumbel_mpnn.runs.fit import fit
from gumbel_mpnn.training.trainer import Trainer
from gumbel_mpnn.util.files import read_json
from helpers import small_data

OPTIONS = {
    "model.hidden_channels": 8,
    "model.dropout": 0.5,
    "model.norm": '"batch"',
    "train.epochs": 150,
    "train.patience": 0,
    "train.lr": 0.01,
    "train.eval_every": 2,
}
OVERRIDES = [f"{name}={value}" for name, value in OPTIONS.items()]
SEEDS = 2
# The command with early checkpoints, slowed down to several seconds so that it does not end before the signal comes.
SLOW_COMMAND = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # even where the shell that started the tests ignores it
from gumbel_mpnn.cli import main, set_up
set_up()
from gumbel_mpnn.training import trainer
from gumbel_mpnn.training.trainer import Trainer
trainer.CHECKPOINT_SECONDS, trainer.CHECKPOINT_SHARE = 0.3, float("inf")
step = Trainer.step
Trainer.step = lambda self: (time.sleep(0.03), step(self))
main()
"""
# The command, whose processes say that they train, and would need a minute for it.
TWO_WORKERS = """
import os, pathlib, time
from gumbel_mpnn.cli import main, set_up
set_up()
os.cpu_count = lambda: 2
from gumbel_mpnn.training.trainer import Trainer
step = Trainer.step
def slow_step(self):
    step(self)
    pathlib.Path(__file__).with_name(f"training-{os.getpid()}").touch()
    time.sleep(0.4)
Trainer.step = slow_step
if __name__ == "__main__":
    main()
"""
PATIENCE_SECONDS = 300


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A graph in an npz file."""
    data = small_data(nodes=60, features=8)
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    arrays = {f"{part}_masks": data[f"{part}_mask"].T.numpy() for part in ("train", "val", "test")}
    arrays |= {"node_features": data.x.numpy(), "node_labels": data.y.numpy(), "edges": data.edge_index.T.numpy()}
    np.savez(path, **arrays)
    return path


@pytest.fixture(scope="module")
def whole(graph, tmp_path_factory):
    """The run that nothing disturbed, in a folder of its own."""
    folder = tmp_path_factory.mktemp("whole")
    return fit(from_npz(graph), "gcn", seeds=SEEDS, overrides=OVERRIDES, runs=folder, device="cpu")


def arguments(graph, runs):
    sets = [word for override in OVERRIDES for word in ("--set", override)]
    places = ["--graph", str(graph), "--runs", str(runs)]
    return ["train", "--model", "gcn", *places, "--seeds", str(SEEDS), *sets, "--device", "cpu", "--format", "json"]


def start(code, graph, runs, *more):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *code, *arguments(graph, runs), *more],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for(condition, process):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.01)


@pytest.fixture
def begun(graph, tmp_path):
    """A process that is training and has written a checkpoint, and its folder of runs."""
    runs = tmp_path / "runs"
    process = start(["-c", SLOW_COMMAND], graph, runs)
    wait_for(lambda: list(runs.rglob("checkpoint-*.safetensors")), process)
    yield process, runs
    process.kill()
    process.communicate()


def run_folders(runs):
    return sorted(path.parent for path in Path(runs).rglob("record.json"))


def check_same_runs(runs, whole):
    """Histories and parameters byte for byte, records but for the time they took."""
    found, expected = run_folders(runs), run_folders(whole.folder.path)
    assert [path.name for path in found] == [path.name for path in expected]
    for one, other in zip(found, expected, strict=True):
        records = [read_json((path / "record.json").read_bytes()) for path in (one, other)]
        for record in records:
            assert record.pop("seconds") > 0
        assert records[0] == records[1]
        for name in ("history.jsonl", "model.safetensors"):
            assert (one / name).read_bytes() == (other / name).read_bytes()
    assert sorted(path.name for path in found[0].parent.iterdir()) == ["data.json", *(path.name for path in found)]


def test_killed_outright(begun, graph, whole):
    process, runs = begun
    process.kill()
    stdout, stderr = process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert stdout == ""
    assert "Traceback" not in stderr
    assert run_folders(runs) == []
    assert len(list(runs.rglob("checkpoint-*.safetensors"))) == 1

    again = start(["-m", "gumbel_mpnn"], graph, runs)
    stdout, stderr = again.communicate(timeout=PATIENCE_SECONDS)
    assert again.returncode == 0, stderr
    shown, expected = json.loads(stdout), whole.to_dict()
    assert {key: shown[key] for key in ("n", "val", "test")} == {key: expected[key] for key in ("n", "val", "test")}
    check_same_runs(runs, whole)


def test_workers_end_with_a_command_that_is_killed(graph, tmp_path):
    program, runs = tmp_path / "program.py", tmp_path / "runs"
    program.write_text(TWO_WORKERS)
    command = start([str(program)], graph, runs, "--workers", "2")
    try:
        wait_for(lambda: len(list(tmp_path.glob("training-*"))) == 2, command)
    finally:
        command.kill()
        command.communicate(timeout=PATIENCE_SECONDS)  # until the workers have closed its standard error, too
    assert command.returncode == -signal.SIGKILL
    assert run_folders(runs) == []


def test_interrupted_by_a_person(begun, graph, whole, monkeypatch):
    process, runs = begun
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert stdout == ""
    preface, *notes, runs_line, first, last = stderr.splitlines()
    assert runs_line == "gcn on graph: 4 runs"
    assert all(line.startswith("warning: ") for line in notes)
    assert preface.startswith("read ")
    assert first.startswith("gcn on graph: at most ")
    assert last == "interrupted: finished runs are stored; repeat the command to continue"
    assert run_folders(runs) == []

    epochs, step = [], Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda self: (epochs.append(self.epoch), step(self)))
    fit(from_npz(graph), "gcn", seeds=SEEDS, overrides=OVERRIDES, runs=runs, device="cpu")
    assert epochs[0] > 0
    assert epochs == list(range(epochs[0], OPTIONS["train.epochs"]))
    check_same_runs(runs, whole)
