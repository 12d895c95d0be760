"""`gumbel-mpnn predict`: trained models on new files."""

import csv as csv_format
import json

import numpy as np
import pytest
from quick_options import GCN, QUICK

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
