"""`gumbel-mpnn estimate`."""

import json
import re

import pytest


def test_numbers_give_a_table_and_a_verdict(command):
    done = command("estimate", "--nodes", "1e9", "--edges", "10_000_000_000", "--features", "128", "--device", "h200")
    assert done.exit_code == 0
    assert "1,000,000,000" in done.stdout
    assert "TiB" in done.stdout
    parts = re.search(r"the graph needs at least ([\d,]+) parts: train --partitions (\d+) or more", done.stderr)
    assert parts[1].replace(",", "") == parts[2]
    assert "coefficients: NVIDIA H200" in done.stderr


def test_json_is_alone_on_standard_output(command):
    done = command("estimate", "demo", "--model", "gcn", "--memory", "4", "--format", "json")
    found = json.loads(done.stdout)
    assert found["model"] == "gcn"
    assert found["device_memory"] == 4 * 2**30
    assert found["fits"] is True


def test_own_files(command, tmp_path):
    (tmp_path / "nodes.csv").write_text("id,size,kind\n" + "".join(f"n{k},{k},{'ab'[k % 2]}\n" for k in range(12)))
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"n{k},n{k + 1}\n" for k in range(11)))
    files = ["--nodes", str(tmp_path / "nodes.csv"), "--edges", str(tmp_path / "edges.csv"), "--label", "kind"]
    found = json.loads(command("estimate", *files, "--format", "json").stdout)
    assert (found["nodes"], found["edges"], found["features"], found["classes"]) == (12, 11, 1, 2)


def test_own_directed_files(command, tmp_path):
    """Both directions of an edge are two edges of a directed graph, and one of an undirected graph."""
    (tmp_path / "nodes.csv").write_text("id,size,kind\n" + "".join(f"n{k},{k},{'ab'[k % 2]}\n" for k in range(12)))
    (tmp_path / "edges.csv").write_text("source,target\nn0,n1\nn1,n0\nn1,n2\n")
    files = ["--nodes", str(tmp_path / "nodes.csv"), "--edges", str(tmp_path / "edges.csv"), "--label", "kind"]
    for undirected, edges in (("true", 2), ("false", 3)):
        done = command("estimate", *files, "--format", "json", "--set", f"data.undirected={undirected}")
        assert json.loads(done.stdout)["edges"] == edges


def test_the_memory_of_a_part(command):
    sizes = ["--nodes", "1e6", "--edges", "1e7", "--features", "128", "--device", "h200", "--memory", "1"]
    few, many = (command("estimate", *sizes, "--set", f"train.partitions={parts}") for parts in (2, 1000))
    assert "memory of a part, at least" in few.stdout
    assert "2 parts do not fit: the graph needs at least" in few.stderr
    assert "each part fits, without the nodes around it" in many.stderr


def test_parameters_that_do_not_fit(command):
    sizes = ["--nodes", "100", "--edges", "100", "--features", "10"]
    done = command("estimate", *sizes, "--memory", "1", "--set", "model.hidden_channels=1000000")
    assert "does not fit" in done.stdout
    assert "the parameters alone do not fit: try a smaller model.hidden_channels" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nodes", "5"], "give all three numbers, --nodes, --edges and --features"),
        (["--nodes", "5", "--edges", "edges.csv"], "--edges must be a number beside other numbers, not 'edges.csv'"),
        (["--nodes", "5.5", "--edges", "5", "--features", "1"], "5.5 is not a whole number"),
        ([], "give the name of a data set"),
    ],
)
def test_mistakes(command, arguments, message):
    done = command("estimate", *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
