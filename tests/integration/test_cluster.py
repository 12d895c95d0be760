"""Runs on a real Ray cluster of two CPUs on this machine; workers and the calling process are killed."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from importlib.util import find_spec as find_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import gumbel_mpnn as gm
from experiments import PAGES
from experiments.training import Options, selected_jobs, train
from gumbel_mpnn import UserError
from gumbel_mpnn.runs import session
from gumbel_mpnn.runs import workers as module
from gumbel_mpnn.runs.progress import Monitor
from gumbel_mpnn.runs.workers import workers
from helpers import small_data
from quick_fit import TABLES, contents, figures, quick

if find_module("ray") is None:
    pytest.skip("Ray is not installed", allow_module_level=True)
import ray

pytestmark = pytest.mark.filterwarnings("ignore::gumbel_mpnn.util.errors.DataWarning")
PLUGIN = """
import os, signal
from pathlib import Path
from gumbel_mpnn.training.trainer import Trainer

control, step = Path({control!r}), Trainer.step

def die_in_the_middle(trainer):
    if trainer.epoch == 3 and (control / "kill-always").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    if trainer.epoch == 3:
        try:
            (control / "kill-once").unlink()
        except FileNotFoundError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    step(trainer)

if os.getpid() != {process}:
    Trainer.step = die_in_the_middle
"""
DRIVER = """
import os, signal
import gumbel_mpnn as gm
from gumbel_mpnn.runs.store import SettingFolder
from helpers import small_data
from quick_fit import TABLES

write, written = SettingFolder.write, []

def note_write(folder, outcome, *rest):
    if len(written) == 15:
        os.kill(os.getpid(), signal.SIGKILL)
    write(folder, outcome, *rest)
    written.append(outcome)

SettingFolder.write = note_write
gm.fit(small_data(), "gcn", seeds=20, settings=TABLES, preset=None, runs={runs!r}, device="cpu", on="ray")
"""
FORTY = {"seeds": 20}
"""Forty tiny runs: two splits, twenty seeds."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Environment of the workers, with a plugin that kills them when told to."""
    control = tmp_path_factory.mktemp("control")
    (control / "plugin.py").write_text(PLUGIN.format(control=str(control), process=os.getpid()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        patch.setenv("GUMBEL_MPNN_PLUGINS", str(control / "plugin.py"))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("RAY_AUTH_MODE", "")
        patch.delenv("RAY_AUTH_MODE")  # Ray sets it, and it is to be gone afterwards
        patch.setenv("RAY_AUTH_TOKEN", os.urandom(32).hex())  # else Ray writes one to the home folder
        patch.setattr(module, "START_SECONDS", 900)  # the first worker imports everything, beside other tests
        with TemporaryDirectory(dir="/tmp") as folder:  # names of sockets must be short
            patch.setenv("RAY_TMPDIR", folder)
            yield control


@pytest.fixture(scope="module")
def address(environment):
    """A cluster of two CPUs, to which this process is connected."""
    terminated = signal.getsignal(signal.SIGTERM)
    context = ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield context.address_info["gcs_address"]
    ray.shutdown()
    signal.signal(signal.SIGTERM, terminated)


@pytest.fixture
def tasks(address, environment):
    with workers(on="ray", device="cpu") as found:
        yield found
    for name in ("kill-once", "kill-always"):
        (environment / name).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """What the store holds after a local run."""
    runs = tmp_path_factory.mktemp("local") / "runs"
    with warnings.catch_warnings(action="ignore"):
        quick(**FORTY, runs=runs)
    return contents(runs)


def test_forty_runs_on_two_workers_equal_a_local_run(tasks, local, tmp_path):
    class Notes(Monitor):
        def progress(self, setting, group, runs, best):
            told.append(runs)

    told = []
    assert tasks.count == 2
    quick(**FORTY, runs=tmp_path, workers=tasks, monitor=Notes())
    assert contents(tmp_path) == local
    assert sum(name.endswith("record.json") for name in local) == 40
    assert told == [20, 20]


def test_a_killed_driver_goes_on_with_what_is_missing(tasks, address, local, tmp_path):
    script, runs = tmp_path / "driver.py", tmp_path / "runs"
    script.write_text(DRIVER.format(runs=str(runs)))
    environment = {**os.environ, "RAY_ADDRESS": address}
    driver = subprocess.run([sys.executable, script], env=environment, capture_output=True)
    assert driver.returncode == -signal.SIGKILL, driver.stderr
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("record.json")}
    assert len(before) == 15
    quick(**FORTY, runs=runs, workers=tasks)
    assert contents(runs) == local
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_transform_and_a_graph_need_not_be_on_the_machines(tasks, tmp_path):
    """Workers get the graph after the transform, which may be a function that only this process has."""
    how = {"transform": lambda data: data.clone().update({"x": 2 * data.x})}
    assert figures(quick(**how, runs=tmp_path / "ray", workers=tasks)) == figures(quick(**how))


def test_auto_a_table_and_a_search(tasks, tmp_path):
    small = {"settings": {"model": {"hidden_channels": 4}, "train": {"epochs": 2}}, "device": "cpu"}
    run = gm.fit(small_data(), "auto", **small, runs=tmp_path / "auto", on="ray")
    assert run.choice == gm.fit(small_data(), "auto", **small).choice
    overrides = ("train.epochs=1", "model.hidden_channels=4")
    options = Options(("bottleneck-10", "gcn", "gumbel-mpnn"), (0,), 1, overrides=overrides, device="cpu", quiet=True)
    jobs = selected_jobs(PAGES["bottleneck"], options)
    there = train(PAGES["bottleneck"], jobs, Options(**{**vars(options), "runs": tmp_path, "on": "ray"}))
    assert len(there) == len(jobs) > 1
    assert all(run.test.n for run in there.values())
    space = {"train": {"lr": {"low": 0.001, "high": 0.1, "log": True}}}
    search = {"trials": 3, "space": space, "settings": TABLES, "device": "cpu"}
    here, there = (gm.tune(small_data(), "gcn", **search, on=on) for on in ("local", "ray"))
    assert [(trial.chosen, trial.val) for trial in here.trials] == [(trial.chosen, trial.val) for trial in there.trials]


def test_a_worker_killed_in_the_middle_is_tried_again(tasks, environment, local, tmp_path):
    (environment / "kill-once").touch()
    quick(**FORTY, runs=tmp_path, workers=tasks)
    assert not (environment / "kill-once").exists()
    assert contents(tmp_path) == local


def test_a_worker_that_always_dies_is_reported(tasks, environment, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "TRIES", 1)
    (environment / "kill-always").touch()
    with pytest.raises(UserError, match=r"gcn on own was tried 1 times, and its worker died each time"):
        quick(**FORTY, runs=tmp_path, workers=tasks)


def test_a_cluster_of_its_own_ends_with_the_command(environment, tmp_path):
    """Without a running cluster, `--on ray` starts one, which no other machine reaches; nothing of it is left."""
    mark = f"GUMBEL_MPNN_TEST_MARK={os.urandom(8).hex()}"
    sessions = set(Path(os.environ["RAY_TMPDIR"]).rglob("session_2*"))
    command = [sys.executable, "-m", "gumbel_mpnn", "train", "demo", "--model", "gcn", "--splits", "0", "--quiet"]
    command += ["--set", "train.epochs=2", "--runs", tmp_path, "--device", "cpu", "--on", "ray", "--format", "json"]
    done = subprocess.run(
        command, env=dict(os.environ, **dict([mark.split("=")])), capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["n"] == 1
    assert set(Path(os.environ["RAY_TMPDIR"]).rglob("session_2*")) > sessions
    deadline = time.monotonic() + 10
    while left := marked(mark):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def marked(mark):
    """Processes with this variable in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (path / "environ").read_bytes():
                found.append((path / "cmdline").read_bytes())
    return found


def test_a_cluster_that_cannot_be_reached(monkeypatch):
    with pytest.raises(UserError, match=r"^cannot connect to the Ray cluster 'ray://127.0.0.1:1': .*refused"):
        module._connect(ray, "ray://127.0.0.1:1")
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as silent:
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{silent.getsockname()[1]}")
        silent.close()
        with pytest.raises(UserError, match=r"^cannot connect to the Ray cluster '127.0.0.1:\d+': .*refused"):
            module._connect(ray, "ray")


def test_without_ray(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r'pip install "gumbel-mpnn\[cluster\]"'):
        gm.fit(small_data(), "gcn", runs=tmp_path, on="ray")
