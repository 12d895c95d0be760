"""How long work is shown: a live line on a terminal, nothing but plain lines elsewhere."""

import dataclasses
import io
import re
import sys
from types import SimpleNamespace

import pytest

import gumbel_mpnn as gm
from gumbel_mpnn.runs import RunSpec, Search, Step, Trial, progress
from gumbel_mpnn.runs.progress import ProgressMonitor, StudyMonitor
from gumbel_mpnn.runs.trials import Standing
from gumbel_mpnn.settings.spaces import Space
from gumbel_mpnn.util.live_line import StepLine
from helpers import make_settings, small_data
from quick_fit import TABLES, quick

SETTINGS = make_settings(epochs=10)
FINISHED = SimpleNamespace(test=SimpleNamespace(n=0), val=SimpleNamespace(mean=0.5, n=1), seconds=1.0)
"""What the monitor reads of a `Run`."""


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Makes standard error a terminal; to be called in the test itself, whose standard error pytest has taken."""

    def open_terminal():
        shown = Terminal()
        monkeypatch.setattr("sys.stderr", shown)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "160")
        monkeypatch.delenv("NO_COLOR", raising=False)
        return shown

    return open_terminal


def test_a_live_line_on_a_terminal(terminal):
    shown, monitor = terminal(), ProgressMonitor()
    monitor.begin(SETTINGS, replicas=6, finished=0, groups=2, bytes_needed=5 * 2**20)
    monitor.group(3, 10)
    monitor.progress(10, 0.5)
    monitor.group(3, 10)
    monitor.progress(4, 0.625)
    monitor.line.live.refresh()
    monitor.close()
    assert "gcn on toy: 6 runs, 2 groups, about 5 MiB of memory" in shown.getvalue()
    assert "14/20 epochs" in shown.getvalue()
    assert "best val 62.50" in shown.getvalue()


@pytest.mark.parametrize("value", [float("nan"), -float("inf")])
def test_no_validation_value_is_a_dash(terminal, value):
    shown, monitor = terminal(), ProgressMonitor()
    monitor.begin(SETTINGS, replicas=1, finished=0, groups=1, bytes_needed=0)
    monitor.group(1, 10)
    monitor.progress(4, value)
    monitor.line.live.refresh()
    monitor.close()
    assert "best val –" in shown.getvalue()
    assert str(value) not in shown.getvalue()


def test_closing_twice_is_no_harm(terminal):
    terminal()
    monitor = ProgressMonitor()
    monitor.begin(SETTINGS, replicas=1, finished=0, groups=1, bytes_needed=0)
    assert monitor.line.live is not None
    monitor.close()
    monitor.close()
    assert monitor.line is None


def test_no_live_line_when_nothing_is_to_be_done(terminal):
    shown, monitor = terminal(), ProgressMonitor()
    monitor.begin(SETTINGS, replicas=3, finished=3, groups=0, bytes_needed=0)
    assert monitor.line is None
    assert shown.getvalue() == "gcn on toy: all 3 runs were already finished\n"


def test_one_run_is_not_called_runs(capsys):
    monitor = ProgressMonitor()
    monitor.begin(SETTINGS, replicas=1, finished=1, groups=0, bytes_needed=0)
    assert capsys.readouterr().err == "gcn on toy: the run was already finished\n"


def test_the_epoch_at_which_a_run_continues(capsys):
    monitor = ProgressMonitor()
    monitor.begin(SETTINGS, replicas=2, finished=0, groups=1, bytes_needed=0)
    monitor.group(2, 60)
    monitor.resume(51)
    assert capsys.readouterr().err.splitlines()[1:] == ["gcn on toy: continuing at epoch 52"]
    monitor.resume(60)  # only the results have to be written
    assert capsys.readouterr().err == ""


def test_no_live_line_elsewhere(capsys):
    monitor = ProgressMonitor()
    monitor.begin(SETTINGS, replicas=3, finished=1, groups=1, bytes_needed=2048)
    monitor.group(2, 10)
    monitor.progress(5, 0.5)
    monitor.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "gcn on toy: 2 runs, 1 more already finished, 1 group, about 2 KiB of memory\n"


def test_epochs_in_plain_lines(monkeypatch, capsys):
    now = clock(monkeypatch)
    monitor = ProgressMonitor()
    monitor.begin(SETTINGS, replicas=2, finished=0, groups=1, bytes_needed=0)
    monitor.group(2, 10)
    for seconds, epoch in ((5, 1), (20, 4), (21, 5), (40, 8)):
        now[0] = seconds
        monitor.progress(epoch, 0.5)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "gcn on toy: 4/10 epochs, best val 50.00, about 30 s left",
        "gcn on toy: 8/10 epochs, best val 50.00, about 10 s left",
    ]


def test_a_group_that_another_process_gave_up(monkeypatch, capsys):
    """The fault: a division by zero, if another process held all groups at first."""
    now = clock(monkeypatch)
    monitor = ProgressMonitor()
    monitor.begin(SETTINGS, replicas=2, finished=0, groups=0, bytes_needed=0)
    for start in (0, 100):
        monitor.group(1, 10)
        now[0] = start + 50
        monitor.progress(5, 0.5)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "gcn on toy: 5/10 epochs, best val 50.00, about 50 s left",
        "gcn on toy: 15/20 epochs, best val 50.00, about 50 s left",
    ]


def test_epochs_of_an_earlier_process_took_no_time_in_this_one(monkeypatch, capsys):
    """The fault: after a resume at epoch 8 of 20, the first 8 epochs counted as done in a second."""
    now = clock(monkeypatch)
    monitor = ProgressMonitor()
    monitor.begin(SETTINGS, replicas=4, finished=0, groups=2, bytes_needed=0)
    monitor.group(2, 10)
    monitor.resume(8)
    for seconds, epoch in ((11, 8), (22, 9), (40, 10)):
        now[0] = seconds
        monitor.progress(epoch, 0.5)
    monitor.group(2, 10)
    now[0] = 60
    monitor.progress(1, 0.5)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "gcn on toy: continuing at epoch 9",
        "gcn on toy: 8/20 epochs, best val 50.00",  # nothing to judge by
        "gcn on toy: 9/20 epochs, best val 50.00, about 242 s left",  # 22 s an epoch, 11 epochs
        "gcn on toy: 10/20 epochs, best val 50.00, about 200 s left",  # 20 s an epoch
        "gcn on toy: 11/20 epochs, best val 50.00, about 180 s left",
    ]


def test_rungs_of_an_earlier_process_took_no_time_in_this_one(monkeypatch, capsys):
    now = clock(monkeypatch)
    monitor = ProgressMonitor()
    monitor.rung(Step("mlp", 1, 1, 3, before=0.0, share=0.4))
    monitor.begin(SETTINGS, replicas=4, finished=4, groups=0, bytes_needed=0)  # found finished
    monitor.end(FINISHED)
    monitor.rung(Step("gcn", 1, 2, 3, before=0.4, share=0.4))
    monitor.begin(SETTINGS, replicas=4, finished=2, groups=1, bytes_needed=0)  # half of it found
    monitor.group(2, 10)
    now[0] = 20
    monitor.progress(5, 0.5)  # a tenth of all was done here, and three tenths are left
    monitor.end(FINISHED)
    monitor.rung(Step("gcn", 2, 1, 1, before=0.8, share=0.2))
    monitor.begin(SETTINGS, replicas=6, finished=4, groups=1, bytes_needed=0)  # those of round 1 are not this step's
    monitor.group(2, 10)
    now[0] = 60
    monitor.progress(5, 0.5)  # 0.9 of all, of which 0.4 + 0.2 were found
    lines = [line for line in capsys.readouterr().err.splitlines() if line.endswith(" left")]
    assert [line.rpartition(", ")[2] for line in lines] == ["about 60 s left", "about 20 s left"]


def test_a_resume_tells_the_monitor_how_far_it_was(tmp_path):
    class Stop(ProgressMonitor):
        def progress(self, epoch, best):
            raise KeyboardInterrupt

    class Listen(ProgressMonitor):
        def resume(self, epoch):
            resumed.append(epoch)

    resumed = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gumbel_mpnn.training.loop._Clock.checkpoint_due", lambda clock: True)
        patch.setattr("gumbel_mpnn.training.loop._Clock.checkpoint_written", lambda clock: None)
        patch.setattr("gumbel_mpnn.training.loop._Clock.report_due", lambda clock: next(due))
        due = iter([False, False, False, True])
        with pytest.raises(KeyboardInterrupt):
            quick(runs=tmp_path, monitor=Stop(quiet=True))
    quick(runs=tmp_path, monitor=Listen(quiet=True))
    assert resumed == [3]


def test_quiet_shows_nothing(monkeypatch, capsys):
    now = clock(monkeypatch)
    monitor = ProgressMonitor(preface="read 3 nodes", quiet=True)
    monitor.prepare(1, 2)
    monitor.begin(SETTINGS, replicas=2, finished=0, groups=1, bytes_needed=0)
    monitor.group(2, 10)
    now[0] = 100
    monitor.progress(5, 0.5)
    monitor.wait()
    monitor.end(FINISHED)
    monitor.close()
    assert capsys.readouterr() == ("", "")


def test_steps_of_sdrf_on_a_terminal(terminal):
    shown, monitor = terminal(), ProgressMonitor()
    monitor.prepare(0, 20)
    monitor.prepare(7, 20)
    steps = monitor.line
    steps.live.refresh()
    monitor.begin(SETTINGS, replicas=1, finished=0, groups=1, bytes_needed=0)
    assert "SDRF 7/20 steps" in shown.getvalue()
    assert steps.live is None  # its line has made room for the next
    monitor.close()


def test_no_time_is_foretold_before_there_is_a_step_to_go_by(monkeypatch, capsys):
    now = clock(monkeypatch)
    line = StepLine("SDRF")
    for seconds, done in ((20, 0), (40, 0), (60, 10), (80, 20), (85, 30), (100, 40)):
        now[0] = seconds
        line(done, 100)
    assert capsys.readouterr().err.splitlines() == [
        "SDRF: 0/100 steps",
        "SDRF: 0/100 steps",
        "SDRF: 10/100 steps",
        "SDRF: 20/100 steps, about 160 s left",
        "SDRF: 40/100 steps, about 80 s left",
    ]


def clock(monkeypatch):
    """The time in seconds, to be set."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def notebook(monkeypatch):
    """The kernel of a notebook, whose standard error is not a terminal."""

    def open_notebook():
        shown, shell = io.StringIO(), SimpleNamespace(kernel=object())
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
        monkeypatch.setattr("sys.stderr", shown)
        return shown

    return open_notebook


def test_a_line_that_is_written_over_in_a_notebook(notebook):
    shown, monitor = notebook(), ProgressMonitor()
    monitor.begin(SETTINGS, replicas=1, finished=0, groups=1, bytes_needed=0)
    monitor.group(1, 10)
    monitor.started -= 1e6  # the time left has seven digits, then one
    monitor.progress(5, 0.5)
    monitor.progress(10, 0.5)
    monitor.wait()
    monitor.close()
    _, first, second, erased, waiting = re.split("[\r\n]+", shown.getvalue())[:5]
    assert first == "gcn on toy: 5/10 epochs, best val 50.00, about 1000000 s left"
    assert second.rstrip() == "gcn on toy: 10/10 epochs, best val 50.00, about 0 s left"
    assert len(second) == len(first)
    assert erased.isspace()
    assert waiting == "gcn on toy: waiting for another process that trains the remaining runs"


class TestFit:
    """Who sees progress without asking for it."""

    def fit(self, **how):
        return gm.fit(small_data(), "gcn", settings=TABLES, splits=[0], device="cpu", **how)

    def test_on_a_terminal(self, terminal):
        shown = terminal()
        run = self.fit()
        assert "gcn on own: 1 run, 1 group" in shown.getvalue()
        assert f"gcn on own: test {run.test}" in shown.getvalue()

    def test_in_a_notebook(self, notebook):
        shown = notebook()
        self.fit()
        assert shown.getvalue().startswith("gcn on own: 1 run")

    def test_not_in_the_terminal_of_ipython_without_one(self, notebook, monkeypatch):
        shown = notebook()
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
        self.fit()
        assert shown.getvalue() == ""

    def test_nowhere_else(self, capsys):
        self.fit()
        assert capsys.readouterr().err == ""

    def test_on_request(self, capsys):
        self.fit(progress=True)
        assert "gcn on own: 1 run" in capsys.readouterr().err

    def test_not_on_request(self, terminal):
        shown = terminal()
        self.fit(progress=False)
        assert shown.getvalue() == ""

    def test_a_monitor_takes_its_place(self, terminal):
        shown = terminal()
        monitor = ProgressMonitor()
        monitor.say = lambda message: None
        self.fit(monitor=monitor)
        assert "1 run" not in shown.getvalue()
        with pytest.raises(gm.UserError, match="both monitor and progress=True: leave out one"):
            self.fit(monitor=monitor, progress=True)

    def test_the_line_is_closed_after_an_error(self, terminal, monkeypatch):
        closed = []
        terminal()
        monkeypatch.setattr(ProgressMonitor, "group", lambda *_: 1 / 0)
        monkeypatch.setattr(ProgressMonitor, "close", lambda self: closed.append(self.line))
        with pytest.raises(ZeroDivisionError):
            self.fit()
        assert closed[-1] is not None
        closed[-1].close()


class TestSearch:
    """A search of 10 trials, of which two were done before."""

    SEARCH = Search(RunSpec.of(small_data(), "gcn"), Space.of({"train": {"lr": {"low": 0.1, "high": 1}}}), 10, "runs")

    @pytest.fixture
    def clock(self, monkeypatch):
        """The time, which passes when it is told."""
        now = SimpleNamespace(seconds=1000.0)
        times = SimpleNamespace(monotonic=lambda: now.seconds, time=lambda: now.seconds)
        monkeypatch.setattr(progress, "time", times)
        return now

    def standing(self, done, latest=None):
        return Standing(done, 10, Trial(1, "finished", val=0.75), latest)

    def test_counter_best_and_time_left(self, clock, capsys):
        monitor = StudyMonitor()
        monitor.begin_search(self.SEARCH)
        monitor.standing(self.standing(2))
        clock.seconds += 30
        monitor.standing(self.standing(3, Trial(2, "finished", val=0.5)))
        clock.seconds += 30
        monitor.standing(self.standing(4, Trial(3, "pruned")))
        assert capsys.readouterr().err.splitlines() == [
            "gcn on own: 10 trials of 1 run each, 1 setting searched",
            "2 of 10 trials were done before",
            "trial 2: val 50.00, 3 of 10 done, best val 75.00 (trial 1), about 3.5 min left",
            "trial 3: pruned, 4 of 10 done, best val 75.00 (trial 1), about 3 min left",
        ]

    def test_a_time_limit_is_the_least_that_is_left(self, clock, capsys):
        monitor = StudyMonitor()
        monitor.begin_search(dataclasses.replace(self.SEARCH, until=1100.0))
        monitor.standing(self.standing(2))
        clock.seconds += 30
        monitor.standing(self.standing(3, Trial(2, "diverged")))
        shown = capsys.readouterr().err
        assert "10 trials of 1 run each, 100 s at most, 1 setting searched" in shown
        assert "trial 2: diverged, 3 of 10 done, best val 75.00 (trial 1), about 70 s left" in shown

    def test_when_the_time_is_up_no_time_is_left(self, clock, capsys):
        monitor = StudyMonitor()
        monitor.begin_search(dataclasses.replace(self.SEARCH, until=1020.0))
        monitor.standing(self.standing(2))
        clock.seconds += 30
        monitor.standing(self.standing(3, Trial(2, "pruned")))
        assert capsys.readouterr().err.splitlines()[-1] == "trial 2: pruned, 3 of 10 done, best val 75.00 (trial 1)"

    def test_the_live_line_has_what_other_processes_did(self, terminal, clock):
        shown, monitor = terminal(), StudyMonitor()
        monitor.begin_search(self.SEARCH, look=lambda: self.standing(7))
        monitor.standing(self.standing(2))
        monitor.begin(SETTINGS, replicas=6, finished=0, groups=1, bytes_needed=1)
        monitor.group(6, 10)
        clock.seconds += 10
        monitor.progress(4, 0.625)
        monitor.line.live.refresh()
        monitor.close()
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())
        assert "gcn on own, 7 of 10 trials done, best val 75.00 (trial 1)" in text
        assert "about 6 s left" in text
        assert "memory" not in text

    def test_quiet(self, capsys):
        monitor = StudyMonitor(quiet=True)
        monitor.begin_search(self.SEARCH)
        monitor.standing(self.standing(3, Trial(2, "pruned")))
        assert capsys.readouterr().err == ""
