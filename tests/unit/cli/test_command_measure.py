"""`gumbel-mpnn measure`: measures of a graph, and of the graph of runs before and after rewiring."""

import json

import numpy as np
import pytest

from command_fixtures import GCN, REWIRED
from gumbel_mpnn import measures
from gumbel_mpnn.data import demo_graph, from_csv, load
from gumbel_mpnn.runs.fit import fit
from gumbel_mpnn.runs.run import load_run

NAMES = list(measures.MEASURES)


@pytest.fixture
def measured(command):
    """Measures as JSON, without NaN."""

    def run(*arguments):
        result = command("measure", *arguments, "--format", "json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout, parse_constant=pytest.fail)

    return run


@pytest.mark.usefixtures("tiny")
class TestNamed:
    def test_a_data_set(self, measured):
        assert measured("tiny") == pytest.approx(measures.measure(load("tiny")))
        assert measured("demo") == pytest.approx(measures.measure(demo_graph()))

    def test_text_has_headings_and_csv_has_names(self, command):
        text, csv = (command("measure", "tiny", "--format", form).stdout.splitlines() for form in ("text", "csv"))
        assert text[2].startswith("edge homophily ")
        assert [line.split(",")[0] for line in csv] == ["measure", *NAMES]


class TestOwnData:
    def test_every_kind_of_file(self, measured, csv, own):
        expected = measures.measure(from_csv(own / "nodes.csv", own / "edges.csv", label="kind"))
        for files in (csv, ("--graph", own / "graph.npz"), ("--graph", own / "graph.graphml", "--label", "kind")):
            assert measured(*files) == pytest.approx(expected)

    def test_labels_and_features_are_not_needed(self, measured, own, here, csv):
        labelled = measured(*csv)
        of_labels = [name for name, measure in measures.MEASURES.items() if measure.needs_labels]
        np.savez(own / "bare.npz", edges=np.load(own / "graph.npz")["edges"], num_nodes=20)
        for files in (csv[:4], ("--graph", own / "graph.graphml"), ("--graph", own / "bare.npz")):
            assert measured(*files) == pytest.approx({**labelled, **dict.fromkeys(of_labels)})
        np.savez(here / "bare.npz", node_labels=np.array([0, 0, 1]), edges=np.array([[0, 1], [1, 2]]))
        assert measured("--graph", "bare.npz")["edge_homophily"] == pytest.approx(1 / 2)


class TestRun:
    @pytest.mark.usefixtures("tiny")
    def test_before_and_after(self, command, measured, train, here):
        folder = train("tiny", *REWIRED)
        run = load_run(folder)
        for arguments, of in (((folder,), run), ((f"{folder}/split1-seed0",), load_run(f"{folder}/split1-seed0"))):
            shown = measured("--run", *arguments)
            assert list(shown) == ["before", "after", "pairs"]
            assert shown["before"] == pytest.approx(measures.measure(load("tiny")))
            assert shown["after"] == pytest.approx(measures.measure(of.rewire()))
            assert shown["pairs"] == json.loads(json.dumps(of.measure_pairs().to_dict()))
        strict, loose = (measured("--run", folder, "--threshold", value) for value in ("1", "0"))
        assert (strict["after"]["num_edges"], strict["after"]["edge_homophily"]) == (0, None)
        assert loose["after"]["num_edges"] > loose["before"]["num_edges"]
        lines = command("measure", "--run", "runs").stdout.splitlines()
        assert lines[0].split() == ["measure", "before", "after"]
        assert len(lines) == 2 + len(NAMES) + 3 * 4
        assert lines[2 + len(NAMES)].startswith("edges, train-train ")
        csv = command("measure", "--run", "runs", "--format", "csv").stdout
        assert "\nedge_homophily_train_train," in csv

    @pytest.mark.usefixtures("tiny")
    def test_overfitting_is_told(self, command, train, monkeypatch):
        folder = train("tiny", *REWIRED)
        found = load_run(folder).measure_pairs()
        monkeypatch.setattr(type(found), "overfits", True)
        monkeypatch.setattr(type(found), "sentence", lambda self: "that is overfitting")
        assert command("measure", "--run", folder).stderr == "that is overfitting\n"

    def test_own_data_are_read_again(self, measured, train, csv):
        folder = train(*csv, "--splits", "0", *REWIRED)
        shown = measured("--run", folder, *csv)
        assert shown["before"] == pytest.approx(measured(*csv))
        assert measured("--run", folder) == shown

    @pytest.mark.parametrize("name", ["leaf-count-3", "bottleneck-10"])
    def test_a_generated_task_is_known_in_every_size(self, measured, name):
        options = {"model": {"hidden_channels": 4}, "train": {"epochs": 1}, "rewiring": {"candidates": "none"}}
        graph = load(name)
        fit(graph, "gumbel-mpnn", splits=[0], settings=options, runs="runs", device="cpu")
        assert measured("--run", "runs")["before"] == pytest.approx(measures.measure(graph), nan_ok=True)

    def test_runs_that_do_not_rewire(self, refused, train, csv):
        folder = train(*csv, "--splits", "0", *GCN)
        refused("measure", "--run", folder, message="model 'gcn' does not rewire the graph")
