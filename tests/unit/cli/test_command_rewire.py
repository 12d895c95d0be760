"""The learned graph as a file, by the command."""

import json
from csv import DictReader
from io import BytesIO
from pathlib import Path

import networkx
import numpy as np
import pytest
import torch
from quick_options import GCN, QUICK

from gumbel_mpnn.data import from_csv, load
from helpers import without_checksum

REWIRED = ("--model", "gumbel-mpnn", *QUICK, "--splits", "0-1", "--set", "rewiring.per_node=2")


def rewired(command, *arguments):
    result = command("rewire", *arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert "the graph is in " in result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def run(command, csv):
    """The folder of one setting's runs on the graph of animals."""
    result = command("train", *csv, *REWIRED)
    assert result.exit_code == 0, result.stderr
    return result.stderr.splitlines()[-1].removeprefix("runs are in ")


def test_every_kind_of_file_has_every_pair_at_threshold_zero(command, run, here):
    for suffix in ("npz", "csv", "graphml"):
        counts = rewired(command, run, "--out", f"out/graph.{suffix}", "--threshold", "0")
        assert counts["nodes"] == 20
        assert counts["given"] == 40
        assert counts["edges"] == counts["given"] + counts["added"] > 40
    with np.load(here / "out/graph.npz") as file:
        assert file["edges"].shape == (counts["edges"], 2)
        assert file["given"].sum() == 40
    graph = networkx.read_graphml(here / "out/graph.graphml")
    assert graph.number_of_edges() == counts["edges"]
    assert set(graph) == {f"n{k}" for k in range(20)}
    assert len((here / "out/graph.csv").read_text().splitlines()) == counts["edges"] + 1


def probabilities(run, given, candidates):
    """Give every given pair one probability and every candidate another, in all runs."""
    for path in Path(run).glob("*/graph.npz"):
        arrays = without_checksum(np.load(path))
        arrays["probability"] = np.where(arrays["is_original"], given, candidates).astype(np.float32)
        np.savez(path, **arrays)
    return len(arrays["pairs"]) - 40


def test_what_changed_is_told(command, run):
    count = probabilities(run, 0.25, 0.75)
    shown = rewired(command, run, "--out", "graph.csv", "--threshold", "0")["changes"]
    assert (shown["kept"], shown["dropped"], shown["added"], shown["candidates"]) == (0, 40, count, count)
    assert shown["moved"] == pytest.approx(0.75 * (40 + count))
    assert len(shown["largest"]) == 10
    assert shown["largest"][0]["source"].startswith("n")
    result = command("rewire", run, "--out", "graph.csv")
    assert f"at one half, 0 given edges are kept, 40 dropped and {count} of {count} candidates added" in result.stdout
    table = result.stdout.split("\n\n")[-1].splitlines()
    assert table[0].split() == ["change", "source", "target", "probability"]
    assert len(table) == 2 + 10


def test_nothing_changed_is_told_in_these_words(command, run):
    probabilities(run, 0.9, 0.1)
    for out in (command("rewire", run, "--out", "graph.csv").stdout,):
        assert "the learned graph is the given one" in out
    assert rewired(command, run, "--out", "graph.csv")["changes"]["largest"] == []


def test_the_end_of_train_tells_what_changed(command, run, csv):
    probabilities(run, 0.9, 0.1)
    again = command("train", *csv, *REWIRED)
    assert "the learned graph is the given one: at one half, all 40 edges are kept" in again.stderr.splitlines()[-2]
    shown = json.loads(command("train", *csv, *REWIRED, "--format", "json").stdout)
    assert (shown["changes"]["kept"], shown["changes"]["dropped"]) == (40, 0)
    assert "changes" not in json.loads(command("train", *csv, *GCN, "--format", "json").stdout)


def test_quiet_leaves_results_and_warnings(command, run, csv, own):
    result = command("rewire", run, "--out", "graph.npz", "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "edges" in result.stdout
    trained = command("train", *csv, *REWIRED, "-q", "--set", "train.lr=0.02")
    assert (trained.exit_code, trained.stderr) == (0, "")
    text = (own / "nodes.csv").read_text().replace("height", "name", 1)
    (own / "nodes.csv").write_text(text.replace("n1,", "n1,x", 1))  # a column that is no number
    warned = command("train", *csv, *GCN, "--quiet")
    assert [line[:9] for line in warned.stderr.splitlines()] == ["warning: "]
    assert command("train", *csv, "--model", "gatt", "--quiet").stderr.startswith("error: ")


@pytest.mark.parametrize("name", ["graph.NPZ", "graph.CSV", "graph.GraphML"])
def test_the_format_is_the_suffix_in_upper_or_lower_case(command, run, own, here, name):
    (own / "nodes.csv").unlink()
    notes = [command("rewire", run, "--out", out).stderr.splitlines()[1:] for out in (name, name.lower())]
    assert notes[0] == notes[1] == [note for note in notes[0] if "it has no labels or features" in note]
    assert bool(notes[0]) == (name != "graph.CSV")
    assert (here / name).read_bytes() == (here / name.lower()).read_bytes()


def test_the_learned_edges_take_the_place_of_the_given_ones(command, run, own, here):
    counts = rewired(command, run, "--out", "graph.csv")
    data = from_csv(own / "nodes.csv", here / "graph.csv", label="kind")
    assert data.edge_index.shape[1] == 2 * counts["edges"]
    assert torch.equal(data.edge_weight, data.edge_probability)
    assert (data.edge_probability > 0.5).all()
    result = command("train", "--nodes", own / "nodes.csv", "--edges", "graph.csv", "--label", "kind", *GCN)
    assert result.exit_code == 0, result.stderr


def test_given_weights_are_in_what_is_written(command, csv, own, here):
    """The fault: weights 3, 0 and .5 all came back as the bare probability."""
    header, *lines = (own / "edges.csv").read_text().splitlines()
    assert header == "from,to"
    given = {tuple(sorted(line.split(","))): (3.0, 0.0, 0.5)[row % 3] for row, line in enumerate(lines)}
    weighted = [f"{line},{given[tuple(sorted(line.split(',')))]}" for line in lines]
    (own / "edges.csv").write_text("\n".join([f"{header},weight", *weighted]) + "\n")
    trained = command("train", *csv, *REWIRED).stderr.splitlines()[-1].removeprefix("runs are in ")
    rewired(command, trained, "--out", "graph.csv", "--threshold", "0")
    with (here / "graph.csv").open() as file:
        found = list(DictReader(file))
    assert {line["given"] for line in found} == {"true", "false"}
    for line in found:
        weight = given.get(tuple(sorted((line["source"], line["target"]))), 1.0)
        assert (line["given"] == "true") == (tuple(sorted((line["source"], line["target"]))) in given)
        assert float(line["weight"]) == pytest.approx(weight * float(line["probability"]), rel=1e-5)
    likely = rewired(command, trained, "--out", "graph.csv")
    assert likely["given"] > 20  # edges of weight 0 are among them: the threshold is one of probabilities
    measured = command("measure", *csv, "--run", trained, "--format", "json")
    assert measured.exit_code == 0, measured.stderr


@pytest.mark.parametrize("suffix", ["npz", "graphml", "csv"])
@pytest.mark.parametrize("threshold", ["0.5", "1"])
def test_what_is_written_can_be_trained_on(command, run, csv, own, suffix, threshold):
    """The faults: an edge file without lines was not read, and graph files had neither labels nor features."""
    options = ("--out", f"graph.{suffix}", "--threshold", threshold)
    counts = rewired(command, run, *options, *([] if suffix == "csv" else csv))
    assert (counts["edges"] == 0) == (threshold == "1")
    files = ("--graph", f"graph.{suffix}") if suffix != "csv" else (*csv[:3], "graph.csv", *csv[4:])
    result = command("train", *files, *GCN, "--splits", "0")
    assert result.exit_code == 0, result.stderr
    read = f"read 20 nodes (1 without a label), {counts['edges']} edges, 2 features, 2 classes"
    assert result.stderr.splitlines()[0] == read


def test_graph_files_have_the_nodes_of_the_training_data(command, run, csv, own, here):
    data = from_csv(own / "nodes.csv", own / "edges.csv", label="kind")
    for files in (csv, ()):  # without files, those of training are read again
        command("rewire", run, "--out", "graph.npz", *files)
        with np.load(here / "graph.npz") as file:
            assert np.array_equal(file["node_features"], data.x)
            assert np.array_equal(file["node_labels"], data.y)
            assert file["train_masks"].shape == (10, 20)
    (own / "nodes.csv").unlink()
    result = command("rewire", run, "--out", "bare.npz")
    assert result.stderr.splitlines()[1].startswith("it has no labels or features: to add them, give the files")
    with np.load(here / "bare.npz") as file:
        assert "node_labels" not in file


def test_other_data_than_those_trained_on_are_refused(command, run, csv, own, here):
    text = (own / "nodes.csv").read_text()
    (own / "nodes.csv").write_text(text.replace("n3,", "n3,1", 1))
    result = command("rewire", run, "--out", "graph.npz", *csv)
    assert (result.exit_code, (here / "graph.npz").exists()) == (2, False)
    assert "were trained on other data than those given" in result.stderr


def test_a_data_set_by_name_is_read_again_if_it_is_here(command, tiny, tmp_path, here):
    command("train", "tiny", *REWIRED)
    assert len(command("rewire", "runs", "--out", "graph.npz").stderr.splitlines()) == 1
    with np.load(here / "graph.npz") as file:
        assert np.array_equal(file["node_labels"], load("tiny").y)
    (tmp_path / "data/tiny/tiny.npz").unlink()
    assert "it has no labels or features" in command("rewire", "runs", "--out", "bare.npz").stderr
    assert len(command("rewire", "runs", "--out", "bare.csv").stderr.splitlines()) == 1


def test_a_run_by_the_beginning_of_its_fingerprint(command, run, csv, here):
    for verb in (("rewire", "--out", "graph.csv"), ("measure", *csv, "--run")):
        result = command(*verb, Path(run).name[:9])
        assert result.exit_code == 0, result.stderr
        elsewhere = command(*verb, Path(run).name[:9], "--runs", "elsewhere")
        assert elsewhere.exit_code == 2
        assert "there is no finished run" in elsewhere.stderr.splitlines()[-1]


def test_no_direction_is_lost(command, csv, here):
    result = command("train", *csv, *REWIRED, "--set", "data.undirected=false")
    folder = result.stderr.splitlines()[-1].removeprefix("runs are in ")
    counts = rewired(command, folder, "--out", "arrows.graphml", "--threshold", "0")
    assert counts["given"] == 40
    graph = networkx.read_graphml(here / "arrows.graphml")
    assert graph.is_directed()
    assert graph.number_of_edges() == counts["edges"]
    assert {(f"n{k}", f"n{(k + step) % 20}") for k in range(20) for step in (2, 5)} <= set(graph.edges)


def test_runs_of_a_plain_model(command, csv, here):
    folder = command("train", *csv, *GCN).stderr.splitlines()[-1].removeprefix("runs are in ")
    result = command("rewire", folder, "--out", "graph.csv")
    assert result.exit_code == 2
    assert result.stderr == "error: gcn does not rewire the graph: give the folder of finished runs of gumbel-mpnn\n"
    assert not (here / "graph.csv").exists()


@pytest.mark.parametrize("folder", ["runs", "runs/train/nodes", "runs/train/nodes/gumbel-mpnn"])
def test_runs_of_different_settings_are_not_averaged(command, run, csv, here, folder):
    """The fault: of the trials of `tune`, which have the same pairs, the mean was written without a word."""
    command("train", *csv, *REWIRED, "--set", "train.lr=0.05")
    for verb in (("rewire", "--out", "graph.npz"), ("measure", *csv, "--run")):
        result = command(*verb, folder)
        assert (result.exit_code, result.stdout) == (2, "")
        (line,) = result.stderr.splitlines()
        assert line.startswith(f"error: the learned graphs under {folder} are of 2 settings, and only ")
    assert not (here / "graph.npz").exists()


def test_runs_of_models_that_learn_no_graph_may_lie_beside(command, run, csv):
    command("train", *csv, *GCN)
    alone, beside = (rewired(command, folder, "--out", "graph.csv") for folder in (run, "runs"))
    assert alone == beside


def test_the_same_setting_in_two_experiments_is_not_counted_twice(command, run, csv):
    command("train", *csv, *REWIRED, "--splits", "0", "--experiment", "other")
    assert "are of 2 settings" in command("rewire", "runs", "--out", "graph.csv").stderr


@pytest.mark.parametrize("number", [1, 2])
def test_runs_that_lost_their_learned_graph_are_told(command, csv, here, number):
    """The fault: the mean over the others was written without a word."""
    command("train", *csv, *GCN)  # learns no graph, and is not missed
    trained = command("train", *csv, *REWIRED, "--splits", "0-3").stderr.splitlines()[-1].removeprefix("runs are in ")
    for split in range(number):
        (here / trained / f"split{split}-seed0/graph.npz").unlink()
    lost = f"{here / trained}/split0-seed0" + " and 1 more" * (number == 2)
    sentence = f"warning: the mean is over {4 - number} of 4 runs: there is no graph.npz in {lost}; delete such folders"
    for verb in (("rewire", "--out", "graph.csv"), ("measure", *csv, "--run")):
        for folder in (trained, "runs"):
            result = command(*verb, folder)
            assert result.exit_code == 0, result.stderr
            assert result.stderr.splitlines()[0].startswith(sentence)
        assert "warning: " not in command(*verb, f"{trained}/split3-seed0").stderr


def altered(content):
    """Bytes in the middle turned over."""
    middle = len(content) // 2
    return content[:middle] + bytes(255 - byte for byte in content[middle : middle + 40]) + content[middle + 40 :]


def without_pairs(_):
    """A whole npz file, but not that of a learned graph."""
    file = BytesIO()
    np.savez(file, probability=np.ones(3))
    return file.getvalue()


DAMAGE = {
    "text": lambda _: b"not an npz file",
    "nothing": lambda _: b"",
    "half": lambda content: content[: len(content) // 2],
    "altered": altered,
    "other arrays": without_pairs,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_learned_graph(command, csv, run, here, damage):
    """The faults: advice to load the file unsafely, and errors that were none of a person's."""
    path = Path(run) / "split1-seed0/graph.npz"
    path.write_bytes(damage(path.read_bytes()))
    for verb in (("rewire", "--out", "graph.csv"), ("measure", *csv, "--run")):
        result = command(*verb, run)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == (f"error: the learned graph {path} is damaged: delete its folder to do the run again\n")
