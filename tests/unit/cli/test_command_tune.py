"""`gumbel-mpnn tune` on a data set, on own files and on the demo's graph."""

import json
import tomllib

import pytest

from gumbel_mpnn.runs.store import find_records

SPACE = "[model]\nhidden_channels = 4\n[train]\nepochs = 3\nlr = [1e30, 0.01, 0.1]\n"
ONE = ("--splits", "0", "--device", "cpu")
SHORT = (*ONE, "--trials", "2", "--set", "train.epochs=2")


@pytest.fixture
def space(here):
    path = here / "space.toml"
    path.write_text(SPACE)
    return path


class TestSearch:
    def test_best_validation_first_and_no_test_result(self, command, space, tiny):
        result = command("tune", "tiny", "--space", space, *ONE, "--trials", "8", "--format", "json")
        assert result.exit_code == 0
        rows = json.loads(result.stdout)
        finished, diverged = ([row for row in rows if (row["train.lr"] == 1e30) is bad] for bad in (False, True))
        assert rows == sorted(finished, key=lambda row: -row["val"]) + diverged
        assert {row["train.lr"] for row in finished} == {0.01, 0.1}
        assert {(row["val"], row["n"]) for row in diverged} == {(None, None)}
        assert f"budget 8 trials of 1 run each ({len(diverged)} diverged)" in result.stderr
        assert "test" not in result.stdout + result.stderr

    def test_more_trials_later_and_quiet(self, command, space, tiny):
        arguments = ("tune", "tiny", "--space", space, *ONE)
        assert command(*arguments, "--trials", "1", "--quiet").stderr == ""
        told = command(*arguments, "--trials", "3").stderr
        assert "3 trials of 1 run each, 1 setting searched, 1 of them done before" in told

    def test_no_space_is_needed_and_the_backbone_has_the_same_budget(self, command, tiny):
        result = command("tune", "tiny", "--model", "gumbel-mpnn", *SHORT, "--format", "json")
        rows = json.loads(result.stdout)
        assert [row["model"] for row in rows] == ["gumbel-mpnn"] * 2 + ["gcn"] * 2
        for model in ("gumbel-mpnn", "gcn"):
            (line,) = [line for line in result.stderr.splitlines() if line.startswith(f"{model}: best val ")]
            assert "; budget 2 trials of 1 run each" in line

    def test_a_setting_that_the_backbone_does_not_have(self, command, tiny):
        options = ("--set", "rewiring.keep=0.6", *SHORT, "--format", "json")
        rows = json.loads(command("tune", "tiny", "--model", "gumbel-mpnn", *options).stdout)
        assert {row["model"] for row in rows} == {"gumbel-mpnn", "gcn"}
        result = command("tune", "tiny", "--model", "gcn", *options)
        assert result.stderr.startswith("error: model 'gcn' does not rewire the graph")

    def test_a_time_limit(self, command, tiny):
        result = command("tune", "tiny", "--timeout", "0.0001", *SHORT)
        assert "gcn: no trial is finished; budget 0 trials of 1 run each, 0.0001 s at most" in result.stderr

    def test_another_storage(self, command, here, space, tiny):
        arguments = ("tune", "tiny", "--space", space, *ONE, "--storage")
        command(*arguments, "sqlite:///study.db")
        assert (here / "study.db").exists()
        refused = command(*arguments, "sqlite:///no/where.db").stderr
        assert "error: cannot open the storage sqlite:///no/where.db: " in refused

    @pytest.mark.parametrize("tried", ["", "undirected = [false, true]"])
    def test_directions_of_own_files_are_read_where_they_are_wanted(self, command, train, here, csv, tried):
        (here / "mine.toml").write_text("[data]\nundirected = false\n")
        (here / "space.toml").write_text(f"[train]\nepochs = 1\nlr = [0.01]\n[data]\n{tried}\n")
        train(*csv, "--model", "gcn", *ONE, "--set", "data.undirected=false", "--set", "train.epochs=1")
        preset = "none" if tried else "mine.toml"
        result = command("tune", *csv, "--space", "space.toml", "--preset", preset, *ONE)
        assert result.exit_code == 0, result.stderr
        (trained,) = find_records(here / "runs" / "train")
        searched = list(find_records(here / "runs" / "tune"))
        assert {record.data_hash for record in searched} == {trained.data_hash}
        assert False in {record.settings["data"]["undirected"] for record in searched}


class TestResults:
    def fingerprint(self, here):
        (found,) = {record.fingerprint for record in find_records(here / "runs" / "train")}
        return found

    def test_a_file_that_train_reads(self, command, train, here, space, csv):
        options = ("--space", space, *ONE, "--trials", "3", "--out")
        result = command("tune", *csv, *options, "best.toml", "--format", "json")
        assert "the best settings of gcn are in best.toml" in result.stderr
        about = tomllib.loads((here / "best.toml").read_text())["tuning"]
        assert (about["val"], about["trials"]) == (json.loads(result.stdout)[0]["val"], 3)
        train(*csv, "--preset", "best.toml", *ONE)
        assert self.fingerprint(here) == about["fingerprint"]
        again = command("tune", *csv, *options, "best.toml")
        assert (again.exit_code, "--out best.toml exists" in again.stderr) == (2, True)
        shown = command("tune", *csv, *options, "-")
        assert tomllib.loads(shown.stdout)["tuning"]["model"] == "gcn"
        assert "val %" in shown.stderr

    def test_a_name_that_train_finds(self, command, train, here, space, tiny):
        arguments = ("tune", "tiny", "--model", "frozen", "--space", space, *ONE, "--name", "mine")
        assert "use them with --preset mine on tiny" in command(*arguments).stderr
        train("tiny", "--model", "gcn", "--preset", "mine", *ONE)
        file = here.parent / "config" / "gumbel-mpnn" / "presets" / "mine.toml"
        about = tomllib.loads(file.read_text())["tiny"]["gcn"]["tuning"]
        assert self.fingerprint(here) == about["fingerprint"]
        presets = json.loads(command("data", "tiny", "--format", "json").stdout)["presets"]
        assert sorted(presets) == ["frozen (mine)", "gcn (mine)"]
        assert "--name mine: this name is taken: give another one" in command(*arguments).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--out", "space.toml", "--force"), "--out space.toml is a file that is read: give another name"),
        (("--out", "best.json"), "--out best.json must end in .toml"),
        (("--name", "tuned"), "'tuned' is the name of presets that come with the package: give another name"),
        (("--timeout", "2h"), "invalid value for '--timeout': "),
    ],
)
def test_what_is_refused_before_anything_is_trained(refused, space, tiny, options, message):
    refused("tune", "tiny", "--space", "space.toml", *options, message=message)
