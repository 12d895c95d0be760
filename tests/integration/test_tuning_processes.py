"""Real processes on one study: killed, and joined by others."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gumbel_mpnn.data import from_npz
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.runs.study import Search, open_study, read_space, work_on
from gumbel_mpnn.training.trainer import Trainer
from helpers import fresh_processes, small_data

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="files cannot be locked here"),
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes cannot be looked up here"),
]
TRIALS = 5
SPACE = '[train]\nlr = {low = 0.005, high = 0.1, log = true}\n[model]\nnorm = ["none", "layer"]\n'
SETTINGS = ["train.epochs=8", "train.patience=0", "model.hidden_channels=4"]
# The command; training waits until there is a file "go".
COMMAND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # even where the shell that started the tests ignores it
import os, pathlib, time
os.cpu_count = lambda: 2
from gumbel_mpnn.cli import main, set_up
set_up()
from gumbel_mpnn.training.trainer import Trainer
step = Trainer.step
def waiting(self):
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    step(self)
Trainer.step = waiting
if __name__ == "__main__":
    main()
"""
PATIENCE_SECONDS = 300


@pytest.fixture
def here(tmp_path):
    data = small_data()
    arrays = {f"{part}_masks": data[f"{part}_mask"].T.numpy() for part in ("train", "val", "test")}
    arrays |= {"node_features": data.x.numpy(), "node_labels": data.y.numpy(), "edges": data.edge_index.T.numpy()}
    np.savez(tmp_path / "graph.npz", **arrays)
    (tmp_path / "space.toml").write_text(SPACE)
    return tmp_path


@pytest.fixture
def search(here):
    """The search that the command makes."""
    spec = RunSpec.of(from_npz(here / "graph.npz"), "gcn", overrides=SETTINGS)
    space = read_space(here / "space.toml")
    return Search.of(spec, space, trials=TRIALS, runs=str(here / "runs"), device="cpu")


def start(here, *options):
    (here / "program.py").write_text(COMMAND)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    what = ["tune", "--graph", "graph.npz", "--model", "gcn", "--trials", str(TRIALS), *sets, "--device", "cpu"]
    return subprocess.Popen(
        [sys.executable, "program.py", *what, "--space", "space.toml", "--format", "json", *options],
        cwd=here, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def end(process, here):
    (here / "go").touch()
    stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, stderr
    return json.loads(stdout), stderr


def states(search):
    if not Path(search.storage).exists():
        return []
    return [trial.state.name for trial in open_study(search).get_trials()]


def running(search):
    return states(search).count("RUNNING")


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def work_slowly(search, pause):
    step = Trainer.step
    Trainer.step = lambda self: (time.sleep(pause), step(self))
    work_on(search)


def start_slow(search, pause):
    """A process that works on the study, each of its epochs slowed down."""
    process = fresh_processes().Process(target=work_slowly, args=(search, pause), daemon=True)
    process.start()
    return process


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def test_two_processes_join_one_study_and_one_is_killed(search):
    search = replace(search, trials=8)
    killed, other = start_slow(search, 0.03), start_slow(search, 0.03)
    wait_for(lambda: running(search) == 2 and len(states(search)) >= 4)
    kill(killed)
    other.join(PATIENCE_SECONDS)
    assert other.exitcode == 0
    assert sorted(set(states(search)) | {"PRUNED"}) == ["COMPLETE", "PRUNED"]
    assert len(states(search)) == 8


def worker_of(process):
    """A process that a command with two workers has started, if it is there."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes()
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == process.pid and b"spawn_main" in words:
            return int(path.name)
    return None


def test_the_command_with_two_workers_of_which_one_is_killed(here, search):
    search = replace(search, runs="runs", storage=str(here / "runs/tune/studies.journal"))
    process = start(here, "--workers", "2")
    wait_for(lambda: running(search) == 2 or process.poll() is not None)
    os.kill(worker_of(process), signal.SIGKILL)
    rows, stderr = end(process, here)
    assert len(rows) == TRIALS
    assert len(states(search)) == TRIALS
    assert running(search) == 0
    assert "5 of 5 done" in stderr


def test_workers_end_with_the_command_and_their_trials_are_taken_up_again(here, search):
    process = start(here, "--workers", "2")
    wait_for(lambda: running(search) == 2 or process.poll() is not None)
    worker = worker_of(process)
    process.send_signal(signal.SIGINT)
    (here / "go").touch()
    _, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert "interrupted: finished runs are stored" in stderr
    assert "Traceback" not in stderr
    wait_for(lambda: not Path(f"/proc/{worker}").exists())
    work_on(search)
    assert len(states(search)) == TRIALS
    assert running(search) == 0
