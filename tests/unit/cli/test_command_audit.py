"""`gumbel-mpnn audit`: suspicious and missing edges of a trained graph."""

import csv as csv_format
import json

import pytest
from quick_options import GCN, QUICK

import gumbel_mpnn as gm

REWIRED = ("--model", "gumbel-mpnn", *QUICK, "--splits", "0-1")


@pytest.fixture
def trained(command, csv):
    result = command("train", *csv, *REWIRED, "--format", "json")
    return json.loads(result.stdout)["runs"][0].rpartition("/")[0]


def test_the_tables(command, trained):
    result = command("audit", trained, "--top", "3")
    assert result.exit_code == 0, result.stderr
    head, _, *rows = result.stdout.splitlines()
    assert head.split()[:4] == ["kind", "source", "target", "evidence"]
    assert [row.split()[0] for row in rows] == ["edge"] * 3 + ["missing"] * 3
    first = gm.load_run(trained).audit().edges.iloc[0]
    assert rows[0].split()[1:3] == [first["source"], first["target"]]
    assert "weights of the facts in this graph: affinity " in result.stderr


def test_json_and_csv(command, trained):
    shown = json.loads(command("audit", trained, "--top", "2", "--format", "json").stdout, parse_constant=pytest.fail)
    assert (len(shown["edges"]), len(shown["missing"])) == (2, 2)
    rows = list(csv_format.DictReader(command("audit", trained, "--top", "2", "--format", "csv").stdout.splitlines()))
    assert [float(row["evidence"]) for row in rows[:2]] == [row["evidence"] for row in shown["edges"]]
    assert rows[0]["source_known"] in ("true", "false")


def test_a_file_with_everything(command, trained, here):
    result = command("audit", trained, "--out", "out/audit.csv")
    assert (result.exit_code, result.stdout) == (0, "")
    with (here / "out/audit.csv").open(newline="") as file:
        rows = list(csv_format.DictReader(file))
    assert sum(row["kind"] == "edge" for row in rows) == 40
    assert result.stderr.endswith(f"40 edges and {len(rows) - 40} missing pairs are in out/audit.csv\n")


def test_files_that_have_moved(command, trained, csv, own, here):
    for name in ("nodes.csv", "edges.csv"):
        (own / name).rename(here / name)
    told = command("audit", trained)
    assert told.exit_code == 2
    assert "cannot be read again: there is no file" in told.stderr
    again = command("audit", trained, "--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind")
    assert again.exit_code == 0, again.stderr


def test_a_plain_model_will_do(command, csv):
    result = command("train", *csv, *GCN, "--splits", "0", "--format", "json")
    shown = command("audit", json.loads(result.stdout)["runs"][0], "--format", "json")
    assert json.loads(shown.stdout)["edges"][0]["probability"] is None


def test_mistakes(command, trained, here):
    assert "there is no finished run 'nothing'" in command("audit", "nothing").stderr
    assert command("audit", trained, "--out", here).stderr.endswith("is a folder: give the name of a file\n")
