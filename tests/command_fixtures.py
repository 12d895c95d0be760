"""The command in this process: without network, cache or data root, in an empty folder of its own."""

import json
import os
import re
import sys
import urllib.error
import urllib.request

import networkx
import numpy as np
import pytest
from typer.testing import CliRunner

from gumbel_mpnn.cli import app
from gumbel_mpnn.data import DatasetSpec, File, specs
from gumbel_mpnn.data.npz import read_graph
from gumbel_mpnn.graph import undirected_keys
from helpers import small_data

QUICK = ("--set", "train.epochs=3", "--set", "model.hidden_channels=8", "--device", "cpu")
"""Options with which training takes a moment."""
GCN = ("--model", "gcn", *QUICK)
REWIRED = ("--model", "gumbel-mpnn", *QUICK, "--set", "rewiring.candidates.per_node=2")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The working folder, empty."""

    def no_network(url, timeout=None):
        raise urllib.error.URLError("no network in tests")

    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GUMBEL_MPNN_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("GUMBEL_MPNN_RUNS", raising=False)
    return folder


@pytest.fixture
def command():
    """Runs the command with these arguments; gives exit_code, stdout and stderr."""

    def run(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    return run


@pytest.fixture
def train(command):
    """Trains with these arguments; gives the folder of the setting."""

    def run(*arguments):
        result = command("train", *arguments, "--format", "json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)["runs"][0].rpartition("/")[0]

    return run


@pytest.fixture
def refused(command, tmp_path):
    """Runs the command, which must refuse in one sentence with this message and leave everything as it was.

    Before it, there may be warnings, what was read, and what would have been trained.
    """

    def run(*arguments, message):
        before = sorted(tmp_path.rglob("*"))
        result = command(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        *notes, last = result.stderr.splitlines()
        assert last.startswith("error: "), result.stderr
        assert message in last
        assert all(re.match(r"warning: |read \d+ nodes|\S+ on \S+: \d+ run", line) for line in notes), notes
        assert sorted(tmp_path.rglob("*")) == before

    return run


@pytest.fixture
def environment(tmp_path):
    """The environment of a real process that runs the command."""
    changes = {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **changes}


@pytest.fixture
def own(tmp_path):
    """A folder with one graph of 20 animals as CSV, npz and GraphML; the kind of n7 is unknown."""
    folder = tmp_path / "own"
    folder.mkdir()
    rng = np.random.default_rng(0)
    kinds = ["" if k == 7 else ("cat", "dog")[k % 2] for k in range(20)]
    x = np.round(rng.normal(size=(20, 2)) + np.arange(20)[:, None] % 2, 3)
    links = [(k, (k + step) % 20) for k in range(20) for step in (2, 5)]
    rows = [f"n{k},{a},{b},{kind}" for k, ((a, b), kind) in enumerate(zip(x, kinds, strict=True))]
    (folder / "nodes.csv").write_text("\n".join(["id,height,weight,kind", *rows]) + "\n")
    (folder / "edges.csv").write_text("from,to\n" + "".join(f"n{a},n{b}\n" for a, b in links))
    labels = np.array([-1 if kind == "" else ("cat", "dog").index(kind) for kind in kinds])
    np.savez(folder / "graph.npz", node_features=x.astype(np.float32), node_labels=labels, edges=np.array(links))
    graph = networkx.Graph([(f"n{a}", f"n{b}") for a, b in links])
    for k, kind in enumerate(kinds):
        graph.add_node(f"n{k}", height=float(x[k, 0]), weight=float(x[k, 1]), **({"kind": kind} if kind else {}))
    networkx.write_graphml(graph, folder / "graph.graphml")
    return folder


@pytest.fixture
def csv(own):
    """Arguments that name the CSV files."""
    return ("--nodes", own / "nodes.csv", "--edges", own / "edges.csv", "--label", "kind")


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A data set called tiny, of 24 nodes and two splits, whose file lies in the data root."""
    data = small_data()
    arrays = {
        "node_features": data.x.numpy(),
        "node_labels": data.y.numpy(),
        "edges": data.edge_index.T.numpy(),
        **{f"{part}_masks": data[f"{part}_mask"].T.numpy() for part in ("train", "val", "test")},
    }
    (tmp_path / "data" / "tiny").mkdir(parents=True)
    np.savez(tmp_path / "data" / "tiny" / "tiny.npz", **arrays)
    spec = DatasetSpec(
        name="tiny",
        metric="accuracy",
        protocols=("heterophilous", "random-60-20-20"),
        num_nodes=24,
        num_edges=len(undirected_keys(data.edge_index, 24)),
        num_features=6,
        num_classes=3,
        source="this test",
        licence="none",
        read=read_graph,
        files=(File("tiny/tiny.npz"),),
    )
    monkeypatch.setitem(specs, "tiny", spec)
    return spec
