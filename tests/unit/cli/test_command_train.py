"""`gumbel-mpnn train` on own files and on a data set by name."""

import csv as csv_format
import gzip
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from quick_options import GCN, QUICK

from gumbel_mpnn.config import TrainSettings
from gumbel_mpnn.data import from_npz, save_graph

KEYS = ["dataset", "model", "metric", "unit", "n", "test", "val", "seconds", "runs"]


def read_predictions(path):
    with path.open(newline="") as file:
        return list(csv_format.DictReader(file))


def check_object(shown, runs):
    assert list(shown) == KEYS
    assert shown["n"] == runs == len(shown["runs"])
    records = [json.loads((Path(folder) / "record.json").read_text()) for folder in shown["runs"]]
    for name in ("test", "val"):
        values = np.array([record[name] for record in records])
        std = values.std(ddof=1)
        expected = {"mean": values.mean(), "std": std, "stderr": std / math.sqrt(runs)}
        assert list(shown[name]) == list(expected)
        assert shown[name] == pytest.approx(expected)
    assert shown["seconds"] == pytest.approx(sum(record["seconds"] for record in records))
    for folder in shown["runs"]:
        assert sorted(file.name for file in Path(folder).iterdir()) == [
            "history.jsonl",
            "model.safetensors",
            "record.json",
        ]


def test_a_column_that_is_no_feature_is_noted_on_standard_error(command, own, csv):
    table = (own / "nodes.csv").read_text().splitlines()
    first = table[5].split(",")
    table[5] = ",".join([first[0], "tall", *first[2:]])
    (own / "nodes.csv").write_text("\n".join(table))
    for _ in range(2):
        result = command("train", *csv, *GCN, "--splits", "0", "--format", "json")
        assert result.exit_code == 0
        assert json.loads(result.stdout)["n"] == 1
        told, preface, *_ = result.stderr.splitlines()
        assert told == (
            f"warning: the column 'height' of {own / 'nodes.csv'} is not used as a feature, "
            "since line 6 has 'tall', which is not a number: write a number there, "
            "or words everywhere if the values are categories"
        )
        assert preface.startswith("read 20 nodes (1 without a label), 40 edges, 1 feature")


def test_own_csv_files_in_a_real_process(own, csv, here, environment):
    arguments = ["train", *csv, *GCN, "--splits", "0-1", "--seeds", "2", "--format", "json"]
    arguments += ["--predictions", "out/predicted.csv", "--runs", "kept"]
    done = subprocess.run(
        [sys.executable, "-m", "gumbel_mpnn", *map(str, arguments)],
        env=environment, cwd=here, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert (shown["dataset"], shown["model"], shown["metric"]) == ("nodes", "gcn", "accuracy")
    shown["runs"] = [here / folder for folder in shown["runs"]]
    check_object(shown, runs=4)
    preface, *lines = done.stderr.splitlines()
    assert preface.startswith("read ")
    assert lines[0].startswith("gcn on nodes: 4 runs, 1 group, about ")
    assert lines[1].startswith("gcn on nodes: test ")
    assert lines[2:] == [
        "predictions of 20 nodes are in out/predicted.csv",
        f"runs are in {shown['runs'][0].parent.relative_to(here)}",
    ]
    predicted = read_predictions(here / "out/predicted.csv")
    assert [row["node"] for row in predicted] == [f"n{k}" for k in range(20)]
    assert list(predicted[0]) == [
        "node", "label", "trained", "validated", "tested", "out_of_fold", "out_of_fold_probability", "average",
        "average_probability", "out_of_fold[cat]", "out_of_fold[dog]", "average[cat]", "average[dog]",
    ]  # fmt: skip
    assert {row["average"] for row in predicted} <= {"cat", "dog"}
    assert all(0.5 <= float(row["average_probability"]) <= 1 for row in predicted)
    for row in predicted:
        assert bool(row["out_of_fold"]) == (set(row["trained"].split()) | set(row["validated"].split()) != {"0", "1"})


def test_npz(own, command, here):
    result = command("train", "--graph", own / "graph.npz", *GCN, "--format", "json", "--predictions", "p.csv")
    check_object(json.loads(result.stdout), runs=10)
    predicted = read_predictions(here / "p.csv")
    assert [row["node"] for row in predicted] == [str(k) for k in range(20)]
    assert {row["average"] for row in predicted} <= {"0", "1"}


def test_graphml(own, command, here):
    result = command(
        "train", "--graph", own / "graph.graphml", "--label", "kind", *GCN, "--format", "json",
        "--predictions", "p.csv", "--model", "mlp",
    )  # fmt: skip
    shown = json.loads(result.stdout)
    check_object(shown, runs=10)
    assert shown["model"] == "mlp"
    predicted = read_predictions(here / "p.csv")
    assert {row["node"] for row in predicted} == {f"n{k}" for k in range(20)}
    assert {row["average"] for row in predicted} <= {"cat", "dog"}


def test_a_saved_graph_knows_its_label(command, own, here):
    data = from_npz(own / "graph.npz")
    save_graph(data, here / "saved.graphml")
    named, bare = (
        json.loads(command("train", "--graph", "saved.graphml", *label, *GCN, "--format", "json").stdout)
        for label in (("--label", "label"), ())
    )
    assert named["runs"] == bare["runs"]


@pytest.mark.parametrize("suffix", [".npz", ".graphml"])
def test_a_saved_graph_has_no_directions_if_it_had_none(command, own, here, suffix):
    save_graph(from_npz(own / "graph.npz"), here / f"saved{suffix}")
    asked = (*GCN, "--splits", "0", "--set", "data.undirected=false")
    assert " 80 directed edges," in command("train", "--graph", f"saved{suffix}", *asked).stderr


@pytest.mark.parametrize("suffix", [".npz", ".graphml"])
def test_a_file_with_directions_that_is_taken_both_ways_is_told_of(command, own, here, suffix):
    data = from_npz(own / "graph.npz", undirected=False)
    save_graph(data, here / f"saved{suffix}")
    told = "this graph is directed (undirected is false), but is treated as undirected"
    call = ("train", "--graph", f"saved{suffix}", *GCN, "--splits", "0")
    assert told in command(*call).stderr
    assert told not in command(*call, "--set", "data.undirected=false").stderr


TEN_NODES = "id,f,kind\n" + "".join(f"{node},{k},{'xy'[k % 2]}\n" for k, node in enumerate("abcdefghij"))


@pytest.mark.parametrize(
    ("edges", "undirected", "said"),
    [
        ("a,b\nb,a\na,b\nb,c\nc,d\n", "true", "3 edges (2 repeats merged)"),
        ("a,b\nb,a\na,b\nb,c\nc,d\n", "false", "4 directed edges (1 repeat merged)"),
        ("a,b\nc,b\n", "false", "2 directed edges"),
        ("a,b\nc,b\n", "true", "2 edges"),
    ],
)
def test_edges_are_counted_as_they_are_trained_on(command, here, edges, undirected, said):
    (here / "nodes.csv").write_text(TEN_NODES)
    (here / "edges.csv").write_text("source,target\n" + edges)
    files = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind", "--splits", "0", *GCN)
    preface = f"read 10 nodes (0 without a label), {said}, 1 feature, 2 classes"
    result = command("train", *files, "--set", f"data.undirected={undirected}")
    assert result.stderr.splitlines()[0] == preface
    (here / "mine.toml").write_text(f"[data]\nundirected = {undirected}\n")
    assert command("train", *files, "--preset", "mine.toml").stderr.splitlines()[0] == preface


@pytest.mark.parametrize(
    ("edges", "said"),
    [("c,c\n", "this graph has 1 self-loop, which is"), ("c,c\nd,d\nc,c\n", "this graph has 2 self-loops, which are")],
)
def test_self_loops_are_told_once(command, here, edges, said):
    (here / "nodes.csv").write_text(TEN_NODES)
    (here / "edges.csv").write_text(f"source,target\na,b\nb,c\n{edges}")
    files = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind", "--splits", "0", *GCN)
    told = command("train", *files).stderr.splitlines()
    assert told[0] == f"warning: {said} left out: convolutions add their own"
    assert sum("self-loop" in line for line in told) == 1
    assert " 2 edges" in told[1]


def test_repeats_in_graph_files_are_counted_too(command, own):
    arrays = dict(np.load(own / "graph.npz"))
    np.savez(own / "twice.npz", **{**arrays, "edges": np.concatenate([arrays["edges"]] * 2)})
    for name, said in (("graph.npz", "40 edges,"), ("twice.npz", "40 edges (40 repeats merged),")):
        assert said in command("train", "--graph", own / name, *GCN, "--splits", "0").stderr
    result = command("train", "--graph", own / "graph.graphml", "--label", "kind", *GCN, "--splits", "0")
    assert "label), 40 edges, 2 features" in result.stderr


@pytest.mark.parametrize(
    ("file", "name"),
    [("my graph (2).npz", "my-graph-2"), ("Cora.npz", "own-Cora"), ("demo.npz", "own-demo"), ("...npz", "own")],
)
def test_runs_on_own_files_are_listed_by_their_names(command, own, file, name):
    """A name of a data set is not taken: its presets would be."""
    (own / file).write_bytes((own / "graph.npz").read_bytes())
    result = command("train", "--graph", own / file, *GCN, "--splits", "0", "--format", "json")
    assert json.loads(result.stdout)["dataset"] == name
    (listed,) = json.loads(command("runs", "--dataset", name, "--format", "json").stdout)
    assert Path(listed["folder"]).parts[-3] == name
    record = json.loads((Path(listed["folder"]) / "split0-seed0/record.json").read_text())
    assert record["settings"]["train"]["lr"] == TrainSettings().lr


def test_the_graph_of_the_demo_by_name(command):
    result = command("train", "demo", *GCN, "--splits", "0", "--format", "json")
    shown = json.loads(result.stdout)
    assert (shown["dataset"], len(shown["runs"])) == ("demo", 1)
    assert result.stderr.startswith("gcn on demo: 1 run")


def test_only_the_named_features(own, csv, command):
    whole = json.loads(command("train", *csv, *GCN, "--splits", "0", "--format", "json").stdout)
    part = json.loads(command("train", *csv, "--features", "weight", *GCN, "--splits", "0", "--format", "json").stdout)
    named = json.loads(
        command("train", *csv, "--features", "height, weight", *GCN, "--splits", "0", "--format", "json").stdout
    )
    assert part["runs"] != whole["runs"]
    assert named["runs"] == whole["runs"]


@pytest.mark.usefixtures("tiny")
class TestDataSet:
    def test_all_splits_in_the_default_folder(self, command, here):
        shown = json.loads(command("train", "tiny", *GCN, "--format", "json").stdout)
        check_object(shown, runs=2)
        assert shown["runs"][0].startswith("runs/train/tiny/gcn/")

    def test_a_second_call_trains_nothing(self, command):
        first = command("train", "tiny", *GCN, "--format", "json")
        again = command("train", "Tiny", *GCN, "--format", "json")
        assert again.stdout == first.stdout
        assert "gcn on tiny: all 2 runs were already finished\n" in again.stderr

    def test_more_seeds_train_the_missing(self, command):
        command("train", "tiny", *GCN)
        more = command("train", "tiny", *GCN, "--seeds", "3")
        assert "gcn on tiny: 4 runs, 2 more already finished, 1 group, about " in more.stderr

    def test_splits_in_the_order_asked_for(self, command):
        shown = json.loads(command("train", "tiny", *GCN, "--splits", "1,0", "--format", "json").stdout)
        assert [Path(folder).name for folder in shown["runs"]] == ["split1-seed0", "split0-seed0"]

    def test_folders_by_option_and_by_variable(self, command, here, monkeypatch):
        command("train", "tiny", *GCN, "--runs", "one", "--experiment", "trial")
        monkeypatch.setenv("GUMBEL_MPNN_RUNS", "two")
        command("train", "tiny", *GCN)
        assert sorted(path.name for path in here.iterdir()) == ["one", "two"]
        assert [path.parts[1] for path in Path("one").glob("**/record.json")] == ["trial"] * 2

    def test_an_own_preset(self, command, here):
        (here / "mine.toml").write_text("[model]\nhidden_channels = 4\n[train]\nepochs = 2\n")
        shown = json.loads(
            command("train", "tiny", "--preset", "mine.toml", "--device", "cpu", "--format", "json").stdout
        )
        record = json.loads((Path(shown["runs"][0]) / "record.json").read_text())
        assert (record["settings"]["model"]["hidden_channels"], record["epochs"]) == (4, 2)

    @pytest.mark.parametrize("family", ["tuned", "paper", "robust", "few-labels"])
    def test_every_family_that_has_nothing_for_a_model_is_told(self, command, family):
        result = command("train", "tiny", "--model", "DropEdge", *QUICK, "--preset", family)
        said = result.stderr.splitlines()[0]
        assert said == f"warning: there is no {family} preset for drop-edge on tiny: the default settings are used"

    def test_such_a_family_is_told_with_quiet_too(self, command):
        result = command("train", "tiny", *GCN, "--preset", "paper", "--quiet")
        sentence = "there is no paper preset for gcn on tiny: the default settings are used"
        assert result.stderr == f"warning: {sentence}\n"

    def test_such_a_family_is_told_for_own_data_unless_it_is_the_default(self, command, csv):
        for family in ("tuned", "paper"):
            lines = command("train", *csv, *GCN, "--splits", "0", "--preset", family).stderr.splitlines()
            told = [line for line in lines if "preset" in line]
            sentence = f"warning: there is no {family} preset for gcn on nodes: the default settings are used"
            assert told == [sentence] * (family == "paper")

    def test_the_preset_of_the_backbone_that_is_asked_for_is_borrowed(self, command, tmp_path, monkeypatch):
        (tmp_path / "presets/tuned/tiny").mkdir(parents=True)
        (tmp_path / "presets/tuned/tiny/gat.toml").write_text("[train]\nlr = 0.5\n")
        monkeypatch.setattr("gumbel_mpnn.config.presets._folder", lambda: tmp_path / "presets")
        for options, instead, lr in (
            ((), "the default settings are", 0.001),
            (("--set", "model.backbone=gat"), "the preset of its backbone is", 0.5),
        ):
            result = command("train", "tiny", "--model", "drop-edge", *options, *QUICK, "--format", "json")
            record = json.loads((Path(json.loads(result.stdout)["runs"][0]) / "record.json").read_text())
            assert record["settings"]["train"]["lr"] == lr
            said = result.stderr.splitlines()[0]
            told = f"there is no tuned preset for drop-edge on tiny: {instead} used"
            assert said == (told if options else f"warning: {told}")

    def test_a_data_root_by_option(self, command, tmp_path, monkeypatch):
        monkeypatch.delenv("GUMBEL_MPNN_DATA")
        result = command("train", "tiny", *GCN, "--data-root", tmp_path / "data")
        assert result.exit_code == 0

    @pytest.mark.parametrize(
        ("form", "first", "last"),
        [
            ("text", "data set  model  metric      runs ", "tiny      gcn    accuracy %     2 "),
            ("csv", "dataset,model,metric,n,test,std,stderr,val,seconds", "tiny,gcn,accuracy,2,"),
            ("markdown", "| data set | model | metric | runs | test ", "| tiny | gcn | accuracy % | 2 | "),
            ("latex", r"\begin{tabular}{lllrrrrrr}", r"\end{tabular}"),
        ],
    )
    def test_tables(self, command, form, first, last):
        result = command("train", "tiny", *GCN, "--format", form)
        lines = result.stdout.splitlines()
        assert result.exit_code == 0
        assert lines[0].startswith(first)
        assert lines[-1].startswith(last)
        assert "runs are in" in result.stderr
        assert "runs are in" not in result.stdout

    def test_long_work_prints_plain_lines_where_there_is_no_terminal(self, command, monkeypatch, every_epoch):
        monkeypatch.setattr("gumbel_mpnn._util.live_line.PLAIN_LINE_SECONDS", -1)
        preface, *lines = command("train", "tiny", *GCN, "--splits", "0").stderr.splitlines()
        assert preface == "warning: there is no tuned preset for gcn on tiny: the default settings are used"
        assert lines[1].startswith("gcn on tiny: 1/3 epochs, best val ")
        assert lines[1].endswith(" s left")
        assert lines[3].startswith("gcn on tiny: 3/3 epochs, ")


def test_predictions_of_runs_whose_models_were_deleted(csv, command, here):
    """The fault: the advice was an option that the command does not have."""
    arguments = ("train", *csv, *GCN, "--splits", "0-1", "--predictions")
    command(*arguments, "first.csv")
    model = next(here.glob("runs/**/split1-seed0/model.safetensors"))
    model.unlink()
    command("train", *csv, *GCN, "--splits", "0-1")
    assert not model.exists()  # where no predictions are wanted, nothing is done again
    result = command(*arguments, "second.csv")
    assert result.exit_code == 0, result.stderr
    assert "1 run, 1 more already finished" in result.stderr
    first, second = ((here / file).read_text().splitlines() for file in ("first.csv", "second.csv"))
    assert [line.split(",")[:2] for line in first] == [line.split(",")[:2] for line in second]


@pytest.mark.parametrize("file", ["UP.NPZ", "up.GraphML", "up.graphml.gz", "up.xml"])
def test_graph_files_by_other_endings(own, command, file):
    content = (own / ("graph.npz" if file == "UP.NPZ" else "graph.graphml")).read_bytes()
    (own / file).write_bytes(gzip.compress(content) if file.endswith("gz") else content)
    label = () if file == "UP.NPZ" else ("--label", "kind")
    for verb in (("train", *GCN, "--splits", "0"), ("measure",)):
        result = command(*verb, "--graph", own / file, *label)
        assert result.exit_code == 0, result.stderr


class TestOwnDataThatLacksSomething:
    def test_without_edges(self, command, own):
        result = command("train", "--nodes", own / "nodes.csv", "--label", "kind", "--splits", "0", *GCN)
        assert result.exit_code == 0
        assert "read 20 nodes (1 without a label), 0 edges, 2 features, 2 classes" in result.stderr

    def test_without_features(self, command, own):
        lines = (own / "nodes.csv").read_text().splitlines()
        (own / "names.csv").write_text("".join(f"{line.split(',')[0]},{line.split(',')[3]}\n" for line in lines))
        files = ("--nodes", own / "names.csv", "--edges", own / "edges.csv")
        result = command("train", *files, "--label", "kind", "--splits", "0", *GCN)
        assert result.exit_code == 0
        assert "warning: this graph has no features, so each node gets one of its own" in result.stderr

    def test_without_both(self, command, own):
        (own / "names.csv").write_text("id,kind\n" + "".join(f"n{k},{k % 2}\n" for k in range(20)))
        result = command("train", "--nodes", own / "names.csv", "--label", "kind", *GCN)
        assert result.exit_code == 2
        assert "this graph has neither features nor edges to learn from: give it one of them" in result.stderr


class TestFinal:
    def test_predictions_of_a_model_without_test_nodes(self, command, csv, here):
        result = command("train", *csv, *GCN, "--final", "--predictions", "out.csv", "--format", "json")
        assert result.exit_code == 0, result.stderr
        shown = json.loads(result.stdout)
        assert (shown["n"], shown["test"]["mean"]) == (10, None)
        assert len(read_predictions(here / "out.csv")) == 20
        (told,) = [line for line in result.stderr.splitlines() if line.startswith("gcn on nodes: val")]
        assert "test" not in told

    def test_the_same_model_on_every_node(self, command, csv, here):
        first = json.loads(command("train", *csv, *GCN, "--splits", "0-2", "--format", "json").stdout)
        folder = Path(first["runs"][0]).parent
        best = [json.loads((Path(name) / "record.json").read_text())["best_epoch"] for name in first["runs"]]
        how = ("--final", "--epochs-from", folder.name, "--seeds", "2", "--predictions", "out.csv", "--device", "cpu")
        result = command("train", *csv, *how, "--format", "json")
        assert result.exit_code == 0, result.stderr
        shown = json.loads(result.stdout)
        records = [json.loads((Path(name) / "record.json").read_text()) for name in shown["runs"]]
        assert [(r["val"], r["test"], r["epochs"]) for r in records] == [(None, None, sorted(best)[1])] * 2
        assert records[0]["settings"]["model"]["hidden_channels"] == 8
        assert len(read_predictions(here / "out.csv")) == 20

        listed = command("runs", "--format", "json")
        rows = json.loads(listed.stdout, parse_constant=lambda word: pytest.fail(word))
        assert {(row["n"], row["test"] is None, row["val"] is None) for row in rows} == {
            (3, False, False),
            (2, True, True),
        }
        new = Path(shown["runs"][0]).parent
        detail = json.loads(command("runs", "show", new, "--format", "json").stdout, parse_constant=pytest.fail)
        assert detail["test"] == {"mean": None, "std": None, "stderr": None, "n": 0}
        assert command("runs", "show", new).exit_code == command("runs", "export", "all.csv").exit_code == 0

    def test_auto(self, command, csv, here):
        result = command("train", *csv, *QUICK, "--final", "--splits", "0", "--predictions", "out.csv")
        assert result.exit_code == 0, result.stderr
        assert len(read_predictions(here / "out.csv")) == 20

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (("--final", "--set", "data.protocol=all"), "--final chooses the split protocol: leave out data.protocol"),
            (("--epochs-from", "abc"), "--epochs-from is for --final: add --final"),
            (("--final", "--epochs-from", "abc", "--splits", "0"), "in a single split: leave out --splits"),
            (("--final", "--epochs-from", "abc", "--preset", "none"), "takes all settings from finished runs"),
            (("--final", "--epochs-from", "abc"), "there is no finished run 'abc'"),
            (("--final", "--epochs-from", "."), "there are no finished runs in ."),
        ],
        ids=str,
    )
    def test_what_does_not_go_together(self, command, csv, options, sentence):
        result = command("train", *csv, *options)
        assert result.exit_code == 2
        assert sentence in result.stderr

    def test_runs_of_another_model(self, command, csv):
        shown = json.loads(command("train", *csv, *GCN, "--splits", "0", "--format", "json").stdout)
        folder = Path(shown["runs"][0]).parent
        result = command("train", *csv, "--final", "--epochs-from", folder, "--model", "sage")
        assert result.exit_code == 2
        assert "are of model 'gcn', not 'sage': leave out --model" in result.stderr


def test_parts_of_the_graph(command, csv):
    result = command("train", *csv, *GCN, "--splits", "0", "--partitions", "2", "--format", "json")
    assert result.exit_code == 0, result.stderr
    (folder,) = json.loads(result.stdout)["runs"]
    assert json.loads((Path(folder) / "record.json").read_text())["settings"]["train"]["partitions"] == 2
    refused = command("train", *csv, *GCN, "--partitions", "0")
    assert refused.exit_code == 2
    assert "--partitions" in refused.stderr
