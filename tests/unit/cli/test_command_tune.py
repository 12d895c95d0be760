"""`gumbel-mpnn tune` on a data set, on own files and on the demo's graph."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gumbel_mpnn.cli.common import parse_duration
from gumbel_mpnn.runs import study
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
    assert "budget 3 trials of 1 run each (1 diverged)" in result.stderr
    assert not any("test" in row for row in rows)


def test_no_test_figure_is_shown_anywhere(command, space, tiny, monkeypatch):
    monkeypatch.setattr("gumbel_mpnn._util.live_line.PLAIN_LINE_SECONDS", -1.0)
    monkeypatch.setattr("gumbel_mpnn.training.loop.REPORT_SECONDS", -1.0)
    for format in ("text", "json"):
        result = command("tune", "tiny", "--space", space, "--device", "cpu", "--format", format, "--trials", "2")
        assert "test" not in result.stdout + result.stderr
        assert "best val" in result.stderr
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
        ("[train]\nlr = {low = 2, high = 1}\n", "the range of train.lr is backwards: low is 2 and high is 1"),
        ("[train]\nlr = {low = 0, high = 1, log = true}\n", "a logarithmic range needs a low above 0"),
        ("[train]\nepoch = [1, 2]\n", "there is no setting 'train.epoch': did you mean 'epochs'?"),
        ("[train]\nlr = []\n", "the list of choices of train.lr is empty"),
    ],
)
def test_a_space_that_is_none(command, space, text, sentence):
    space.write_text(text)
    result = command("tune", "demo", "--space", space)
    assert result.exit_code == 2
    assert sentence in result.stderr


QUICK = ("--splits", "0", "--trials", "2", "--device", "cpu", "--set", "train.epochs=2")


class TestDefaults:
    def test_no_space_is_needed(self, command, tiny):
        result = command("tune", "tiny", "--model", "sage", *QUICK, "--format", "json")
        rows = json.loads(result.stdout)
        assert [row["trial"] for row in sorted(rows, key=lambda row: row["trial"])] == [0, 1]
        assert all(row["model.hidden_channels"] in (64, 128, 256, 512) for row in rows)
        assert "sage on tiny: 2 trials of 1 run each, 8 settings searched" in result.stderr
        assert "optuna-dashboard runs/tune/studies.journal" in result.stderr

    def test_the_plain_backbone_has_the_same_budget_which_is_printed(self, command, tiny):
        result = command("tune", "tiny", "--model", "gumbel-mpnn", *QUICK, "--format", "json")
        assert [row["model"] for row in json.loads(result.stdout)] == ["gumbel-mpnn"] * 2 + ["gcn"] * 2
        for model in ("gumbel-mpnn", "gcn"):
            (line,) = [line for line in result.stderr.splitlines() if line.startswith(f"{model}: best val ")]
            assert "; budget 2 trials of 1 run each" in line

    def test_several_models_and_no_baseline(self, command, tiny):
        result = command("tune", "tiny", "--model", "mlp, gumbel-mpnn", "--no-baseline", *QUICK, "--format", "json")
        assert {row["model"] for row in json.loads(result.stdout)} == {"mlp", "gumbel-mpnn"}

    def test_a_setting_that_one_of_several_models_has(self, command, tiny):
        options = (
            "--set",
            "rewiring.keep=0.6",
            "--set",
            "rewiring.candidates=none",
            "--set",
            "rewiring.scorer=constant",
        )
        result = command("tune", "tiny", "--model", "gcn,gumbel-mpnn", *QUICK, *options)
        assert result.exit_code == 0
        result = command("tune", "tiny", "--model", "gcn,mlp", *QUICK, *options)
        assert result.stderr.startswith("error: model 'gcn' does not rewire the graph")

    def test_a_time_limit(self, command, tiny):
        result = command("tune", "tiny", "--timeout", "0.0001s", *QUICK)
        assert "gcn: no trial is finished; budget 0 trials of 1 run each, 0.0001s at most" in result.stderr

    def test_more_trials_later(self, command, space, tiny):
        arguments = ("tune", "tiny", "--space", space, "--splits", "0", "--device", "cpu")
        command(*arguments, "--trials", "1")
        assert "1 of 3 trials were done before" in command(*arguments).stderr

    def test_another_storage(self, command, here, space, tiny):
        arguments = ("tune", "tiny", "--space", space, "--splits", "0", "--device", "cpu", "--storage")
        result = command(*arguments, "sqlite:///study.db")
        assert "optuna-dashboard sqlite:///study.db" in result.stderr
        assert (here / "study.db").exists()
        assert (
            "error: cannot open the storage sqlite:///no/where.db: "
            in command(*arguments, "sqlite:///no/where.db").stderr
        )

    def test_the_password_of_a_storage_is_not_shown(self, command, here, space, tiny, monkeypatch):
        monkeypatch.setattr(study, "open_storage", lambda _, real=study.open_storage: real("sqlite:///study.db"))
        arguments = ("tune", "tiny", "--space", space, "--splits", "0", "--device", "cpu", "--storage")
        result = command(*arguments, "mysql://me:s:e@cret@host/x")
        assert "optuna-dashboard mysql://me:…@host/x" in result.stderr
        assert "cret" not in result.stderr


class TestResults:
    def fingerprint(self, here, experiment):
        (found,) = {record.fingerprint for record in find_records(here / "runs" / experiment)}
        return found

    def test_a_file_that_train_reads(self, command, here, space, csv):
        arguments = ("--splits", "0", "--device", "cpu")
        result = command("tune", *csv, "--space", space, *arguments, "--out", "best.toml", "--format", "json")
        assert "the best settings of gcn are in best.toml" in result.stderr
        about = tomllib.loads((here / "best.toml").read_text())["tuning"]
        best = json.loads(result.stdout)[0]
        assert (about["val"], about["trials"], about["rank"]) == (best["val"], 3, 1)
        assert command("train", *csv, "--preset", "best.toml", *arguments).exit_code == 0
        assert self.fingerprint(here, "train") == about["fingerprint"]
        again = command("tune", *csv, "--space", space, *arguments, "--out", "best.toml")
        assert again.exit_code == 0  # its own file is written again

    def test_a_name_that_train_finds(self, command, here, space, tiny):
        arguments = ("--splits", "0", "--device", "cpu")
        result = command("tune", "tiny", "--model", "gcn,mlp", "--space", space, *arguments, "--name", "mine")
        assert "use them with --preset mine on tiny" in result.stderr
        assert command("train", "tiny", "--model", "mlp", "--preset", "mine", *arguments).exit_code == 0
        folder = here.parent / "config" / "gumbel-mpnn" / "presets" / "mine" / "tiny"
        about = tomllib.loads((folder / "mlp.toml").read_text())["tuning"]
        assert self.fingerprint(here, "train") == about["fingerprint"]
        assert ["mine", "tiny", "gcn"] in [
            list(row.values()) for row in json.loads(command("presets", "--format", "json").stdout)
        ]
        shown = json.loads(command("presets", "show", "tiny", "mlp", "--preset", "mine", "--format", "json").stdout)
        assert shown["train"]["lr"] in (0.01, 0.1)

    def test_standard_output(self, command, space, tiny):
        result = command("tune", "tiny", "--space", space, "--splits", "0", "--device", "cpu", "--out", "-")
        assert tomllib.loads(result.stdout)["tuning"]["model"] == "gcn"
        assert "val %" in result.stderr

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (("--out", "space.toml"), "--out space.toml is a file that is read: give another name"),
            (("--out", "mine.toml"), "--out mine.toml exists and was not written by this command"),
            (("--out", "best.json"), "--out best.json must end in .toml, since --preset takes such files"),
            (("--out", "best.toml", "--model", "gcn,mlp"), "--out is a file for the settings of one model: use --name"),
            (("--name", "tuned"), "'tuned' is the name of presets that come with the package: give another name"),
            (("--timeout", "soon"), "'soon' is not a time above 0: write it as 600, 90s, 10m or 2h"),
            (("--timeout", "0"), "'0' is not a time above 0"),
            (("--model", "gnc"), "there is no model called 'gnc': did you mean 'gcn'?"),
            (("--model", "gcn,auto"), "'auto' trains several models and chooses one, but one is needed here"),
        ],
    )
    def test_what_is_refused_before_anything_is_trained(
        self, command, here, space, tiny, no_training, options, sentence
    ):
        no_training()
        (here / "mine.toml").write_text("[train]\nlr = 0.1\n")
        result = command("tune", "tiny", "--space", "space.toml", *options)
        assert result.exit_code == 2
        assert sentence in result.stderr
        assert result.stderr.count("\n") == 1

    def test_another_file_is_overwritten_only_by_force(self, command, here, space, tiny):
        (here / "mine.toml").write_text("[train]\nlr = 0.1\n")
        arguments = ("tune", "tiny", "--space", space, "--splits", "0", "--device", "cpu", "--trials", "1")
        assert command(*arguments, "--out", "mine.toml", "--force").exit_code == 0
        assert "tuning" in tomllib.loads((here / "mine.toml").read_text())


@pytest.mark.parametrize(
    ("text", "seconds"), [("600", 600), ("90s", 90), (" 10m ", 600), ("1.5h", 5400), ("1d", 86400)]
)
def test_times(text, seconds):
    assert parse_duration(text) == seconds


def test_optuna_is_not_imported_for_help():
    code = "import sys; from gumbel_mpnn.cli import app; app(['tune', '--help'], standalone_mode=False);"
    code += "sys.exit('imported' if {'optuna', 'torch'} & set(sys.modules) else 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
