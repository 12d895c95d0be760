"""`gumbel-mpnn predict`: trained models on new files."""

import csv as csv_format
import json
from pathlib import Path

import pytest
from sklearn.metrics import accuracy_score, f1_score

import gumbel_mpnn as gm
from command_fixtures import GCN, REWIRED


def rows(text):
    return list(csv_format.DictReader(text.splitlines()))


@pytest.fixture
def trained(train, csv):
    """Folder of a GCN on two splits of the animals."""
    return train(*csv, *GCN, "--splits", "0-1")


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
    found = json.loads(command("predict", trained, "--format", "json").stdout, parse_constant=pytest.fail)
    assert found[7]["label"] is None


@pytest.mark.parametrize("name", ["graph.npz", "graph.graphml"])
def test_other_files(command, train, own, name):
    label = ("--label", "kind") if name.endswith("graphml") else ()
    folder = train("--graph", own / name, *label, *REWIRED)
    found = rows(command("predict", folder, "--graph", own / name, "--format", "csv").stdout)
    assert [row["prediction"] for row in found] == list(map(str, gm.load_run(folder).predict()))


def test_features_that_do_not_fit(command, trained, own):
    (own / "short.csv").write_text("id,height\nn0,1\nn1,2\n")
    result = command("predict", trained, "--nodes", own / "short.csv")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {own / 'short.csv'} has no column 'weight', which the model was trained on\n"


def with_kinds(own, kinds):
    """Give the grown graph a column of kinds."""
    head, *lines = (own / "grown.csv").read_text().splitlines()
    rows = [f"{line},{kind}" for line, kind in zip(lines, kinds, strict=True)]
    (own / "grown.csv").write_text("\n".join([f"{head},kind", *rows]))


class TestLabels:
    """With --label, predictions are compared with the labels of the file."""

    @pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "roc_auc"])
    def test_classes_that_the_runs_do_not_know(self, command, train, csv, own, metric):
        folder = train(*csv, *GCN, "--splits", "0", "--set", f"data.metric={metric}")
        (own / "nodes.csv").write_text((own / "nodes.csv").read_text().replace("cat", "cow", 2))
        result = command("predict", folder, *csv, "--out", "new.csv")
        if metric == "roc_auc":
            assert "on 17 labelled nodes; " in result.stderr
            assert "; 2 labels that the runs do not know, such as 'cow', are left out\n" in result.stderr
            return
        found = [row for row in rows(Path("new.csv").read_text()) if row["label"]]
        truth, predicted = [row["label"] for row in found], [row["prediction"] for row in found]
        score = accuracy_score(truth, predicted)
        value = score if metric == "accuracy" else f1_score(truth, predicted, average="macro")
        assert f"{metric} {100 * value:.2f} % on 19 labelled nodes; nodes that were trained on count" in result.stderr
        assert "; 2 labels that the runs do not know, such as 'cow', are counted as wrong\n" in result.stderr

    def test_columns_that_say_little(self, command, trained, grown, own):
        result = command("predict", trained, *grown, "--label", "kind")
        assert result.stderr == (
            f"error: {own / 'grown.csv'} has no column 'kind', which --label names: correct it or leave it out, since"
            " predictions need no labels\n"
        )
        plain = (own / "grown.csv").read_text()
        with_kinds(own, [""] * 22)
        assert "no node has a label" in command("predict", trained, *grown, "--label", "kind").stderr
        (own / "grown.csv").write_text(plain)
        with_kinds(own, ["dog", *[""] * 21])
        result = command("predict", trained, *grown, "--label", "kind", "--format", "json")
        first = json.loads(result.stdout)[0]
        share = 100 * (first["prediction"] == first["label"])
        assert result.stderr == f"accuracy {share:.2f} % on 1 labelled node; nodes that were trained on count too\n"
