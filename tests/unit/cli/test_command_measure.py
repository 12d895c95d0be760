"""`gumbel-mpnn measure`: a data set, all of them, own data, and a graph before and after rewiring."""

import json
from dataclasses import replace

import networkx
import numpy as np
import pytest
import torch
from quick_options import GCN, QUICK

from gumbel_mpnn import measures
from gumbel_mpnn.data import demo_graph, from_csv, from_npz, load, specs
from gumbel_mpnn.runs import fit
from helpers import small_data, without_checksum

NAMES = list(measures.MEASURES)
REWIRE = ("--model", "gumbel-mpnn", "--set", "rewiring.candidates=two_hop", *QUICK)


def as_json(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.usefixtures("tiny")
class TestOneDataSet:
    def test_json_has_the_measures_and_nothing_else(self, command):
        shown = as_json(command("measure", "TINY", "--format", "json"))
        assert list(shown) == NAMES
        assert shown == pytest.approx(measures.measure(load("tiny")))
        assert isinstance(shown["num_edges"], int)

    def test_text(self, command):
        lines = command("measure", "tiny").stdout.splitlines()
        assert lines[0].split() == ["measure", "value"]
        shown = dict(line.rsplit(maxsplit=1) for line in lines[2:])
        assert shown["edge homophily"] == f"{measures.edge_homophily(load('tiny')):.4f}"
        assert shown["nodes"] == "24"
        assert len(shown) == len(NAMES)

    def test_csv_keeps_names_and_digits(self, command):
        lines = command("measure", "tiny", "--format", "csv").stdout.splitlines()
        shown = dict(line.split(",") for line in lines)
        assert list(shown) == ["measure", *NAMES]
        assert float(shown["std_per_class"]) == measures.std_per_class(load("tiny"))

    @pytest.mark.parametrize(("format", "line"), [("latex", r"nodes & 24 \\"), ("markdown", "| nodes | 24 |")])
    def test_other_formats(self, command, format, line):
        assert line in command("measure", "tiny", "--format", format).stdout.splitlines()

    def test_the_largest_component_alone(self, command):
        shown = as_json(command("measure", "tiny", "--largest-component", "--format", "json"))
        assert shown == pytest.approx(measures.measure(measures.largest_component(load("tiny"))))
        assert shown["num_nodes"] < 24


def test_directed_edges_are_counted_as_listed(command, tiny, monkeypatch):
    directed = replace(tiny.forms[0], directed=True)
    monkeypatch.setitem(specs, "tiny", replace(tiny, forms=(*tiny.forms, directed)))
    listed = small_data().edge_index.T.tolist()
    shown = as_json(command("measure", "tiny", "--convention", "as_listed", "--format", "json"))
    assert shown["num_edges"] == len(listed) > tiny.num_edges
    assert shown["edge_homophily"] == pytest.approx(sum(a % 3 == b % 3 for a, b in listed) / len(listed))
    assert shown["degree_mean"] == pytest.approx(2 * len(listed) / 24)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("which", ["tiny", "--all"])
def test_measures_that_do_not_follow_the_convention_say_so(command, which):
    heard = command("measure", which, "--convention", "as_listed").stdout
    assert heard.count("(each edge once)") == 2
    assert "std per class (each edge once)" in heard
    assert "spectral gap (each edge once)" in heard
    assert "each edge once" not in command("measure", which).stdout
    assert "each edge once" not in command("measure", which, "--convention", "as_listed", "--format", "csv").stdout


@pytest.mark.usefixtures("tiny")
def test_files_without_directions_are_counted_line_by_line_too(command):
    shown = as_json(command("measure", "tiny", "--convention", "as_listed", "--format", "json"))
    assert shown == pytest.approx(measures.measure(small_data(), convention="as_listed"))


@pytest.mark.usefixtures("tiny")
class TestAll:
    def test_every_data_set_that_is_here(self, command):
        result = command("measure", "--all", "--format", "json")
        (row,) = as_json(result)
        assert list(row) == ["dataset", *NAMES]
        assert row == pytest.approx({"dataset": "tiny", **measures.measure(load("tiny"))})
        assert "measuring tiny" in result.stderr
        assert "files not found: cora, citeseer" in result.stderr

    def test_text_has_a_row_each(self, command):
        lines = command("measure", "--all").stdout.splitlines()
        assert lines[0].startswith("data set  edge homophily  adjusted homophily")
        assert lines[2].startswith("tiny ")

    @pytest.mark.parametrize("more", [("tiny",), ("--run", "runs"), ("--label", "kind")])
    def test_all_goes_with_nothing_else(self, command, more):
        result = command("measure", "--all", *more)
        assert result.exit_code == 2
        assert "leave out the name, --run and own data" in result.stderr


def test_the_graph_of_the_demo_by_name(command):
    shown = as_json(command("measure", "demo", "--format", "json"))
    assert shown == pytest.approx(measures.measure(demo_graph()))


class TestOwnData:
    def test_csv_files(self, command, csv, own):
        shown = as_json(command("measure", *csv, "--format", "json"))
        assert shown == pytest.approx(measures.measure(from_csv(own / "nodes.csv", own / "edges.csv", label="kind")))
        assert shown["num_nodes"] == 20

    @pytest.mark.parametrize("arguments", [("graph.npz",), ("graph.graphml", "--label", "kind")])
    def test_graph_files(self, command, csv, own, arguments):
        file, *more = arguments
        shown = as_json(command("measure", "--graph", own / file, *more, "--format", "json"))
        assert shown == pytest.approx(as_json(command("measure", *csv, "--format", "json")))

    def test_features_are_not_needed(self, command, here, csv):
        (here / "bare.csv").write_text("id,kind\n" + "".join(f"n{k},{'cat' if k % 2 else 'dog'}\n" for k in range(20)))
        shown = as_json(
            command("measure", "--nodes", "bare.csv", *csv[2:], "--format", "json"),
        )
        assert shown["num_edges"] == 40
        assert shown["edge_homophily"] == pytest.approx(1 / 2)
        np.savez(here / "bare.npz", node_labels=np.array([0, 0, 1]), edges=np.array([[0, 1], [1, 2]]))
        shown = as_json(command("measure", "--graph", "bare.npz", "--format", "json"))
        assert (shown["num_nodes"], shown["edge_homophily"]) == (3, pytest.approx(1 / 2))

    def test_labels_are_not_needed(self, command, own, csv):
        labelled = as_json(command("measure", *csv, "--format", "json"))
        of_labels = [name for name, measure in measures.MEASURES.items() if measure.needs_labels]
        arrays = dict(np.load(own / "graph.npz"))
        np.savez(own / "bare.npz", edges=arrays["edges"], num_nodes=20)
        for files in (csv[:4], ("--graph", own / "graph.graphml"), ("--graph", own / "bare.npz")):
            shown = as_json(command("measure", *files, "--format", "json"))
            assert shown == pytest.approx({**labelled, **dict.fromkeys(of_labels)})

    @pytest.mark.parametrize("kind", ["csv", "npz", "graphml"])
    def test_as_listed_counts_every_line_of_the_files(self, command, here, kind):
        # Six lines, five of them between labelled nodes and four of these within a class.
        links = [(0, 1), (1, 0), (0, 1), (1, 2), (2, 2), (3, 0)]
        files = ("--graph", f"graph.{kind}", *([] if kind == "npz" else ["--label", "kind"]))
        if kind == "csv":
            (here / "nodes.csv").write_text("id,kind\na,x\nb,x\nc,y\nd,\n")
            (here / "edges.csv").write_text("from,to\n" + "".join(f"{'abcd'[a]},{'abcd'[b]}\n" for a, b in links))
            files = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind")
        elif kind == "npz":
            np.savez(here / "graph.npz", node_labels=np.array([0, 0, 1, -1]), edges=np.array(links))
        else:
            graph = networkx.MultiDiGraph()
            graph.add_nodes_from([(0, {"kind": "x"}), (1, {"kind": "x"}), (2, {"kind": "y"}), 3])
            graph.add_edges_from(links)
            networkx.write_graphml(graph, here / "graph.graphml")
        shown = as_json(command("measure", *files, "--convention", "as_listed", "--format", "json"))
        assert (shown["num_edges"], shown["edge_homophily"]) == (6, pytest.approx(4 / 5))
        assert [shown[f"degree_{kind}"] for kind in ("min", "mean", "max")] == [1, 2 * 6 / 4, 4]
        once = as_json(command("measure", *files, "--format", "json"))
        assert (once["num_edges"], once["degree_max"]) == (3, 2)

    @pytest.mark.parametrize("arguments", [(), ("cora", "--label", "kind"), ("--nodes", "nodes.csv")])
    def test_neither_or_both(self, command, arguments):
        result = command("measure", *arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")
        assert len(result.stderr.splitlines()) == 1


class TestRun:
    def test_before_and_after(self, command, tiny):
        command("train", "tiny", "--splits", "0", *REWIRE)
        shown = as_json(command("measure", "--run", "runs", "--format", "json"))
        assert list(shown) == ["before", "after", "pairs"]
        assert shown["before"] == pytest.approx(measures.measure(load("tiny")))
        assert list(shown["after"]) == NAMES
        written = as_json(command("rewire", "runs", "--out", "graph.npz", "--format", "json"))
        assert shown["after"]["num_edges"] == written["edges"]
        assert shown["after"]["num_nodes"] == 24

    @pytest.mark.usefixtures("tiny")
    def test_the_threshold_and_one_run_of_several(self, command, here):
        command("train", "tiny", *REWIRE)
        (folder,) = here.glob("runs/train/tiny/gumbel-mpnn/*/split1-seed0")
        strict, loose = (
            as_json(command("measure", "--run", folder, "--threshold", value, "--format", "json"))
            for value in ("1", "0")
        )
        assert strict["after"]["num_edges"] == 0
        assert strict["after"]["edge_homophily"] is None
        assert loose["after"]["num_edges"] > loose["before"]["num_edges"]

    @pytest.mark.usefixtures("tiny")
    def test_text(self, command):
        command("train", "tiny", "--splits", "0", *REWIRE)
        lines = command("measure", "--run", "runs").stdout.splitlines()
        assert lines[0].split() == ["measure", "before", "after"]
        assert len(lines) == 2 + len(NAMES) + 3 * 4
        assert lines[2 + len(NAMES)].startswith("edges, train-train ")

    @pytest.mark.usefixtures("tiny")
    def test_pairs_of_training_nodes_by_themselves(self, command, here):
        """Edges that connect training nodes of one class, and only these, are the learned graph of each run."""
        command("train", "tiny", *REWIRE)
        data = load("tiny")
        for split in (0, 1):
            (file,) = here.glob(f"runs/**/split{split}-seed0/graph.npz")
            arrays = without_checksum(np.load(file))
            ends = torch.from_numpy(arrays["pairs"].T.astype(np.int64))
            inside = data.train_mask[:, split][ends].all(0)
            same = data.y[ends[0]] == data.y[ends[1]]
            given = torch.from_numpy(arrays["is_original"])
            arrays["probability"] = torch.where(inside, same, given).float().numpy()
            np.savez(file, **arrays)
        result = command("measure", "--run", "runs", "--format", "json")
        pairs = as_json(result)["pairs"]
        assert pairs["runs"] == 2
        assert pairs["train_train"]["after"]["edge_homophily"] == 1
        assert pairs["train_train"]["before"]["edge_homophily"] < 0.7
        assert pairs["other_other"]["after"] == pairs["other_other"]["before"]
        assert pairs["other_other"]["homophily_change"]["mean"] == 0
        assert pairs["overfits"] is True
        assert "the improvement is on training nodes alone, that is overfitting" in result.stderr
        whole = as_json(command("measure", "tiny", "--format", "json"))
        kinds = ("train_train", "train_other", "other_other")
        assert sum(pairs[kind]["before"]["num_edges"] for kind in kinds) == whole["num_edges"]
        rows = dict(
            line.split(",", 1) for line in command("measure", "--run", "runs", "--format", "csv").stdout.splitlines()
        )
        assert rows["edge_homophily_train_train"].endswith(",1.0")

    @pytest.mark.usefixtures("tiny")
    def test_pairs_are_left_out_with_a_note_if_the_splits_are_not_known(self, command, csv, own):
        command("train", *csv, "--splits", "0", *REWIRE)
        text = (own / "nodes.csv").read_text().replace("n3,", "n3,1", 1)  # another feature, the same graph
        (own / "nodes.csv").write_text(text)
        result = command("measure", "--run", "runs", *csv, "--format", "json")
        assert list(as_json(result)) == ["before", "after"]
        assert "pairs of training nodes are not measured separately" in result.stderr

    def test_own_data_are_read_again(self, command, csv, own):
        command("train", *csv, "--splits", "0", *REWIRE)
        shown = as_json(command("measure", "--run", "runs", *csv, "--format", "json"))
        assert shown["before"] == pytest.approx(as_json(command("measure", *csv, "--format", "json")))
        again = command("measure", "--run", "runs", "--format", "json")
        assert as_json(again) == shown
        assert "pairs" in shown
        (own / "edges.csv").unlink()
        refused = command("measure", "--run", "runs")
        assert refused.exit_code == 2
        assert "are not there any more, or have changed: give them too (--nodes, --edges and" in refused.stderr

    def test_the_demo_graph_is_known(self, command):
        options = {"model": {"hidden_channels": 4}, "train": {"epochs": 1}}
        fit(demo_graph(), "gumbel-mpnn", splits=[0], settings=options, runs="runs", device="cpu")
        shown = as_json(command("measure", "--run", "runs", "--format", "json"))
        assert shown["before"] == pytest.approx(measures.measure(demo_graph()))

    @pytest.mark.parametrize("name", ["leaf-count-3", "bottleneck-10", "bottleneck"])
    def test_a_generated_task_is_known_in_every_size(self, command, name):
        options = {"model": {"hidden_channels": 4}, "train": {"epochs": 1}, "rewiring": {"candidates": "none"}}
        graph = load(name)
        fit(graph, "gumbel-mpnn", splits=[0], settings=options, runs="runs", device="cpu")
        shown = as_json(command("measure", "--run", "runs", "--format", "json"))
        assert shown["before"] == pytest.approx(measures.measure(graph), nan_ok=True)
        command("rewire", "runs", "--out", "graph.npz")
        assert torch.equal(from_npz("graph.npz").y, graph.y)

    def test_another_graph_is_refused(self, command, csv, tiny):
        command("train", "tiny", "--splits", "0", *REWIRE)
        result = command("measure", "--run", "runs", *csv)
        assert result.exit_code == 2
        assert "trained on another graph" in result.stderr

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("tiny", "--threshold", "0.9"), "--threshold applies to a learned graph"),
            (("--run", "runs", "--convention", "as_listed"), "as_listed applies to files"),
        ],
    )
    def test_options_that_do_not_go_together(self, command, arguments, message):
        result = command("measure", *arguments)
        assert result.exit_code == 2
        assert message in result.stderr

    @pytest.mark.usefixtures("tiny")
    def test_a_pair_as_likely_as_the_threshold_is_kept(self, command, here):
        command("train", "tiny", "--splits", "0", *REWIRE)
        (file,) = here.glob("runs/**/graph.npz")
        arrays = without_checksum(np.load(file))
        arrays["probability"] = np.full_like(arrays["probability"], 0.75)
        np.savez(file, **arrays)
        shown = as_json(command("measure", "--run", "runs", "--threshold", "0.75", "--format", "json"))
        assert shown["after"]["num_edges"] == len(arrays["pairs"])

    @pytest.mark.usefixtures("tiny")
    def test_runs_that_do_not_rewire(self, command):
        command("train", "tiny", "--splits", "0", *GCN)
        result = command("measure", "--run", "runs")
        assert result.exit_code == 2
        assert result.stderr == (
            "error: gcn does not rewire the graph: give the folder of finished runs of gumbel-mpnn\n"
        )

    def test_the_graph_of_sdrf_is_made_again(self, command, tiny):
        options = ("--model", "sdrf", "--set", "model.iterations=5", *QUICK)
        command("train", "tiny", "--splits", "0", *options)
        shown = as_json(command("measure", "--run", "runs", "--format", "json"))
        settings = {"model": {"iterations": 5, "hidden_channels": 4}, "train": {"epochs": 1}}
        run = fit("tiny", "sdrf", splits=[0], settings=settings, device="cpu")
        assert shown["before"] == pytest.approx(measures.measure(load("tiny")))
        assert shown["after"] == pytest.approx(measures.measure(run.rewire()))
        assert shown["before"] != shown["after"]
        refused = command("measure", "--run", "runs", "--threshold", "0.9")
        assert "--threshold applies to a learned graph, and the graph of sdrf is not" in refused.stderr
        command("train", "tiny", "--splits", "0", *options, "--set", "model.iterations=6")
        assert "have different settings" in command("measure", "--run", "runs").stderr

    @pytest.mark.usefixtures("attacked")
    @pytest.mark.parametrize("model", ["sdrf", "gumbel-mpnn"])
    def test_the_graph_before_is_the_attacked_one(self, command, model):
        command("train", "attacked-small", "--model", model, "--set", "data.attack=meta-0.1", *QUICK)
        shown = as_json(command("measure", "--run", "runs", "--format", "json"))
        assert shown["before"]["num_edges"] == 13

    @pytest.mark.usefixtures("tiny")
    def test_steps_of_sdrf_are_shown(self, command, monkeypatch):
        monkeypatch.setattr("gumbel_mpnn._util.live_line.PLAIN_LINE_SECONDS", -1.0)
        trained = command("train", "tiny", "--splits", "0", "--model", "sdrf", "--set", "model.iterations=5", *QUICK)
        measured = command("measure", "--run", "runs", "--format", "json")
        for result in (trained, measured):
            assert "SDRF: 5/5 steps" in result.stderr
        assert "after" in as_json(measured)

    def test_sdrf_on_own_data(self, command, csv, own):
        command("train", *csv, "--splits", "0", "--model", "sdrf", "--set", "model.iterations=5", *QUICK)
        shown = as_json(command("measure", "--run", "runs", *csv, "--format", "json"))
        assert as_json(command("measure", "--run", "runs", "--format", "json")) == shown
        assert shown["before"] == pytest.approx(as_json(command("measure", *csv, "--format", "json")))
        assert shown["after"] != shown["before"]
        data = from_csv(own / "nodes.csv", own / "edges.csv", "kind")
        settings = {"model": {"iterations": 5, "hidden_channels": 8}, "train": {"epochs": 1}}
        run = fit(data, "sdrf", splits=[0], settings=settings, device="cpu")
        assert shown["after"] == pytest.approx(measures.measure(run.rewire()))
