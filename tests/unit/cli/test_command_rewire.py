"""The learned graph as a file, by the command."""

import json
from csv import DictReader

import networkx
import numpy as np
import pytest
import torch
from quick_options import QUICK

from gumbel_mpnn.data import from_csv

REWIRED = ("--model", "gumbel-mpnn", *QUICK, "--splits", "0-1", "--set", "rewiring.per_node=2")


def rewired(command, *arguments):
    result = command("rewire", *arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith("the graph is in ")
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


def test_the_learned_edges_take_the_place_of_the_given_ones(command, run, own, here):
    counts = rewired(command, run, "--out", "graph.csv")
    data = from_csv(own / "nodes.csv", here / "graph.csv", label="kind")
    assert data.edge_index.shape[1] == 2 * counts["edges"]
    assert torch.equal(data.edge_weight, data.edge_probability)
    assert (data.edge_probability > 0.5).all()
    result = command("train", "--nodes", own / "nodes.csv", "--edges", "graph.csv", "--label", "kind", *QUICK)
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


def test_no_direction_is_lost(command, csv, here):
    result = command("train", *csv, *REWIRED, "--set", "data.undirected=false")
    folder = result.stderr.splitlines()[-1].removeprefix("runs are in ")
    counts = rewired(command, folder, "--out", "arrows.graphml", "--threshold", "0")
    assert counts["given"] == 40
    graph = networkx.read_graphml(here / "arrows.graphml")
    assert graph.is_directed()
    assert graph.number_of_edges() == counts["edges"]
    assert {(f"n{k}", f"n{(k + step) % 20}") for k in range(20) for step in (2, 5)} <= set(graph.edges)


def test_a_folder_without_a_learned_graph(command, csv, here):
    folder = command("train", *csv, *QUICK).stderr.splitlines()[-1].removeprefix("runs are in ")
    result = command("rewire", folder, "--out", "graph.csv")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: there is no learned graph under ")
    assert "Run.rewire makes it again" in result.stderr
    assert not (here / "graph.csv").exists()
