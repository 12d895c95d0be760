"""`gumbel-mpnn tune` on a data set, on own files and on the demo's graph."""

import json

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
