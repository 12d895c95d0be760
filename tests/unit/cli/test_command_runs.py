"""`gumbel-mpnn runs`: listing with conditions, show, compare, export, reindex."""

import csv
import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from quick_options import GCN, QUICK

from gumbel_mpnn.runs.query import Record, find_records, read_curve
from gumbel_mpnn.runs.query import compare as compare_records
from quick_fit import edit

pytestmark = pytest.mark.usefixtures("tiny")


@pytest.fixture
def trained(command, here):
    """Three settings: gcn and mlp on two splits, and gcn with another rate; their fingerprints."""
    for options in ((), ("--model", "mlp"), ("--set", "train.lr=0.05", "--experiment", "rates")):
        assert command("train", "tiny", *GCN, *options).exit_code == 0
    rows = json.loads(command("runs", "--format", "json").stdout)
    assert [row["model"] for row in rows] == ["gcn", "gcn", "mlp"]
    rates, gcn, mlp = (row["folder"] for row in rows)
    return SimpleNamespace(rates=rates, gcn=gcn, mlp=mlp)


class TestList:
    @pytest.mark.parametrize(
        ("options", "count"),
        [
            ("--model mlp", 1),
            ("--dataset tiny --experiment train", 2),
            ("--where train.lr=0.05", 1),
            ("--where n>=2 --where test<=100", 3),
            ("--where test>100", 0),
            ("--where data.undirected=True", 3),
            ("--where data.undirected!=true", 0),
            ("--where model.norm=layer --where train.lr<1", 0),
        ],
    )
    def test_conditions(self, command, trained, options, count):
        result = command("runs", *options.split(), "--format", "json")
        assert len(json.loads(result.stdout)) == count

    def test_conditions_on_options_of_components(self, command, here):
        chosen = ("rewiring.regularizer=mix", "rewiring.regularizer_weight=1", "rewiring.regularizer.margin=0.5")
        changes = [word for change in chosen for word in ("--set", change)]
        assert command("train", "tiny", *QUICK, "--model", "gumbel-mpnn", *changes).exit_code == 0
        assert command("train", "tiny", *QUICK, "--model", "gumbel-mpnn").exit_code == 0
        for condition, count in (("=0.5", 1), (">0.6", 0)):
            rows = command("runs", "--where", f"rewiring.regularizer.margin{condition}", "--format", "json").stdout
            assert len(json.loads(rows)) == count

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ("--model gatt", "there is no model among the runs called 'gatt'"),
            ("--where test", "cannot read the condition 'test'"),
            ("--where train.lr<abc", "no run has a train.lr that can be compared with 'abc'"),
            ("--where model.norm=3", "no run has a model.norm that can be compared with 3.0"),
            ("--format json show x", "write --format after 'show'"),
            ("--runs elsewhere reindex", "write --runs after 'reindex'"),
            ("show zzz", "there is no finished run 'zzz' in runs"),
            ("export out.csv --to xls", "there is no form of export called 'xls'"),
        ],
    )
    def test_mistakes(self, command, trained, options, message):
        result = command("runs", *options.split())
        assert (result.exit_code, result.stdout) == (2, "")
        (line,) = result.stderr.splitlines()
        assert line.startswith("error: ")
        assert message in line


def test_two_files_of_one_name_are_told_apart(command, csv, own, here):
    command("train", *csv, *GCN, "--splits", "0")
    assert command("runs").stdout.splitlines()[2].split()[:2] == ["nodes", "gcn"]
    (own / "nodes.csv").write_text((own / "nodes.csv").read_text().replace("n3,", "n3,1", 1))
    command("train", *csv, *GCN, "--splits", "0")
    command("train", "tiny", *GCN, "--splits", "0")
    rows = json.loads(command("runs", "--format", "json").stdout)
    assert [row["dataset"] for row in rows] == ["nodes", "nodes", "tiny"]
    hashes = [row["data_hash"] for row in rows]
    assert len(set(hashes)) == 3
    names = [line[: line.index("  ")] for line in command("runs").stdout.splitlines()[2:]]
    assert names == [f"nodes ({hashes[0][:6]})", f"nodes ({hashes[1][:6]})", "tiny"]


def test_a_folder_that_is_not_there(command):
    result = command("runs", "--runs", "nowhere")
    assert (result.exit_code, result.stderr) == (0, "the folder nowhere does not exist yet\n")


def test_a_single_run_has_no_spread(command, tiny):
    result = command("train", "tiny", "--splits", "0", *GCN, "--format", "csv")
    (row,) = csv.DictReader(result.stdout.splitlines())
    assert (row["n"], row["std"], row["stderr"]) == ("1", "", "")
    assert "(one run), val" in result.stderr
    assert json.loads(command("runs", "--format", "json").stdout)[0]["std"] is None


class TestShow:
    def test_as_json(self, command, trained):
        fingerprint = trained.gcn.rpartition("/")[2]
        shown = json.loads(command("runs", "show", fingerprint[:9], "--format", "json").stdout)
        records = find_records_of(trained.gcn)
        assert [Record(**run) for run in shown["runs"]] == records
        assert (shown["folder"], shown["fingerprint"]) == (trained.gcn, fingerprint)
        assert shown["settings"] == records[0].settings
        assert shown["test"]["n"] == 2

    def test_as_text_settings_and_runs(self, command, trained):
        result = command("runs", "show", trained.rates)
        settings, runs = result.stdout.split("\n\n")
        assert "train.lr" in settings
        assert "0.05" in settings
        assert [line.split()[:2] for line in runs.splitlines()[2:]] == [["0", "0"], ["1", "0"]]

    def test_as_csv_runs_alone(self, command, trained):
        rows = list(csv.DictReader(command("runs", "show", trained.gcn, "--format", "csv").stdout.splitlines()))
        assert [row["split"] for row in rows] == ["0", "1"]


def find_records_of(folder):
    return list(find_records(Path(folder)))


class TestCompare:
    def test_settings_that_differ_and_the_paired_difference(self, command, trained):
        shown = json.loads(command("runs", "compare", trained.gcn, trained.rates, "--format", "json").stdout)
        assert list(shown["settings"]) == ["train.lr"]
        assert shown["settings"]["train.lr"][1] == 0.05
        ours, theirs = (find_records_of(folder) for folder in (trained.gcn, trained.rates))
        paired = compare_records(ours, theirs)
        assert shown["difference"] == pytest.approx(paired.mean)
        names = ("low", "high", "n", "p", "over", "verdict")
        assert [shown[name] for name in names] == [None, None, 2, paired.p, "splits", "too few splits"]

    def test_runs_without_a_counterpart_and_too_few_splits_are_told(self, command, trained):
        command("train", "tiny", "--splits", "1", "--seeds", "2", "--set", "train.patience=7", *GCN)
        found = json.loads(command("runs", "--where", "train.patience=7", "--format", "json").stdout)
        notes = command("runs", "compare", trained.gcn, found[0]["folder"]).stderr.splitlines()
        assert notes == [
            "left out, without a counterpart: 1 run of A, 1 of B",
            "no difference can be significant with fewer than 6 splits, or 6 seeds of one split: these runs have 1",
        ]

    def test_seeds_of_one_split(self, command):
        folders = []
        for model in ("gcn", "mlp"):
            command("train", "tiny", "--model", model, "--splits", "1", "--seeds", "6", "--set", "train.epochs=2")
            found = json.loads(command("runs", "--model", model, "--format", "json").stdout)
            folders.append(next(row["folder"] for row in found if row["n"] == 6))
        result = command("runs", "compare", *folders)
        assert "the test is over its seeds, and says nothing about other splits" in result.stderr
        assert re.search(r" seeds +(better|same|worse) \(one split\)$", result.stdout, re.M)
        shown = json.loads(command("runs", "compare", *folders, "--format", "json").stdout)
        assert shown["over"] == "seeds"
        assert shown["low"] <= shown["difference"] <= shown["high"]

    def test_as_text(self, command, trained):
        settings, result = command("runs", "compare", trained.gcn, trained.mlp).stdout.split("\n\n")
        assert "model.name" in settings
        assert "p (Wilcoxon)" in result

    def test_different_data(self, command, trained, csv):
        command("train", *csv, *GCN)
        own = json.loads(command("runs", "--dataset", "nodes", "--format", "json").stdout)[0]["folder"]
        result = command("runs", "compare", trained.gcn, own)
        assert result.exit_code == 2
        assert "use different data" in result.stderr

    def test_different_metrics(self, command, csv):
        command("train", *csv, *GCN)
        command("train", *csv, *GCN, "--set", "data.metric=macro_f1")
        rows = json.loads(command("runs", "--dataset", "nodes", "--format", "json").stdout)
        assert {row["metric"] for row in rows} == {"accuracy", "macro_f1"}
        result = command("runs", "compare", *(row["folder"] for row in sorted(rows, key=lambda row: row["metric"])))
        assert result.exit_code == 2
        assert "has the metric accuracy, but" in result.stderr
        assert "has macro_f1: train one of them with the data.metric of the other" in result.stderr


class TestExport:
    def test_csv(self, command, trained):
        result = command("runs", "export", "out.csv", "--experiment", "train")
        assert result.stderr == "4 runs are in out.csv\n"
        rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
        expected = [r for folder in (trained.gcn, trained.mlp) for r in find_records_of(folder)]
        assert [(row["model"], int(row["split"]), float(row["test"])) for row in rows] == [
            (record.settings["model"]["name"], record.split, record.test) for record in expected
        ]
        assert [float(row["train.lr"]) for row in rows] == [record.settings["train"]["lr"] for record in expected]

    def test_json_by_the_suffix(self, command, trained):
        assert command("runs", "export", "out.JSON", "--experiment", "rates").stderr == "2 runs are in out.JSON\n"
        rows = json.loads(Path("out.JSON").read_text())
        records = find_records_of(trained.rates)
        assert [(row["split"], row["test"], row["train.lr"], row["unit"]) for row in rows] == [
            (record.split, record.test, 0.05, "share") for record in records
        ]
        assert {row["data_hash"] for row in rows} == {records[0].data_hash}
        command("runs", "export", "table.json", "--to", "csv")
        assert Path("table.json").read_text().startswith("folder,experiment,")

    @pytest.mark.parametrize("package", ["tensorboard", "mlflow"])
    def test_a_package_that_is_not_installed(self, command, trained, here, monkeypatch, package):
        monkeypatch.setitem(sys.modules, package, None)
        result = command("runs", "export", "out", "--to", package)
        assert result.exit_code == 2
        assert result.stderr == f"error: the package {package} is not installed: pip install {package}\n"
        assert not (here / "out").exists()

    def test_tensorboard(self, command, trained, monkeypatch):
        writers = []

        class Writer:
            def __init__(self, log_dir):
                self.log_dir, self.scalars, self.hparams = log_dir, [], None
                writers.append(self)

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def add_scalar(self, tag, value, step):
                self.scalars.append((tag, value, step))

            def add_hparams(self, settings, results, run_name, global_step):
                self.hparams = (settings, results, run_name)

        monkeypatch.setitem(sys.modules, "tensorboard", ModuleType("tensorboard"))
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer))
        assert command("runs", "export", "out", "--to", "tensorboard", "--model", "mlp").exit_code == 0
        record = find_records_of(trained.mlp)[0]
        first, second = writers
        assert first.log_dir == f"out/train/tiny/mlp/{record.fingerprint}/split0-seed0"
        history = read_curve(Path(trained.mlp) / "split0-seed0/history.jsonl")
        assert first.scalars == [
            (curve, row[curve], row["epoch"]) for row in history for curve in ("train_loss", "val", "val_loss")
        ]
        assert first.hparams[1:] == ({"final_val": record.val, "final_test": record.test}, ".")
        assert first.hparams[0]["model.name"] == "mlp"
        assert second.log_dir.endswith("split1-seed0")

    def test_mlflow(self, command, trained, here, monkeypatch):
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        calls = []

        class Client:
            def __init__(self, tracking_uri):
                self.tracking_uri = tracking_uri
                calls.append(self)
                self.experiments, self.runs, self.ended = [], [], []
                self.metrics, self.params = {}, {}

            def create_experiment(self, name):
                self.experiments.append(name)
                return str(len(self.experiments))

            def create_run(self, experiment, run_name):
                self.runs.append((experiment, run_name))
                return SimpleNamespace(info=SimpleNamespace(run_id=run_name))

            def log_batch(self, run, metrics=(), params=()):
                assert len(metrics) + len(params) <= 100
                self.metrics.setdefault(run, []).extend(metrics)
                self.params.setdefault(run, []).extend(params)

            def set_terminated(self, run):
                self.ended.append(run)

        entities = SimpleNamespace(Metric=lambda *values: values, Param=lambda *values: values)
        monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(MlflowClient=Client, entities=entities))
        monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
        assert command("runs", "export", "out", "--to", "mlflow").exit_code == 0
        (client,) = calls
        assert client.tracking_uri == (here / "out").as_uri()
        assert client.experiments == ["rates/tiny", "train/tiny"]
        assert [experiment for experiment, _ in client.runs] == ["1", "1", "2", "2", "2", "2"]
        assert client.ended == [name for _, name in client.runs]
        record = find_records_of(trained.rates)[0]
        name = client.runs[0][1]
        assert ("train.lr", "0.05") in client.params[name]
        assert ("final_test", record.test, 0, 0) in client.metrics[name]

    def test_nothing_to_write_leaves_a_file_alone(self, command, trained, here):
        """The fault: a file of runs was replaced by an empty one."""
        (here / "out.csv").write_text("kept")
        for options in (("--where", "test>100"), ("--runs", "elsewhere")):
            result = command("runs", "export", "out.csv", *options)
            assert result.exit_code == 2
            assert "error: there is no such run in" in result.stderr
        assert (here / "out.csv").read_text() == "kept"

    def test_a_folder_that_is_there_is_not_added_to(self, command, trained, here, monkeypatch):
        monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace())
        monkeypatch.setitem(sys.modules, "mlflow.entities", SimpleNamespace())
        (here / "out").mkdir()
        (here / "out/meta.yaml").touch()
        result = command("runs", "export", "out", "--to", "mlflow")
        assert result.exit_code == 2
        assert "out exists already" in result.stderr


def test_reindex_sees_what_was_changed_by_hand(command, trained, here):
    record = next(here.glob("runs/rates/tiny/gcn/*/split0-seed0/record.json"))
    edit(record, test=1.0)
    assert command("runs", "reindex").stderr == "6 runs of 3 settings are in runs\n"
    (row,) = json.loads(command("runs", "--experiment", "rates", "--format", "json").stdout)
    other = next(here.glob("runs/rates/tiny/gcn/*/split1-seed0/record.json"))
    assert row["test"] == pytest.approx(0.5 * (1 + json.loads(other.read_text())["test"]))


def test_the_same_files_with_other_splits_are_one_data_set(command, csv, own, here):
    """The fault: after `train --final`, one file was listed as two data sets."""
    for options in ((), ("--final",)):
        assert command("train", *csv, *GCN, *options, "--splits", "0").exit_code == 0
    lines = command("runs").stdout.splitlines()[2:]
    assert [line.split()[:2] for line in lines] == [["nodes", "gcn"]] * 2
    (here / "nodes.csv").write_text((own / "nodes.csv").read_text().replace("n3,", "n3,1", 1))
    command("train", "--nodes", "nodes.csv", *csv[2:], *GCN, "--splits", "0")
    names = [line.split(" gcn ")[0].strip() for line in command("runs").stdout.splitlines()[2:]]
    assert len(names) == 3
    assert len(set(names)) == 2
    assert all(re.fullmatch(r"nodes \([0-9a-f]{6}\)", name) for name in names)


def test_a_single_run_is_not_called_runs(command, csv):
    command("train", *csv, *GCN, "--splits", "0")
    assert command("runs", "reindex").stderr == "1 run of 1 setting is in runs\n"
    assert command("runs", "export", "all.csv").stderr == "1 run is in all.csv\n"
