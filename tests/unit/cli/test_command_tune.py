"""`gumbel-mpnn tune` on a data set, on own files and on the demo's graph."""

import json
from pathlib import Path

import pytest

from gumbel_mpnn.runs.query import find_records

SPACE = "[model]\nhidden_channels = 4\n[train]\nepochs = 3\nlr = [1e30, 0.01, 0.1]\n"


@pytest.fixture
def space(here):
    path = here / "space.toml"
    path.write_text(SPACE)
    return path


def test_best_validation_first_and_what_diverged_last(command, space, tiny):
    result = command("tune", "tiny", "--space", space, "--splits", "0", "--device", "cpu", "--format", "json")
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert {row["train.lr"] for row in rows[:2]} == {0.01, 0.1}
    assert rows[0]["val"] >= rows[1]["val"]
    assert (rows[2]["train.lr"], rows[2]["val"], rows[2]["n"]) == (1e30, None, None)
    assert "training diverged for 1 of 3 settings" in result.stderr
    assert not any("test" in row for row in rows)


def test_no_test_figure_is_shown_anywhere(command, space, tiny, monkeypatch):
    monkeypatch.setattr("gumbel_mpnn._util.live_line.PLAIN_LINE_SECONDS", -1.0)
    monkeypatch.setattr("gumbel_mpnn.training.loop.REPORT_SECONDS", -1.0)
    for format in ("text", "json"):
        result = command("tune", "tiny", "--space", space, "--device", "cpu", "--format", format, "--trials", "2")
        assert "test" not in result.stdout + result.stderr
        assert "best val" in result.stderr or "already finished" in result.stderr
    assert all(row["unit"] == "share" and 0 <= row["val"] <= 1 for row in json.loads(result.stdout) if row["n"])


@pytest.fixture
def trials(command, here, tiny):
    """Folders of two trials, and one setting that is not a trial."""
    (here / "space.toml").write_text(SPACE.replace("1e30, ", ""))
    assert command("tune", "tiny", "--space", "space.toml", "--device", "cpu").exit_code == 0
    command("train", "tiny", "--model", "mlp", "--set", "train.epochs=1", "--device", "cpu")
    return [row["folder"] for row in json.loads(command("runs", "--experiment", "tune", "--format", "json").stdout)]


class TestTestResultsOfTrials:
    def test_are_hidden_in_the_list(self, command, trials):
        result = command("runs", "--format", "json")
        rows = json.loads(result.stdout)
        assert [(row["test"] is None, row["std"] is None) for row in rows] == [(False, False), *[(True, True)] * 2]
        assert all(row["val"] is not None for row in rows)
        assert "--test shows them" in result.stderr
        shown = command("runs", "--test", "--format", "json")
        assert all(row["test"] is not None for row in json.loads(shown.stdout))
        assert shown.stderr == ""
        assert command("runs", "--experiment", "train").stderr == ""

    def test_do_not_select_either(self, command, trials):
        result = command("runs", "--where", "test>=0", "--format", "json")
        assert [row["model"] for row in json.loads(result.stdout)] == ["mlp"]
        assert result.stderr.startswith("trials of tune are left out: ")
        shown = command("runs", "--where", "test>=0", "--test", "--format", "json").stdout
        assert len(json.loads(shown)) == 3

    def test_are_hidden_in_show(self, command, trials):
        hidden = json.loads(command("runs", "show", trials[0], "--format", "json").stdout)
        assert hidden["test"] is None
        assert {run["test"] for run in hidden["runs"]} == {None}
        text = command("runs", "show", trials[0])
        assert [line.split()[3] for line in text.stdout.splitlines()[-2:]] == ["–", "–"]
        assert "accuracy" not in text.stderr
        shown = json.loads(command("runs", "show", trials[0], "--test", "--format", "json").stdout)
        records = list(find_records(Path(trials[0])))
        assert [run["test"] for run in shown["runs"]] == [record.test for record in records]

    def test_are_not_compared(self, command, trials):
        ours, theirs = (list(find_records(Path(folder))) for folder in trials)
        for options, figure in (((), "val"), (("--test",), "test")):
            result = command("runs", "compare", *trials, *options, "--format", "json")
            shown = json.loads(result.stdout)
            expected = [getattr(a, figure) - getattr(b, figure) for a, b in zip(ours, theirs, strict=True)]
            assert (shown["figure"], shown["difference"]) == (figure, pytest.approx(sum(expected) / 2))
        assert "validation accuracy %" in command("runs", "compare", *trials).stdout

    def test_are_not_exported(self, command, trials):
        for options, hidden in (((), True), (("--test",), False)):
            command("runs", "export", "out.json", "--experiment", "tune", *options)
            rows = json.loads(Path("out.json").read_text())
            assert [row["test"] is None for row in rows] == [hidden] * 4


def test_quiet(command, space, tiny):
    result = command("tune", "tiny", "--space", space, "--splits", "0", "--device", "cpu", "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")


def test_own_files(command, space, csv):
    result = command("tune", "--space", space, *csv, "--splits", "0", "--trials", "1", "--device", "cpu")
    assert result.exit_code == 0
    assert "val %" in result.stdout


@pytest.mark.parametrize("tried", ["", "undirected = false", "undirected = [false, true]"])
def test_directions_of_own_files_are_read_where_they_are_wanted(command, here, csv, tried):
    (here / "mine.toml").write_text("[data]\nundirected = false\n")
    (here / "space.toml").write_text(f"[train]\nepochs = 1\nlr = [0.01]\n[data]\n{tried}\n")
    command(
        "train", *csv, "--model", "gcn", "--splits", "0", "--set", "data.undirected=false", "--set", "train.epochs=1"
    )
    preset = "none" if tried else "mine.toml"
    command("tune", *csv, "--space", "space.toml", "--preset", preset, "--splits", "0")
    (trained,) = find_records(here / "runs" / "train")
    searched = list(find_records(here / "runs" / "tune"))
    assert {record.data_hash for record in searched} == {trained.data_hash}
    assert False in {record.settings["data"]["undirected"] for record in searched}


def test_the_demo(command, space):
    result = command("tune", "demo", "--space", space, "--splits", "0", "--trials", "1", "--device", "cpu")
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("lr = 0.1\n", "setting 'lr' must be a table, but is 0.1"),
        ("[train]\nlr = 0.1\n", "space.toml contains nothing to search: give at least one setting a list of values"),
        ("[train]\nlr = []\n", "the list of choices of train.lr is empty"),
    ],
)
def test_a_space_that_is_none(command, space, text, sentence):
    space.write_text(text)
    result = command("tune", "demo", "--space", space)
    assert result.exit_code == 2
    assert sentence in result.stderr
