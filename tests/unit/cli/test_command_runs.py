"""`gumbel-mpnn runs` and `gumbel-mpnn data`: lists, one setting, comparison, export."""

import csv as csv_format
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from command_fixtures import GCN
from gumbel_mpnn.data import specs
from gumbel_mpnn.runs.compare import compare
from gumbel_mpnn.runs.store import Record, find_records

pytestmark = pytest.mark.usefixtures("tiny")


def records_of(folder):
    return list(find_records(Path(folder)))


@pytest.fixture
def listed(command):
    """Rows of the list of runs."""

    def run(*options):
        result = command("runs", *options, "--format", "json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout, parse_constant=pytest.fail)

    return run


@pytest.fixture
def trained(train):
    """Folders of three settings: gcn and mlp on two splits, and gcn with another rate."""
    more = {"gcn": (), "mlp": ("--model", "mlp"), "rates": ("--set", "train.lr=0.05", "--experiment", "rates")}
    return SimpleNamespace(**{name: train("tiny", *GCN, *options) for name, options in more.items()})


class TestList:
    def test_one_row_for_each_setting(self, command, listed, trained):
        rows = listed()
        assert [(row["dataset"], row["model"], row["n"]) for row in rows] == [
            ("tiny", model, 2) for model in ("gcn", "gcn", "mlp")
        ]
        shown = json.loads(command("train", "tiny", *GCN, "--format", "json").stdout)
        (row,) = [row for row in rows if row["folder"] == trained.gcn]
        assert (row["test"], row["std"]) == pytest.approx((shown["test"]["mean"], shown["test"]["std"]))
        assert (row["unit"], row["metric"]) == ("share", "accuracy")

    @pytest.mark.parametrize(
        ("condition", "count"),
        [
            ("experiment == 'train' and model == 'gcn'", 1),
            ("`train.lr` == 0.05 or test > 1", 1),
            ("n >= 2 and test <= 1", 3),
        ],
    )
    def test_conditions(self, listed, trained, condition, count):
        assert len(listed("--where", condition)) == count

    @pytest.mark.parametrize("condition", ["tset > 0.5", "val >", "__import__('os')"])
    def test_conditions_that_cannot_be_read(self, command, trained, condition):
        result = command("runs", "--where", condition)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"error: cannot read the condition {condition!r}: ")
        assert result.stderr.count("\n") == 1

    def test_two_files_of_one_name_are_told_apart(self, command, listed, train, csv, own):
        train(*csv, *GCN, "--splits", "0")
        assert command("runs").stdout.splitlines()[2].split()[:2] == ["nodes", "gcn"]
        (own / "nodes.csv").write_text((own / "nodes.csv").read_text().replace("n3,", "n3,1", 1))
        train(*csv, *GCN, "--splits", "0")
        train("tiny", *GCN, "--splits", "0")
        hashes = [row["data_hash"] for row in listed()]
        assert len(set(hashes)) == 3
        names = [line[: line.index("  ")] for line in command("runs").stdout.splitlines()[2:]]
        assert names == [f"nodes ({hashes[0][:6]})", f"nodes ({hashes[1][:6]})", "tiny"]

    def test_no_runs(self, command, here):
        result = command("runs", "--runs", "nowhere")
        assert (result.exit_code, result.stderr) == (0, "the folder nowhere does not exist yet\n")
        assert result.stdout.startswith("data set  model  metric  runs ")
        assert list(here.iterdir()) == []


class TestShow:
    def test_as_json(self, command, trained):
        fingerprint = trained.gcn.rpartition("/")[2]
        shown = json.loads(command("runs", "show", fingerprint[:9], "--format", "json").stdout)
        records = records_of(trained.gcn)
        assert [Record(**run) for run in shown["runs"]] == records
        assert (shown["folder"], shown["fingerprint"]) == (trained.gcn, fingerprint)
        assert (shown["settings"], shown["test"]["n"]) == (records[0].settings, 2)

    def test_as_text_and_csv(self, command, trained):
        settings, runs = command("runs", "show", trained.rates).stdout.split("\n\n")
        assert re.search(r"train.lr +0.05", settings)
        assert [line.split()[:2] for line in runs.splitlines()[2:]] == [["0", "0"], ["1", "0"]]
        rows = csv_format.DictReader(command("runs", "show", trained.gcn, "--format", "csv").stdout.splitlines())
        assert [row["split"] for row in rows] == ["0", "1"]

    def test_several_settings(self, command, trained):
        assert "is not the folder of one setting with finished runs" in command("runs", "show", "runs").stderr


class TestCompare:
    def test_settings_that_differ_and_the_paired_difference(self, command, trained):
        shown = json.loads(command("runs", "compare", trained.gcn, trained.rates, "--format", "json").stdout)
        assert list(shown["settings"]) == ["train.lr"]
        assert shown["settings"]["train.lr"][1] == 0.05
        paired = compare(records_of(trained.gcn), records_of(trained.rates))
        assert shown["difference"] == pytest.approx(paired.mean)
        names = ("low", "high", "n", "p", "over", "verdict")
        assert [shown[name] for name in names] == [None, None, 2, paired.p, "splits", "too few splits"]
        settings, result = command("runs", "compare", trained.gcn, trained.mlp).stdout.split("\n\n")
        assert "model.name" in settings
        assert "p (Wilcoxon)" in result

    def test_runs_without_a_counterpart_are_told(self, command, train, trained):
        other = train("tiny", "--splits", "1", "--seeds", "2", "--set", "train.patience=7", *GCN)
        told = command("runs", "compare", trained.gcn, other).stderr
        assert told == "left out, without a counterpart: 1 run of A, 1 of B\n"

    def test_different_data_and_metrics(self, refused, train, trained, csv):
        own = train(*csv, *GCN)
        refused("runs", "compare", trained.gcn, own, message="use different data")
        other = train(*csv, *GCN, "--set", "data.metric=macro_f1")
        refused("runs", "compare", own, other, message="has macro_f1: train both with one data.metric")


def test_export_as_csv_and_json(command, trained):
    records = [record for folder in (trained.gcn, trained.mlp) for record in records_of(folder)]
    expected = [(r.settings["model"]["name"], r.split, r.test, r.settings["train"]["lr"]) for r in records]
    for name in ("out.csv", "out.JSON"):
        result = command("runs", "export", name, "--where", "experiment == 'train'")
        assert result.stderr == f"4 runs are in {name}\n"
    rows = list(csv_format.DictReader(Path("out.csv").read_text().splitlines()))
    found = [(row["model"], int(row["split"]), float(row["test"]), float(row["train.lr"])) for row in rows]
    assert found == expected
    rows = json.loads(Path("out.JSON").read_text(), parse_constant=pytest.fail)
    assert [(row["model"], row["split"], row["test"], row["train.lr"]) for row in rows] == expected


class TestTrialsOfTune:
    @pytest.fixture
    def trials(self, command, train, here):
        """Folders of two trials, beside one setting that is not a trial."""
        (here / "space.toml").write_text("[model]\nhidden_channels = 4\n[train]\nepochs = 3\nlr = [0.01, 0.1]\n")
        assert command("tune", "tiny", "--space", "space.toml", "--device", "cpu").exit_code == 0
        train("tiny", "--model", "mlp", "--set", "train.epochs=1", "--device", "cpu")
        rows = json.loads(command("runs", "--where", "experiment == 'tune'", "--format", "json").stdout)
        return [row["folder"] for row in rows]

    def test_their_test_results_are_hidden(self, command, listed, trials):
        assert len(trials) == 2
        hidden = {row["folder"] for row in listed() if row["test"] is None and row["val"] is not None}
        assert hidden == set(trials)
        assert all(row["test"] is not None for row in listed("--test"))
        assert "--test shows them" in command("runs").stderr
        assert "--test shows them" not in command("runs", "--where", "experiment == 'train'").stderr
        assert [row["model"] for row in listed("--where", "test >= 0")] == ["mlp"]
        shown = json.loads(command("runs", "show", trials[0], "--format", "json").stdout)
        assert (shown["test"], {run["test"] for run in shown["runs"]}) == (None, {None})
        shown = json.loads(command("runs", "show", trials[0], "--test", "--format", "json").stdout)
        assert [run["test"] for run in shown["runs"]] == [record.test for record in records_of(trials[0])]

    def test_their_validation_results_are_compared(self, command, trials):
        ours, theirs = map(records_of, trials)
        for options, figure in (((), "val"), (("--test",), "test")):
            shown = json.loads(command("runs", "compare", *trials, *options, "--format", "json").stdout)
            expected = [getattr(a, figure) - getattr(b, figure) for a, b in zip(ours, theirs, strict=True)]
            assert (shown["figure"], shown["difference"]) == (figure, pytest.approx(sum(expected) / 2))
        assert "validation accuracy %" in command("runs", "compare", *trials).stdout


class TestData:
    def test_every_data_set_is_listed(self, command, tiny, here, tmp_path):
        path = tmp_path / "elsewhere/incomplete/roman_empire_without_features.npz"
        path.parent.mkdir(parents=True)
        path.touch()
        result = command("data", "--format", "json")
        rows = {row["name"]: row for row in json.loads(result.stdout)}
        assert list(rows) == list(specs)
        values = ["tiny", "present", 24, tiny.num_edges, 6, 3, "accuracy", "heterophilous", ""]
        assert list(rows["tiny"].values()) == values
        assert (rows["cora"]["state"], rows["minesweeper"]["metric"]) == ("missing", "roc_auc")
        assert rows["minesweeper"]["missing"] == "heterophilous/minesweeper.npz"
        assert (rows["leaf-count-3"]["state"], rows["leaf-count-3"]["nodes"]) == ("generated", 1260)
        assert result.stderr.startswith("searched in ")
        shown = command("data", "--data-root", tmp_path / "elsewhere").stdout
        assert re.search(r"^roman-empire +without features ", shown, re.M)
        assert list(here.iterdir()) == []

    def test_one_data_set(self, command, tiny):
        shown = json.loads(command("data", "TINY", "--format", "json").stdout)
        expected = {"name": "tiny", "metric": "accuracy", "nodes": 24, "edges": tiny.num_edges, "features": 6}
        expected |= {"classes": 3, "class_sizes": [8, 8, 8], "protocol": "heterophilous", "splits": 2, "train": "8"}
        expected |= {"protocols": ["heterophilous", "random-60-20-20"], "presets": [], "licence": "none"}
        assert {key: shown[key] for key in expected} == expected
        assert shown["degree_mean"] == pytest.approx(2 * tiny.num_edges / 24)
        lines = command("data", "tiny", "--protocol", "random-60-20-20").stdout.splitlines()
        text = dict(line.split(maxsplit=1) for line in lines[2:])
        assert (text["protocol"], text["splits"], text["class_sizes"]) == ("random-60-20-20", "10", "8, 8, 8")
        assert (text["train"], text["val"], text["test"]) == ("15", "6", "3")
