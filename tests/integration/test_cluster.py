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
from dataclasses import replace
from importlib.util import find_spec as find_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from gumbel_mpnn.runs.fitting import find_spec
from gumbel_mpnn.runs.work_queue import WorkQueue

from experiments import PAGES
from experiments.training import Options, selected_jobs, train
from gumbel_mpnn import Machines, UserError, tune
from gumbel_mpnn import fit as public_fit
from gumbel_mpnn.runs import Place, fit_any, fit_spec, helped  # FIXME
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.util.errors import DivergedError
from gumbel_mpnn.util.locks import FileLock
from helpers import small_data
from quick_fit import TABLES, contents, figures

if find_module("ray") is None:
    pytest.skip("Ray is not installed", allow_module_level=True)
from gumbel_mpnn.runs.cluster import connection, crew

ray = crew.ray
pytestmark = pytest.mark.filterwarnings("ignore::gumbel_mpnn.util.errors.DataWarning")

STORES = ["shared", "driver"]
RAY = Machines("ray", patience=900)  # the first worker imports everything, beside other tests
PLUGIN = """
import os, signal, time
from pathlib import Path
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.training.trainer import Trainer

control, step, write, steps = Path({control!r}), Trainer.step, SettingFolder.write, 0

def die_in_the_middle(trainer):
    global steps
    steps += 1
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

def note_write(folder, outcome, *rest):
    end = time.monotonic() + 60
    while (control / "hold").exists() and time.monotonic() < end:
        if len((control / "written").read_bytes().split()) < 15:
            break
        time.sleep(0.01)
    write(folder, outcome, *rest)
    with (control / "written").open("ab", buffering=0) as file:
        file.write(f"{{folder.path.name}}/{{outcome.replica}}\\n".encode())

if os.getpid() != {process}:
    Trainer.step, SettingFolder.write = die_in_the_middle, note_write
"""
DRIVER = """
import gumbel_mpnn as gm
from helpers import small_data
from quick_fit import TABLES

gm.fit(
    small_data(), "gcn", seeds=20, settings=TABLES, preset=None, runs={runs!r}, device="cpu", on="ray:{address}"
)
"""


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
def control(address, environment):
    """Folder with the files `kill-once`, `kill-always` and `hold`, and `written`, which lists the runs written."""
    (environment / "written").write_bytes(b"")
    yield environment
    for name in ("kill-once", "kill-always", "hold"):
        (environment / name).unlink(missing_ok=True)


def forty(**changes):
    """Forty tiny runs: two splits, twenty seeds."""
    return RunSpec.of(small_data(), "gcn", seeds=20, settings={**TABLES, **changes})


def on_ray(spec, runs, machines=RAY, **how):
    with helped(spec, Place(runs, device="cpu", **how), machines) as place:
        return fit_any(spec, place)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """What the store holds after a local run."""
    runs = tmp_path_factory.mktemp("local") / "runs"
    with warnings.catch_warnings(action="ignore"):
        fit_spec(forty(), Place(runs, device="cpu"))
    return contents(runs)


class Watch:
    """A monitor that remembers what it is told."""

    def __init__(self):
        self.told = []

    def __getattr__(self, name):
        return lambda *values: self.told.append((name, *values))


@pytest.mark.parametrize("store", STORES)
def test_forty_runs_on_two_workers_equal_a_local_run(store, control, local, tmp_path):
    watch = Watch()
    on_ray(forty(), tmp_path / "runs", replace(RAY, store=store), monitor=watch)
    assert contents(tmp_path / "runs") == local
    assert sum(name.endswith("record.json") for name in local) == 40
    (begin,) = (event[2:] for event in watch.told if event[0] == "begin")
    assert begin == (40, 0, 2, 0)
    names = [event[0] for event in watch.told]
    assert names[:2] == ["begin", "group"]
    assert names[-1] == "end"
    assert set(names[2:-1]) == {"progress"}
    assert watch.told[1] == ("group", 40, 2 * 6)
    assert watch.told[-2][1] == 2 * 6


def test_progress_on_the_way(control, tmp_path):
    """Tasks do not end before this process knows what they do."""
    (control / "hold").touch()

    class Impatient(Watch):
        def progress(self, epoch, best):
            self.told.append(epoch)
            (control / "hold").unlink(missing_ok=True)

    watch = Impatient()
    on_ray(forty(train={"lr": 0.01, "epochs": 300, "patience": 0}), tmp_path / "runs", monitor=watch)
    epochs = [told for told in watch.told if isinstance(told, int)]
    assert epochs == sorted(epochs)
    assert 0 < epochs[0] < 300
    assert epochs[-1] == 2 * 300


@pytest.mark.parametrize("store", STORES)
def test_a_worker_killed_in_the_middle_is_tried_again(store, control, local, tmp_path):
    (control / "kill-once").touch()
    on_ray(forty(), tmp_path / "runs", replace(RAY, store=store))
    assert not (control / "kill-once").exists()
    assert contents(tmp_path / "runs") == local
    written = (control / "written").read_text().split()
    assert len(written) == len(set(written)) == 40


def test_a_worker_that_always_dies_is_reported(control, tmp_path):
    (control / "kill-always").touch()
    with pytest.raises(UserError, match=r"gcn on own was tried 1 time, and its worker died each time"):
        on_ray(forty(), tmp_path / "runs", replace(RAY, retries=0))


def test_a_killed_driver_goes_on_with_what_is_missing(control, address, local, tmp_path):
    script, runs = tmp_path / "driver.py", tmp_path / "runs"
    script.write_text(DRIVER.format(runs=str(runs), address=address))
    (control / "hold").touch()
    driver = subprocess.Popen([sys.executable, script], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while driver.poll() is None and len((control / "written").read_text().split()) < 15:
        time.sleep(0.02)
    driver.kill()
    _, told = driver.communicate()
    before = sorted(runs.rglob("record.json"))
    assert 15 <= len(before) < 40, told
    times = [path.stat().st_mtime_ns for path in before]
    (control / "hold").unlink()
    on_ray(forty(), runs)
    assert contents(runs) == local  # no token of the killed process either
    assert [path.stat().st_mtime_ns for path in before] == times
    written = (control / "written").read_text().split()
    assert len(written) == len(set(written)) == 40


@pytest.mark.parametrize("store", STORES)
def test_divergence_is_remembered(store, control, tmp_path):
    spec = forty(train={"lr": 1e20, "epochs": 6})
    with pytest.raises(DivergedError, match=r"^training diverged"):
        on_ray(spec, tmp_path / "runs", replace(RAY, store=store))
    with pytest.raises(DivergedError, match="tried before"):
        on_ray(spec, tmp_path / "runs", replace(RAY, store=store))


def test_divergence_of_runs_without_names_is_reported(control, tmp_path, monkeypatch):
    def diverge(*_):
        raise DivergedError("training diverged")
        yield

    monkeypatch.setattr(crew.RayCrew, "_as_they_end", diverge)
    with pytest.raises(DivergedError, match="training diverged"):
        on_ray(RunSpec.of(small_data(), "gcn", settings=TABLES), tmp_path / "runs", replace(RAY, store="driver"))


def test_a_transform_and_a_graph_need_not_be_on_the_machines(control, tmp_path):
    """Workers get the graph after the transform, which may be a function that only this process has."""

    def double(data):
        return data.clone().update({"x": 2 * data.x})

    spec = RunSpec.of(small_data(), "gcn", settings=TABLES, transform=double)
    run = on_ray(spec, tmp_path / "ray", replace(RAY, store="driver"))
    assert figures(run) == figures(fit_spec(spec, Place(tmp_path / "local", device="cpu")))
    assert find_spec(spec, Place(tmp_path / "ray")) is not None


def test_auto_and_a_table(control, tmp_path):
    """Rungs of auto one after the other, jobs of a table at once."""
    small = {"settings": {"model": {"hidden_channels": 4}, "train": {"epochs": 2}}, "device": "cpu"}
    run = public_fit(small_data(), "auto", **small, runs=tmp_path / "auto", on="ray")
    assert run.choice.chosen == public_fit(small_data(), "auto", **small).choice.chosen
    overrides = ("train.epochs=1", "model.hidden_channels=4")
    options = Options(("bottleneck-10", "gcn", "gumbel-mpnn"), (0,), 1, overrides=overrides, device="cpu", quiet=True)
    jobs = selected_jobs(PAGES["bottleneck"], options)
    here, there = (
        train(PAGES["bottleneck"], jobs, replace(options, runs=tmp_path / on, on=on)) for on in ("local", "ray")
    )
    assert [run.test for run in there.values()] == [run.test for run in here.values()]
    assert len(there) == 3


@pytest.mark.parametrize("store", STORES)
def test_a_search_one_of_whose_workers_is_killed(store, control, tmp_path, capfd):
    pytest.importorskip("optuna")
    (control / "kill-once").touch()
    found = tune(
        small_data(),
        "gcn",
        trials=6,
        space={"train": {"lr": {"low": 0.001, "high": 0.1, "log": True}}},
        settings=TABLES,
        runs=tmp_path,
        device="cpu",
        on=replace(RAY, store=store),
        progress=True,
    )
    assert not (control / "kill-once").exists()
    assert sorted(trial.number for trial in found.trials) == list(range(6))
    assert {trial.state for trial in found.trials} <= {"finished", "pruned"}
    assert found.run.n == 2
    told = capfd.readouterr()
    assert told.out == ""
    for number in range(6):
        assert told.err.count(f"\ntrial {number}: ") == 1


def test_no_room_is_an_error_after_a_time(control, tmp_path):
    with pytest.raises(UserError, match=r"had 3 CPU and 0 GPU free for a task within 1 s \(the largest has 2 CPU"):
        on_ray(forty(), tmp_path / "runs", replace(RAY, cpus=3, patience=1))


def test_a_gpu_that_is_not_there(control, tmp_path):
    with (
        pytest.raises(UserError, match="the cluster has none"),
        helped(forty(), Place(tmp_path, device="cuda"), RAY),
    ):
        pass


def test_how_many_tasks_a_machine_runs(control):
    two = crew.RayCrew(RAY, None, "cpu")
    assert (two.slots, two.gpus) == (2, 0)
    two.cpus, two.gpus = 2, 0.25
    assert two._tasks_on({"CPU": 64.0, "GPU": 2.0}) == 8
    assert two._tasks_on({"CPU": 6.0, "GPU": 2.0}) == 3
    assert two._tasks_on({"CPU": 64.0}) == 0


def test_which_store(control, tmp_path):
    """A folder counts as shared if a worker sees the lock of the calling process."""
    with connection.marked(tmp_path) as token:
        assert connection.sees_lock(token)
        assert crew.RayCrew(RAY, token, "cpu")._mark == token
        assert crew.RayCrew(replace(RAY, store="driver"), token, "cpu")._mark is None
    assert not connection.sees_lock(token)
    unlocked = tmp_path / "unlocked"
    unlocked.touch()
    assert not connection.sees_lock(unlocked)
    assert crew.RayCrew(RAY, unlocked, "cpu")._mark is None
    with pytest.raises(UserError, match="--store driver"):
        crew.RayCrew(replace(RAY, store="shared"), unlocked, "cpu")


def test_damage_on_the_way_is_noticed(control, tmp_path, monkeypatch):
    digest = crew.digest
    monkeypatch.setattr(crew, "digest", lambda parts: digest([*parts, ("more", b"")]))
    with pytest.raises(UserError, match="were damaged on their way from the cluster"):
        on_ray(forty(), tmp_path / "runs", replace(RAY, store="driver"))
    assert list(tmp_path.rglob("record.json")) == []


def test_runs_of_another_process_are_waited_for(control, local, tmp_path):
    """The calling process leaves groups alone that others hold."""
    spec, runs = forty(), tmp_path / "runs"
    fit_spec(replace(spec, seeds=(0,)), Place(runs, device="cpu"))
    workload = spec.read()
    folder = Place(runs).folder(workload, runs)
    claim = WorkQueue(folder).next(workload.replicas, 10)
    assert FileLock(folder.group_file(claim.group)).take(wait=False) is False
    watch = Watch()
    watch.wait = lambda: claim.__exit__()
    on_ray(spec, runs, replace(RAY, store="driver"), monitor=watch)
    assert contents(runs) == local


def test_a_cluster_of_its_own_ends_with_the_command(environment, tmp_path):
    """Without a running cluster, `--on ray` starts one; nothing of it is left."""
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


def test_a_cluster_that_cannot_be_reached():
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1"):
        with pytest.raises(UserError, match=rf"^cannot connect to the Ray cluster '{address}': .*refused"):
            connection.connect(address)


def test_an_address_that_never_answers(monkeypatch):
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UserError, match=rf"^cannot connect to the Ray cluster '{address}': timed out; is it"):
            connection.connect(address)


def test_without_ray(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.startswith("gumbel_mpnn.runs.cluster")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r'pip install "gumbel-mpnn\[cluster\]"'):
        public_fit(small_data(), "gcn", runs=tmp_path, on="ray")
