"""`gumbel-mpnn rewire`: the learned graph as a file."""

import json
from pathlib import Path

import networkx
import numpy as np
import pytest

from command_fixtures import GCN, REWIRED
from gumbel_mpnn.data import from_csv, load
from gumbel_mpnn.runs.store import read_learned


@pytest.fixture
def run(train, csv):
    """The folder of one setting's runs on the graph of animals."""
    return train(*csv, *REWIRED, "--splits", "0-1")


@pytest.fixture
def rewired(command):
    """Rewires and gives the numbers that are shown."""

    def rewire(*arguments):
        result = command("rewire", *arguments, "--format", "json", "--force")
        assert result.exit_code == 0, result.stderr
        assert "the graph is in " in result.stderr
        return json.loads(result.stdout)

    return rewire


def test_every_kind_of_file_has_every_pair_at_threshold_zero(rewired, run, here):
    for suffix in ("NPZ", "csv", "graphml"):
        counts = rewired(run, "--out", f"out/graph.{suffix}", "--threshold", "0")
        assert (counts["nodes"], counts["given"]) == (20, 40)
        assert counts["edges"] == counts["given"] + counts["added"] > 40
    with np.load(here / "out/graph.NPZ") as file:
        assert file["edges"].shape == (counts["edges"], 2)
        assert file["given"].sum() == 40
    graph = networkx.read_graphml(here / "out/graph.graphml")
    assert graph.number_of_edges() == counts["edges"]
    assert set(graph) == {f"n{k}" for k in range(20)}
    assert len((here / "out/graph.csv").read_text().splitlines()) == counts["edges"] + 1


def test_what_changed_is_told(command, rewired, train, csv, run):
    learned = read_learned(sorted(Path(run).glob("*/graph.safetensors")))
    shown = rewired(run, "--out", "graph.csv")["changes"]
    given, likely = learned.graph.is_original, learned.mean >= 0.5
    assert (shown["kept"], shown["dropped"]) == (int((given & likely).sum()), int((given & ~likely).sum()))
    assert (shown["added"], shown["candidates"]) == (int((~given & likely).sum()), int((~given).sum()))
    sentence = f"{shown['kept']} given edges are kept" if shown["dropped"] else f"all {shown['kept']} edges are kept"
    assert sentence in command("rewire", run, "--out", "more.csv").stdout
    again = command("train", *csv, *REWIRED, "--splits", "0-1")
    assert sentence in again.stderr.splitlines()[-2]
    trained = json.loads(command("train", *csv, *REWIRED, "--splits", "0-1", "--format", "json").stdout)
    assert trained["changes"] == shown
    assert "changes" not in json.loads(command("train", *csv, *GCN, "--format", "json").stdout)


def test_quiet_leaves_results_and_warnings(command, run, csv, own):
    result = command("rewire", run, "--out", "graph.npz", "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "edges" in result.stdout
    trained = command("train", *csv, *REWIRED, "-q", "--set", "train.lr=0.02")
    assert (trained.exit_code, trained.stderr) == (0, "")
    (own / "nodes.csv").write_text((own / "nodes.csv").read_text().replace("n1,", "n1,x", 1))
    warned = command("train", *csv, *GCN, "--quiet")  # a column that is no number
    assert [line[:9] for line in warned.stderr.splitlines()] == ["warning: "]
    assert command("train", *csv, "--model", "gatt", "--quiet").stderr.startswith("error: ")


def test_graph_files_have_the_nodes_of_the_training_data(command, rewired, run, csv, own, here):
    data = from_csv(own / "nodes.csv", own / "edges.csv", label="kind")
    for files in (csv, ()):  # without files, those of training are read again
        rewired(run, "--out", "graph.npz", *files)
        with np.load(here / "graph.npz") as file:
            assert np.array_equal(file["node_features"], data.x)
            assert np.array_equal(file["node_labels"], data.y)
            assert file["train_masks"].shape == (10, 20)
    (own / "nodes.csv").unlink()
    result = command("rewire", run, "--out", "bare.npz")
    assert "it has no labels or features: to add them, give the files" in result.stderr
    with np.load(here / "bare.npz") as file:
        assert "node_labels" not in file
    assert "no labels" not in command("rewire", run, "--out", "bare.csv").stderr


def test_a_data_set_by_name_in_the_only_folder_of_runs(rewired, train, tiny, here):
    train("tiny", *REWIRED)
    rewired("runs", "--out", "graph.npz")
    with np.load(here / "graph.npz") as file:
        assert np.array_equal(file["node_labels"], load("tiny").y)


def test_runs_that_cannot_be_rewired(refused, train, csv, run):
    plain = train(*csv, *GCN)
    refused("rewire", plain, "--out", "graph.csv", message="model 'gcn' does not rewire the graph")
    for folder in ("runs", "runs/train/nodes"):
        refused("rewire", folder, "--out", "graph.csv", message="have different settings: give the folder of one")
