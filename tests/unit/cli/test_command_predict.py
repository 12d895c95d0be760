"""`gumbel-mpnn predict`: trained models on new files."""

import csv as csv_format
import json
from pathlib import Path

import numpy as np
import pytest
from quick_options import GCN, QUICK
from sklearn.metrics import accuracy_score, f1_score

import gumbel_mpnn as gm


def rows(text):
    return list(csv_format.DictReader(text.splitlines()))


@pytest.fixture
def trained(command, csv):
    """Folder of a GCN on two splits of the animals."""
    result = command("train", *csv, *GCN, "--splits", "0-1", "--format", "json")
    return json.loads(result.stdout)["runs"][0].rpartition("/")[0]


@pytest.fixture
def grown(own):
    """The animals and two more, without kinds, with their columns in another order."""
    lines = [line.split(",") for line in (own / "nodes.csv").read_text().splitlines()]
    table = [[node, weight, height] for node, height, weight, _ in lines]
    table += [["n20", "0.5", "0.1"], ["n21", "1.5", "1.1"]]
    (own / "grown.csv").write_text("\n".join(map(",".join, table)) + "\n")
    (own / "more.csv").write_text((own / "edges.csv").read_text() + "n20,n0\nn21,n1\n")
    return ("--nodes", own / "grown.csv", "--edges", own / "more.csv")


def test_a_grown_graph(command, trained, grown, own):
    result = command("predict", trained, *grown, "--format", "csv")
    assert (result.exit_code, result.stderr) == (0, "")
    found = rows(result.stdout)
    assert list(found[0]) == ["node", "prediction", "probability", "probability[cat]", "probability[dog]"]
    assert [row["node"] for row in found] == [f"n{k}" for k in range(22)]
    run = gm.load_run(trained)
    data = gm.from_csv(own / "grown.csv", own / "more.csv", features=["height", "weight"])
    assert [row["prediction"] for row in found] == run.predict(data)
    assert [float(row["probability[dog]"]) for row in found] == run.predict_proba(data)[:, 1].tolist()


def test_a_file_and_a_fingerprint(command, trained, grown, here):
    result = command("predict", trained.rpartition("/")[2][:8], *grown, "--out", "new/p.csv")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "predictions of 22 nodes are in new/p.csv\n"
    found = rows((here / "new/p.csv").read_text())
    assert len(found) == 22
    assert all(len(row["probability[cat]"]) == 6 for row in found)


def test_without_files_it_is_the_table_of_training(command, trained, csv, here):
    command("train", *csv, *GCN, "--splits", "0-1", "--predictions", "first.csv")
    command("predict", trained, "--out", "again.csv")
    assert (here / "again.csv").read_text() == (here / "first.csv").read_text()


def test_json_has_no_nan(command, trained):
    found = json.loads(command("predict", trained, "--format", "json").stdout, parse_constant=pytest.fail)
    assert len(found) == 20
    assert found[7]["label"] is None


@pytest.mark.parametrize("name", ["graph.npz", "graph.graphml"])
def test_other_files(command, own, name):
    label = ("--label", "kind") if name.endswith("graphml") else ()
    shown = command("train", "--graph", own / name, *label, "--model", "gumbel-mpnn", *QUICK, "--format", "json")
    folder = json.loads(shown.stdout)["runs"][0].rpartition("/")[0]
    found = rows(command("predict", folder, "--graph", own / name, "--format", "csv").stdout)
    assert [row["prediction"] for row in found] == list(map(str, gm.load_run(folder).predict()))


def test_a_missing_column(command, trained, own):
    (own / "short.csv").write_text("id,height\nn0,1\nn1,2\n")
    result = command("predict", trained, "--nodes", own / "short.csv")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {own / 'short.csv'} has no column 'weight', which the model was trained on\n"


def test_too_few_features(command, own, here):
    folder = command("train", "--graph", own / "graph.npz", *GCN, "--splits", "0", "--format", "json").stdout
    np.savez(here / "narrow.npz", node_features=np.zeros((3, 1)), edges=np.array([[0, 1]]))
    result = command("predict", json.loads(folder)["runs"][0], "--graph", "narrow.npz")
    assert result.stderr == "error: the runs were trained on 2 features, but this graph has 1\n"
    assert result.exit_code == 2


def test_mistakes(command, trained, grown, here):
    assert "there is no finished run 'nothing'" in command("predict", "nothing").stderr
    assert "--edges" in command("predict", trained, grown[2], grown[3]).stderr
    assert (
        command("predict", trained, "--out", here).stderr
        == f"error: --out {here} is a folder: give the name of a file\n"
    )


class TestLabels:
    """With --label, predictions are compared with the labels of the file."""

    def test_accuracy(self, command, trained, csv):
        result = command("predict", trained, *csv, "--format", "csv")
        found = rows(result.stdout)
        assert list(found[0])[:3] == ["node", "label", "prediction"]
        labelled = [row for row in found if row["label"]]
        share = sum(row["label"] == row["prediction"] for row in labelled) / len(labelled)
        assert len(labelled) == 19
        assert result.stderr == (
            f"accuracy {100 * share:.2f} % on 19 labelled nodes; nodes that were trained on count too\n"
        )

    @pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "roc_auc"])
    def test_classes_that_the_runs_do_not_know(self, command, csv, own, metric):
        options = ("--splits", "0", "--set", f"data.metric={metric}", "--format", "json")
        folder = json.loads(command("train", *csv, *GCN, *options).stdout)["runs"][0]
        text = (own / "nodes.csv").read_text()
        (own / "nodes.csv").write_text(text.replace("cat", "cow", 2))
        result = command("predict", folder, *csv, "--out", "new.csv")
        if metric == "roc_auc":
            assert f"{metric} " in result.stderr
            assert "on 17 labelled nodes; " in result.stderr
            assert "; 2 labels that the runs do not know, such as 'cow', are left out\n" in result.stderr
            return
        found = [row for row in rows(Path("new.csv").read_text()) if row["label"]]
        truth, predicted = [row["label"] for row in found], [row["prediction"] for row in found]
        if metric == "accuracy":
            value = accuracy_score(truth, predicted)
        else:
            value = f1_score(truth, predicted, average="macro")
        assert f"{metric} {100 * value:.2f} % on 19 labelled nodes; " in result.stderr
        assert "; 2 labels that the runs do not know, such as 'cow', are counted as wrong\n" in result.stderr

    def test_a_column_that_is_not_there(self, command, trained, grown, own):
        result = command("predict", trained, *grown, "--label", "kind")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == (
            f"error: {own / 'grown.csv'} has no column 'kind', which --label names: correct it or leave it out, since"
            " predictions need no labels\n"
        )

    def test_no_labels_at_all(self, command, trained, grown, own):
        text = (own / "grown.csv").read_text().splitlines()
        (own / "grown.csv").write_text("\n".join([f"{text[0]},kind", *(f"{line}," for line in text[1:])]))
        result = command("predict", trained, *grown, "--label", "kind", "--format", "json")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "no node of the graph has a label" in result.stderr

    def test_labels_of_one_class(self, command, trained, grown, own):
        text = (own / "grown.csv").read_text().splitlines()
        kinds = ["dog", *[""] * (len(text) - 2)]
        lines = [f"{line},{kind}" for line, kind in zip(text[1:], kinds, strict=True)]
        (own / "grown.csv").write_text("\n".join([f"{text[0]},kind", *lines]))
        result = command("predict", trained, *grown, "--label", "kind", "--format", "json")
        first = json.loads(result.stdout)[0]
        share = 100 * (first["prediction"] == first["label"])
        assert result.stderr == f"accuracy {share:.2f} % on 1 labelled node; nodes that were trained on count too\n"


class TestFiles:
    """The ending of a file says how it is written."""

    def test_json(self, command, trained, csv, here):
        shown = json.loads(command("predict", trained, "--format", "json").stdout)
        command("predict", trained, "--out", "p.JSON")
        assert json.loads((here / "p.JSON").read_text(), parse_constant=pytest.fail) == shown
        command("train", *csv, *GCN, "--splits", "0-1", "--predictions", "t.json")
        assert json.loads((here / "t.json").read_text()) == shown
        command("audit", trained, "--out", "a.json")
        edge = json.loads((here / "a.json").read_text(), parse_constant=pytest.fail)[0]
        assert edge["kind"] == "edge"
        assert isinstance(edge["source_known"], bool)

    def test_other_endings_are_refused_before_any_work(self, command, csv, here):
        for verb, option in (("predict nothing", "--out"), ("audit nothing", "--out"), ("train", "--predictions")):
            result = command(*verb.split(), *csv, option, "p.xlsx")
            assert result.exit_code == 2
            assert result.stderr == f"error: {option} writes .csv and .json files, not p.xlsx: give it another ending\n"
        told = command("runs", "export", "p.xlsx").stderr
        assert "cannot tell the form of p.xlsx by its name: let it end in .csv or .json, or give --to\n" in told
        assert list(here.iterdir()) == []

    def test_another_format(self, command, trained, here):
        for verb in ("predict", "audit"):
            result = command(verb, trained, "--out", f"{verb}.csv", "--format", "json")
            assert result.stderr == (
                f"error: --out {verb}.csv is written by its ending, which is not --format json: leave out --format\n"
            )
            assert command(verb, trained, "--out", f"{verb}.csv", "--format", "csv").exit_code == 0
