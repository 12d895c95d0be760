"""`gumbel-mpnn train` on own files and on a data set by name."""

import csv as csv_format
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from command_fixtures import GCN, QUICK
from gumbel_mpnn.data import from_npz, save_graph
from gumbel_mpnn.settings import TrainSettings
from gumbel_mpnn.settings.presets import read_rungs

KEYS = ["dataset", "model", "metric", "unit", "n", "test", "val", "seconds", "runs"]


def records_of(shown):
    return [json.loads((Path(folder) / "record.json").read_text()) for folder in shown["runs"]]


def check_object(shown, runs):
    """The object has the mean of the records, whose folders are complete."""
    assert list(shown) == KEYS
    tests = [record["test"] for record in records_of(shown)]
    assert shown["n"] == runs == len(tests)
    assert shown["test"]["mean"] == pytest.approx(sum(tests) / runs)
    for folder in shown["runs"]:
        files = sorted(file.name for file in Path(folder).iterdir())
        assert files == ["history.jsonl", "model.safetensors", "record.json"]


def read_predictions(path):
    with path.open(newline="") as file:
        return list(csv_format.DictReader(file))


class TestOwnFiles:
    def test_csv_in_a_real_process(self, own, csv, here, environment):
        arguments = ["train", *csv, *GCN, "--splits", "0-1", "--seeds", "2", "--format", "json"]
        arguments += ["--predictions", "out/predicted.csv", "--runs", "kept"]
        call = [sys.executable, "-m", "gumbel_mpnn", *map(str, arguments)]
        done = subprocess.run(call, env=environment, cwd=here, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shown = json.loads(done.stdout)
        assert (shown["dataset"], shown["model"], shown["metric"]) == ("nodes", "gcn", "accuracy")
        check_object(shown, runs=4)
        preface, *lines = done.stderr.splitlines()
        assert preface == "read 20 nodes (1 without a label), 40 edges, 2 features, 2 classes"
        assert lines[0].startswith("gcn on nodes: 4 runs")
        assert lines[-2:] == [
            "predictions of 20 nodes are in out/predicted.csv",
            f"runs are in {shown['runs'][0].rpartition('/')[0]}",
        ]
        predicted = read_predictions(here / "out/predicted.csv")
        assert [row["node"] for row in predicted] == [f"n{k}" for k in range(20)]
        assert {row["average"] for row in predicted} <= {"cat", "dog"}

    @pytest.mark.parametrize("file", ["graph.npz", "graph.graphml", "UP.NPZ", "up.graphml.gz", "up.xml"])
    def test_graph_files(self, own, command, here, file):
        content = (own / ("graph.npz" if file.lower().endswith("npz") else "graph.graphml")).read_bytes()
        (own / file).write_bytes(gzip.compress(content) if file.endswith("gz") else content)
        label = () if file.lower().endswith("npz") else ("--label", "kind")
        result = command("train", "--graph", own / file, *label, *GCN, "--splits", "0", "--predictions", "p.csv")
        assert result.exit_code == 0, result.stderr
        assert "read 20 nodes (1 without a label), 40 edges, 2 features, 2 classes" in result.stderr
        predicted = read_predictions(here / "p.csv")
        nodes, classes = ("{}", {"0", "1"}) if not label else ("n{}", {"cat", "dog"})
        assert {row["node"] for row in predicted} == {nodes.format(k) for k in range(20)}
        assert {row["average"] for row in predicted} <= classes

    def test_a_saved_graph_knows_its_label_and_its_directions(self, command, train, own, here):
        save_graph(from_npz(own / "graph.npz"), here / "saved.graphml")
        graph = ("--graph", "saved.graphml", *GCN, "--splits", "0")
        assert train(*graph, "--label", "label") == train(*graph)
        assert " 80 directed edges," in command("train", *graph, "--set", "data.undirected=false").stderr
        save_graph(from_npz(own / "graph.npz", undirected=False), here / "saved.npz")
        told = command("train", "--graph", "saved.npz", *GCN, "--splits", "0").stderr
        assert "this graph is directed (undirected is false), but is treated as undirected" in told

    @pytest.mark.parametrize(
        ("edges", "undirected", "said"),
        [
            ("a,b\nb,a\na,b\nb,c\nc,d\n", "true", "3 edges (2 repeats merged)"),
            ("a,b\nb,a\na,b\nb,c\nc,d\n", "false", "4 directed edges (1 repeat merged)"),
            ("a,b\nc,b\nc,c\n", "true", "2 edges"),
        ],
    )
    def test_edges_are_counted_as_they_are_trained_on(self, command, here, edges, undirected, said):
        rows = "".join(f"{node},{k},{'xy'[k % 2]}\n" for k, node in enumerate("abcdefghij"))
        (here / "nodes.csv").write_text("id,f,kind\n" + rows)
        (here / "edges.csv").write_text("source,target\n" + edges)
        files = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind", "--splits", "0", *GCN)
        lines = command("train", *files, "--set", f"data.undirected={undirected}").stderr.splitlines()
        if "c,c" in edges:
            assert lines[1].startswith("warning: this graph has 1 self-loop, which is left out")
        assert lines[0] == f"read 10 nodes (0 without a label), {said}, 1 feature, 2 classes"

    def test_a_column_that_is_no_feature_is_told(self, command, own, csv):
        text = (own / "nodes.csv").read_text()
        (own / "nodes.csv").write_text(text.replace("n4,", "n4,tall", 1))
        told, preface, *_ = command("train", *csv, *GCN, "--splits", "0").stderr.splitlines()
        assert told.startswith("warning: the column 'height' cannot be a feature, since line ")
        assert " 1 feature, " in preface

    def test_only_the_named_features(self, train, csv):
        whole = train(*csv, *GCN, "--splits", "0")
        assert train(*csv, "--features", "weight", *GCN, "--splits", "0") != whole
        assert train(*csv, "--features", "height, weight", *GCN, "--splits", "0") == whole

    def test_without_edges_or_features(self, command, own):
        result = command("train", "--nodes", own / "nodes.csv", "--label", "kind", "--splits", "0", *GCN)
        assert "read 20 nodes (1 without a label), 0 edges, 2 features, 2 classes" in result.stderr
        lines = (own / "nodes.csv").read_text().splitlines()
        (own / "names.csv").write_text("".join(f"{line.split(',')[0]},{line.split(',')[3]}\n" for line in lines))
        files = ("--nodes", own / "names.csv", "--edges", own / "edges.csv")
        result = command("train", *files, "--label", "kind", "--splits", "0", *GCN)
        assert result.exit_code == 0
        assert "warning: this graph has no features, so each node gets one of its own" in result.stderr

    @pytest.mark.parametrize(("file", "name"), [("my graph (2).npz", "my-graph-2"), ("Cora.npz", "own-Cora")])
    def test_runs_are_listed_by_the_names_of_files(self, train, own, file, name):
        """A name of a data set is not taken: its presets would be."""
        (own / file).write_bytes((own / "graph.npz").read_bytes())
        folder = Path(train("--graph", own / file, *GCN, "--splits", "0"))
        assert folder.parts[-3] == name
        record = json.loads((folder / "split0-seed0/record.json").read_text())
        assert record["settings"]["train"]["lr"] == TrainSettings().lr


@pytest.mark.usefixtures("tiny")
class TestDataSet:
    def test_finished_runs_are_not_trained_again(self, command):
        first = command("train", "tiny", *GCN, "--format", "json")
        check_object(json.loads(first.stdout), runs=2)
        assert json.loads(first.stdout)["runs"][0].startswith("runs/train/tiny/gcn/")
        again = command("train", "Tiny", *GCN, "--format", "json")
        assert again.stdout == first.stdout
        assert "gcn on tiny: all 2 runs were already finished\n" in again.stderr
        more = command("train", "tiny", *GCN, "--seeds", "3")
        assert "gcn on tiny: 4 runs, 2 more already finished" in more.stderr

    def test_splits_in_the_order_asked_for(self, command):
        shown = json.loads(command("train", "tiny", *GCN, "--splits", "1,0", "--format", "json").stdout)
        assert [Path(folder).name for folder in shown["runs"]] == ["split1-seed0", "split0-seed0"]

    def test_folders_by_option_and_by_variable(self, train, here, tmp_path, monkeypatch):
        train("tiny", *GCN, "--runs", "one", "--experiment", "trial")
        monkeypatch.setenv("GUMBEL_MPNN_RUNS", "two")
        monkeypatch.delenv("GUMBEL_MPNN_DATA")
        train("tiny", *GCN, "--data-root", tmp_path / "data")
        assert sorted(path.name for path in here.iterdir()) == ["one", "two"]
        assert [path.parts[1] for path in Path("one").glob("**/record.json")] == ["trial"] * 2

    @pytest.mark.parametrize("family", ["tuned", "paper"])
    def test_a_family_that_has_nothing_for_a_model_is_told(self, command, csv, family):
        told = f"warning: there is no {family} preset for gcn on tiny: the default settings are used\n"
        assert command("train", "tiny", *GCN, "--preset", family, "--quiet").stderr == told
        own = command("train", *csv, *GCN, "--splits", "0", "--preset", family, "--quiet").stderr
        assert own == told.replace("tiny", "nodes") * (family == "paper")  # own data never has a default preset

    def test_the_preset_of_the_backbone_is_borrowed(self, command, monkeypatch):
        tuned = {"tiny": {"gat": {"train": {"lr": 0.5}}}}
        monkeypatch.setattr("gumbel_mpnn.settings.presets._packaged", lambda family: tuned)
        options = ("--model", "drop-edge", "--set", "model.backbone=gat", *QUICK, "--format", "json")
        result = command("train", "tiny", *options)
        assert records_of(json.loads(result.stdout))[0]["settings"]["train"]["lr"] == 0.5

    def test_a_single_run_has_no_spread(self, command):
        result = command("train", "tiny", "--splits", "0", *GCN, "--format", "csv")
        assert result.stdout.startswith("dataset,model,metric,n,test,std,stderr,val,seconds")
        (row,) = csv_format.DictReader(result.stdout.splitlines())
        assert (row["n"], row["std"], row["stderr"]) == ("1", "", "")
        assert "(one run), val" in result.stderr


def test_own_data_without_a_model(command, csv):
    fast = ("--set", "train.epochs=2", "--set", "model.hidden_channels=4", "--splits", "0-1")
    names = [rung.name for rung in read_rungs() if rung.suits(has_features=True)]
    done = command("train", *csv, *fast)
    assert done.exit_code == 0, done.stderr
    assert all(name in done.stderr for name in names)
    assert "auto: " in done.stdout
    last, folder = done.stderr.strip().splitlines()[-2:]
    assert last.startswith("no rewiring needed: ") or " better than the best plain model, " in last
    assert f"auto on 2 runs: {last}" in command("runs", "show", folder.removeprefix("runs are in ")).stderr
    choice = json.loads(command("train", *csv, *fast, "--format", "json").stdout)["choice"]
    assert [rung["name"] for rung in choice["rungs"]] == names
    assert choice["chosen"] in names


class TestFinal:
    def test_a_model_without_test_nodes(self, command, csv, here):
        result = command("train", *csv, *GCN, "--final", "--predictions", "out.csv", "--format", "json")
        shown = json.loads(result.stdout)
        assert (shown["n"], shown["test"]["mean"]) == (10, None)
        assert len(read_predictions(here / "out.csv")) == 20
        (told,) = [line for line in result.stderr.splitlines() if line.startswith("gcn on nodes: val")]
        assert "test" not in told

    def test_the_same_model_on_every_node(self, command, train, csv, here):
        folder = train(*csv, *GCN, "--splits", "0-2")
        best = sorted(
            json.loads((here / folder / f"split{k}-seed0/record.json").read_text())["best_epoch"] for k in range(3)
        )
        how = ("--final", "--epochs-from", folder.rpartition("/")[2], "--seeds", "2", "--predictions", "out.csv")
        shown = json.loads(command("train", *csv, *how, "--device", "cpu", "--format", "json").stdout)
        records = records_of(shown)
        assert [(r["val"], r["test"], r["epochs"]) for r in records] == [(None, None, best[1])] * 2
        assert records[0]["settings"]["model"]["hidden_channels"] == 8
        assert len(read_predictions(here / "out.csv")) == 20
        new = shown["runs"][0].rpartition("/")[0]
        detail = json.loads(command("runs", "show", new, "--format", "json").stdout, parse_constant=pytest.fail)
        assert detail["test"] == {"mean": None, "std": None, "stderr": None, "n": 0}
