"""How long work is shown: a live line on a terminal and in a notebook, nothing but plain lines elsewhere."""

import io
from types import SimpleNamespace

import pytest

import gumbel_mpnn as gm
from gumbel_mpnn.runs import progress
from gumbel_mpnn.runs.progress import Monitor, in_time
from helpers import small_data
from quick_fit import TABLES

GCN = ["gcn on toy"]
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


@pytest.fixture
def clock(monkeypatch):
    """The time, in a list."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def lines(capsys):
    return capsys.readouterr().err.splitlines()


def test_a_live_line_on_a_terminal(terminal):
    shown, monitor = terminal(), Monitor(quiet=False)
    monitor.begin(GCN, [6], [0])
    monitor.memory(5_000_000)
    monitor.progress(0, "a", 3, 0.5)
    monitor.memory(5_000_000)
    monitor.progress(0, "b", 1.2, 0.625)
    monitor.live.refresh()
    monitor.close()
    monitor.close()
    assert shown.getvalue().startswith("gcn on toy: 6 runs\ngcn on toy: at most 5.0 MB of memory\n")
    assert shown.getvalue().count("memory") == 1
    assert "gcn on toy: best val 62.50, about" in shown.getvalue()


@pytest.mark.parametrize("value", [float("nan"), -float("inf")])
def test_no_validation_value_is_told_so(terminal, value):
    shown, monitor = terminal(), Monitor(quiet=False)
    monitor.begin(GCN, [1], [0])
    monitor.progress(0, "a", 0.5, value)
    monitor.live.refresh()
    assert "no val" in shown.getvalue()
    assert str(value) not in shown.getvalue()


@pytest.mark.parametrize(("count", "what"), [(1, "the run was"), (3, "all 3 runs were")])
def test_what_is_finished(capsys, count, what):
    monitor = Monitor(quiet=False)
    monitor.begin(GCN, [0], [count])
    monitor.end(0, FINISHED)
    assert lines(capsys) == [f"gcn on toy: {what} already finished", "gcn on toy: val 50.00, 1.0 s of training"]


def test_plain_lines_now_and_then(capsys, clock):
    monitor = Monitor(quiet=False)
    monitor.begin(GCN, [2], [1])
    for seconds, runs in ((5, 0.2), (20, 0.8), (21, 1.0), (40, 1.6)):
        clock[0] = seconds
        monitor.progress(0, "a", runs, 0.5)
    assert lines(capsys) == [
        "gcn on toy: 2 runs, 1 more already finished",
        "gcn on toy: best val 50.00, about 30 s left (40 % done)",
        "gcn on toy: best val 50.00, about 10 s left (80 % done)",
    ]


def test_what_an_earlier_process_did_took_no_time(capsys, clock):
    monitor = Monitor(quiet=False)
    monitor.begin(GCN, [2], [0])
    monitor.resume(0, "a", 5, 1.0)
    clock[0] = 20
    monitor.progress(0, "a", 1.5, 0.5)
    assert lines(capsys)[1:] == [
        "gcn on toy: continuing at epoch 6",
        "gcn on toy: best val 50.00, about 20 s left (75 % done)",
    ]


def test_the_rounds_of_auto(capsys, clock):
    monitor = Monitor(quiet=False)
    monitor.begin(["rung mlp", "rung gcn"], [2, 2], [0, 0], "round 1 of 2")
    clock[0] = 20
    monitor.progress(0, "a", 2, 0.5)
    monitor.end(0, FINISHED)
    monitor.end(1, FINISHED)
    monitor.begin(["rung gcn"], [2], [2], "round 2 of 2")
    clock[0] = 110
    monitor.progress(0, "b", 1, 0.5)
    monitor.end(0, FINISHED)
    assert lines(capsys) == [
        "round 1 of 2: 2 rungs, 4 runs",
        "round 1 of 2: best val 50.00, about 20 s left (50 % done)",
        "rung mlp: val 50.00, 1.0 s of training",
        "rung gcn: val 50.00, 1.0 s of training",
        "round 2 of 2: 1 rung, 2 runs",
        "round 2 of 2: best val 50.00, about 90 s left (50 % done)",
        "rung gcn: val 50.00, 1.0 s of training",
    ]


def test_waiting_is_told_once(capsys):
    monitor = Monitor(quiet=False)
    monitor.begin(GCN, [2], [0])
    monitor.wait()
    monitor.wait()
    assert lines(capsys)[1:] == ["gcn on toy: waiting for another process that trains the remaining runs"]


def test_quiet_says_nothing(capsys):
    monitor = Monitor()
    monitor.begin(GCN, [1], [0])
    monitor.prepare(1, 2)
    monitor.progress(0, "a", 1, 0.5)
    monitor.end(0, FINISHED)
    assert lines(capsys) == []


def test_a_label_takes_the_place_of_all_but_the_live_line(capsys, clock):
    monitor = Monitor(quiet=False)
    monitor.label = "trial 3"
    monitor.begin(GCN, [1], [0])
    clock[0] = 20
    monitor.progress(0, "a", 0.5, 0.5)
    monitor.end(0, FINISHED)
    assert lines(capsys) == ["trial 3: best val 50.00, about 20 s left (50 % done)"]


@pytest.mark.parametrize("model", ["gcn", "sdrf"])
def test_what_fit_shows(capsys, model):
    gm.fit(small_data(), model, settings=TABLES, progress=True, device="cpu")
    shown = lines(capsys)
    assert shown[0] == f"{model} on own: 2 runs"
    assert shown[-1].startswith(f"{model} on own: test ")
    gm.fit(small_data(), model, settings=TABLES, device="cpu")
    assert [line for line in lines(capsys) if "own" in line] == []


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 s"), (119, "119 s"), (121, "2 min"), (8000, "2.2 h")])
def test_times_in_words(seconds, words):
    assert in_time(seconds) == words
