"""Processes that train: equal to one process, ended with the calling one, and replaced when they die."""

import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, Future
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from gumbel_mpnn import UserError, fit
from gumbel_mpnn.runs import fit as module
from gumbel_mpnn.runs import session
from gumbel_mpnn.runs.progress import Monitor
from gumbel_mpnn.runs.session import open_workers
from gumbel_mpnn.runs.workers import tell, workers
from gumbel_mpnn.training.trainer import Trainer
from helpers import small_data
from quick_fit import TABLES, contents, quick

pytestmark = pytest.mark.filterwarnings("ignore::gumbel_mpnn.util.errors.DataWarning")
HOW = {"seeds": 4, "settings": TABLES, "device": "cpu"}


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.fixture(scope="module")
def shared():
    with workers(2) as processes:
        yield processes


@pytest.fixture
def two(shared):
    """Two processes that several tests share."""
    yield shared
    list(shared.reports())


def double(number):
    tell("doubled", number)
    return 2 * number


def refuse(_):
    raise UserError("refused")


def sleep(seconds):
    time.sleep(seconds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on": "rays"}, "on must be local, ray or ray://HOST:PORT, but is 'rays'"),
        ({"on": None}, "but is None"),
        ({"on": "ray", "workers": 2}, "Ray decides how many tasks run at once"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"workers": 1.5}, "workers must be a whole number"),
    ],
)
def test_what_is_not_valid(options, message):
    with pytest.raises(UserError, match=message):
        fit(small_data(), "gcn", **options)


def test_one_process_is_this_one():
    with open_workers(1, "local", "cpu") as several:
        assert several is None


class TestProcesses:
    def test_results_errors_and_reports(self, two):
        assert two.count == 2
        assert [two.result(future) for future in [two.submit(double, k) for k in range(5)]] == [0, 2, 4, 6, 8]
        assert sorted(two.reports()) == [("doubled", k) for k in range(5)]
        with pytest.raises(UserError, match="refused"):
            two.result(two.submit(refuse, 1))

    def test_they_end_at_once_with_the_block(self, monkeypatch):
        monkeypatch.setattr(os, "cpu_count", lambda: 1)
        started = time.monotonic()
        with suppress(KeyboardInterrupt), workers(2) as processes:
            assert processes.result(processes.submit(double, 1)) == 2
            processes.submit(sleep, 600)
            raise KeyboardInterrupt
        assert time.monotonic() - started < 300

    @pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes cannot be looked up here")
    def test_they_end_with_a_process_that_is_killed(self):
        code = (
            "import os, time\n"
            "from gumbel_mpnn.runs.workers import workers\n"
            "os.cpu_count = lambda: 1\n"
            "if __name__ == '__main__':\n"
            "    with workers(2) as processes:\n"
            "        future = processes.submit(os.getpid)\n"
            "        processes.submit(time.sleep, 600)\n"
            "        print(processes.result(future), flush=True)\n"
            "        time.sleep(600)\n"
        )
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            worker = Path(f"/proc/{int(process.stdout.readline())}")
            assert worker.exists()
            process.kill()
        deadline = time.monotonic() + 60
        while worker.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)


class TestFit:
    def test_several_processes_equal_one(self, two, tmp_path):
        together = quick(seeds=4, runs=tmp_path / "two", workers=two)
        alone = quick(seeds=4, runs=tmp_path / "one")
        assert contents(tmp_path / "two") == contents(tmp_path / "one")
        assert together.n == alone.n == 8

    def test_by_name_and_without_a_folder(self, two, monkeypatch):
        asked = []
        monkeypatch.setattr(module, "open_workers", lambda *how: asked.append(how) or nullcontext(two))
        assert fit(small_data(), "gcn", **HOW, workers=2).val == quick(seeds=4).val
        assert asked == [(2, "local", "cpu")]

    def test_progress_is_told(self, two, tmp_path, monkeypatch):
        class Notes(Monitor):
            def progress(self, setting, group, runs, best):
                told.append(runs)

        told = []
        quick(seeds=4, runs=tmp_path, workers=two, monitor=Notes())
        assert told.count(4) >= 2  # both groups, at their end

    def test_errors_of_training_come_back(self, two, tmp_path):
        with pytest.raises(UserError, match="there is no norm called 'bach'"):
            quick(runs=tmp_path, workers=two, overrides=["model.norm=bach"])

    def test_divergence_is_told(self, two, tmp_path):
        with pytest.raises(UserError, match=r"training diverged \(no finite"):
            quick(runs=tmp_path, workers=two, overrides=["train.lr=1e30"])

    def test_a_worker_that_dies_loses_nothing(self, two, tmp_path, monkeypatch):
        real, dead = session._train_there, tmp_path / "two/train/own/gcn/dead"

        monkeypatch.setattr(session, "_train_there", dies_once)
        run = quick(seeds=4, runs=tmp_path / "two", workers=two)
        dead.unlink()
        monkeypatch.setattr(session, "_train_there", real)
        quick(seeds=4, runs=tmp_path / "one")
        assert contents(tmp_path / "two") == contents(tmp_path / "one")
        assert run.n == 8

    def test_one_death_that_takes_the_groups_of_all_with_it_counts_once(self, two, tmp_path, monkeypatch):
        submit, lost = two.submit, [broken() for _ in range(4)]
        monkeypatch.setattr(two, "count", 4)
        monkeypatch.setattr(two, "submit", lambda *call: lost.pop() if lost else submit(*call))
        assert quick(seeds=4, runs=tmp_path, workers=two).n == 8

    def test_one_that_always_dies_is_told(self, two, tmp_path, monkeypatch):
        monkeypatch.setattr(two, "submit", lambda *_: broken())
        with pytest.raises(UserError, match=r"gcn on own was tried 3 times, and its worker died each time .*memory"):
            quick(runs=tmp_path, workers=two)

    def test_groups_are_no_larger_than_a_part(self, two, tmp_path, monkeypatch):
        sizes = []
        monkeypatch.setattr(two, "submit", lambda work, *given: sizes.append(len(given[2])) or done(work, *given))
        quick(seeds=5, runs=tmp_path, workers=two)
        assert sorted(sizes) == [5, 5]


def done(work, *given):
    """A finished future of a call in this process."""
    future = Future()
    future.set_result(pickle.dumps(work(*given)))
    return future


def broken():
    """The future of a call whose process died."""
    future = Future()
    future.set_exception(BrokenExecutor("a process died"))
    return future


def dies_once(*given):
    from gumbel_mpnn.runs.session import _train_there

    dead = given[3].path.parent / "dead"
    if not dead.exists():
        step = Trainer.step

        def killed(trainer):
            if trainer.epoch == 3:
                dead.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            step(trainer)

        Trainer.step = killed
    return _train_there(*given)
