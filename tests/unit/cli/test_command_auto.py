"""`auto` on the command line: the table of rungs, one sentence, and a line that tells what is left."""

import json

import pytest
from typer.testing import CliRunner

from gumbel_mpnn.cli import app
from gumbel_mpnn.config.rungs import read_rungs
from gumbel_mpnn.runs import Step
from gumbel_mpnn.runs.progress import ProgressMonitor

RUNGS = [rung for rung in read_rungs() if rung.suits(has_features=True)]
FAST = ["--set", "train.epochs=2", "--set", "model.hidden_channels=4"]


@pytest.fixture
def files(tmp_path):
    """A ring of nodes of two classes, with one feature that tells them apart."""
    nodes = "\n".join(f"n{k},{k % 2 + 0.1 * (k % 3)},{'ab'[k % 2]}" for k in range(40))
    edges = "\n".join(f"n{k},n{(k + 2) % 40}" for k in range(40))
    (tmp_path / "nodes.csv").write_text(f"id,x,class\n{nodes}\n")
    (tmp_path / "edges.csv").write_text(f"source,target\n{edges}\n")
    return ["--nodes", str(tmp_path / "nodes.csv"), "--edges", str(tmp_path / "edges.csv"), "--label", "class"]


def test_own_data_without_a_model(files, tmp_path):
    command = ["train", *files, *FAST, "--splits", "0-1", "--runs", str(tmp_path / "runs")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert all(rung.name in done.stderr for rung in RUNGS)
    assert "auto: " in done.stdout
    last, folder = done.stderr.strip().splitlines()[-2:]
    assert last.startswith("no rewiring needed: ") or " better than the best plain model, " in last
    shown = CliRunner().invoke(
        app, ["runs", "show", folder.removeprefix("runs are in "), "--runs", str(tmp_path / "runs")]
    )
    assert f"auto on 2 runs: {last}" in shown.stderr
    assert RUNGS[-1].about in shown.stdout


def test_json_alone_on_standard_output(files, tmp_path):
    command = ["train", *files, *FAST, "--splits", "0-1", "--runs", str(tmp_path / "runs"), "--format", "json"]
    values = json.loads(CliRunner().invoke(app, command).stdout)
    names = [rung.name for rung in RUNGS]
    assert [rung["name"] for rung in values["choice"]["rungs"]] == names
    assert values["choice"]["chosen"] in names


def test_the_time_left_is_that_of_all_rungs(monkeypatch, capsys):
    from helpers import make_settings

    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monitor = ProgressMonitor()
    monitor.rung(Step("gcn", 1, 1, 2, before=0.0, share=0.25))
    monitor.begin(make_settings(epochs=10), replicas=1, finished=0, groups=1, bytes_needed=0)
    monitor.group(1, 10)
    now[0] = 20.0
    monitor.progress(5, 0.5)  # an eighth of the work
    monitor.rung(Step("judged-appnp", 2, 1, 1, before=0.5, share=0.5))
    monitor.begin(make_settings(epochs=10), replicas=1, finished=0, groups=1, bytes_needed=0)
    monitor.group(1, 10)
    now[0] = 60.0
    monitor.progress(5, 0.5)  # three quarters
    monitor.step = None  # as after the end of a setting
    monitor.begin(make_settings(epochs=10), replicas=1, finished=0, groups=1, bytes_needed=0)
    first, second, third = capsys.readouterr().err.splitlines()
    assert third.startswith("gcn on ")
    assert first.startswith("rung 1 of 2, gcn on ")
    assert first.endswith("about 140 s left")
    assert second.startswith("round 2, rung 1 of 1, judged-appnp on ")
    assert second.endswith("about 20 s left")
