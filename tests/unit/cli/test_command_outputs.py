"""What verbs write, and where: standard output, pipes and links, but never over files that are the user's."""

import csv as csv_module
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from quick_options import QUICK

REWIRED = ("--model", "gumbel-mpnn", *QUICK, "--splits", "0", "--set", "rewiring.per_node=2")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def trained(command, csv, own, here, kept):
    """The folder of a finished run on own files, which lie in the working folder; trained once for this module."""
    for name in ("nodes.csv", "edges.csv", "graph.npz", "graph.graphml"):
        shutil.copy(own / name, here)
    if not (kept / "runs").exists():
        result = command("train", "--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind", *REWIRED)
        assert result.exit_code == 0, result.stderr
        shutil.move("runs", kept / "runs")
    shutil.copytree(kept / "runs", "runs")
    (path,) = here.glob("runs/train/nodes/gumbel-mpnn/*/data.json")
    facts = json.loads(path.read_text())
    del facts["checksum"]
    facts["source_files"] |= {name: str(here / f"{name}.csv") for name in ("nodes", "edges")}
    path.write_text(json.dumps(facts))
    return str(path.parent.relative_to(here))


NODES = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind")
WRITERS = {
    "predictions": (*("train", *NODES, *REWIRED), "--predictions"),
    "predict": ("predict", "RUN", *NODES, "--out"),
    "audit": ("audit", "RUN", "--out"),
    "rewire": ("rewire", "RUN", "--out"),
    "export": ("runs", "export"),
}


def write(command, trained, verb, path, *more):
    return command(*(trained if word == "RUN" else word for word in WRITERS[verb]), path, *more)


@pytest.mark.parametrize("verb", WRITERS)
class TestEveryWriter:
    @pytest.mark.parametrize("name", ["data.json", "split0-seed0/record.json"])
    def test_a_file_of_a_stored_run_is_never_overwritten(self, command, trained, verb, name, here):
        path = here / trained / name
        before = path.read_bytes()
        suffix = ".npz" if verb == "rewire" else ".json"
        path.with_suffix(suffix).write_bytes(before)
        result = write(command, trained, verb, f"{trained}/{Path(name).with_suffix(suffix)}", "--force")
        assert (result.exit_code, path.with_suffix(suffix).read_bytes()) == (2, before)
        assert "is a file of a stored run: give another name" in result.stderr

    def test_standard_output(self, command, trained, verb, here):
        result = write(command, trained, verb, "-")
        assert result.exit_code == 0, result.stderr
        rows = list(csv_module.reader(io.StringIO(result.stdout)))
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}
        assert rows[0][0] in ("node", "kind", "source", "folder")
        assert not (here / "-").exists()

    def test_a_link_and_a_device(self, command, trained, verb, here):
        (here / "link.csv").symlink_to("target.csv")
        (here / "null").symlink_to("/dev/null")
        for name in ("link.csv", "null"):
            result = write(command, trained, verb, name)
            assert result.exit_code == 0, result.stderr
            assert (here / name).is_symlink()
        assert (here / "target.csv").stat().st_size > 0
        assert (here / "null").readlink() == Path("/dev/null")

    def test_its_own_file_is_replaced(self, command, trained, verb):
        for _ in range(2):
            result = write(command, trained, verb, "mine.csv")
            assert result.exit_code == 0, result.stderr

    @pytest.mark.parametrize("content", ["a,b\n1,2\n", "node,label\nn1,cat\n", "source,target,weight\na,b,1\n", "kept"])
    def test_a_file_of_another_kind_needs_force(self, command, trained, verb, here, content):
        (here / "mine.csv").write_text(content)
        result = write(command, trained, verb, "mine.csv")
        assert result.exit_code == 2
        assert "mine.csv exists and was not written by this command: give another name, or --force" in result.stderr
        assert (here / "mine.csv").read_text() == content
        assert write(command, trained, verb, "mine.csv", "--force").exit_code == 0
        assert (here / "mine.csv").read_text() != content

    def test_an_empty_file_is_written(self, command, trained, verb, here):
        (here / "empty.csv").touch()
        assert write(command, trained, verb, "empty.csv").exit_code == 0
        assert (here / "empty.csv").stat().st_size > 0


@pytest.mark.parametrize("verb", ["predictions", "predict", "audit", "rewire"])
@pytest.mark.parametrize("name", ["nodes.csv", "edges.csv", "link.csv", "./nodes.csv"])
def test_an_input_is_never_overwritten(command, trained, here, verb, name):
    (here / "link.csv").symlink_to("nodes.csv")
    before = [(here / each).read_text() for each in ("nodes.csv", "edges.csv")]
    result = write(command, trained, verb, name, "--force")
    assert result.exit_code == 2
    assert f"{Path(name)} is a file that is read: give another name" in result.stderr
    assert [(here / each).read_text() for each in ("nodes.csv", "edges.csv")] == before


def test_nor_is_a_graph_or_a_preset(command, trained, here):
    before = (here / "graph.npz").read_bytes()
    result = command("rewire", trained, "--graph", "graph.npz", "--out", "graph.npz", "--force")
    assert "graph.npz is a file that is read" in result.stderr
    assert (here / "graph.npz").read_bytes() == before


@pytest.mark.parametrize("name", ["out.npz", "out.graphml"])
def test_graphs_of_other_kinds(command, trained, here, name):
    assert command("rewire", trained, "--out", name).exit_code == 0
    assert command("rewire", trained, "--out", name).exit_code == 0
    other = here / name.replace("out", "graph")
    before = other.read_bytes()
    result = command("rewire", trained, "--out", other.name)
    assert "was not written by this command" in result.stderr
    assert other.read_bytes() == before
    assert command("rewire", trained, "--out", other.name, "--force").exit_code == 0


def test_the_graph_of_a_run_is_not_overwritten(command, trained, here):
    (path,) = here.glob("runs/**/graph.npz")
    before = path.read_bytes()
    assert command("rewire", trained, "--out", path).exit_code == 2
    assert path.read_bytes() == before


def test_json(command, trained, here):
    for name in ("-", "/dev/stdout"):
        rows = json.loads(command("predict", trained, *NODES, "--out", name, "--format", "json").stdout)
        assert len(rows) == 20
    for _ in range(2):
        assert command("predict", trained, *NODES, "--out", "p.json").exit_code == 0
        assert command("runs", "export", "r.json").exit_code == 0
    (here / "p.json").write_text('{"node": 1, "prediction": 2, "probability": 3}')
    assert command("predict", trained, *NODES, "--out", "p.json").exit_code == 2
    assert json.loads(command("runs", "export", "-", "--to", "json").stdout)[0]["dataset"] == "nodes"


class TestPages:
    def test_standard_output(self, command, here):
        result = command("reproduce", "measures", "--only", "cora", "--out", "-")
        assert result.exit_code == 0, result.stderr
        assert result.stdout.startswith("# ")
        assert "gumbel-mpnn reproduce measures" in result.stdout
        assert list(here.iterdir()) == []

    def test_a_page_of_the_users(self, command, here):
        assert command("reproduce", "measures", "--only", "cora", "--out", "page.md").exit_code == 0
        assert command("reproduce", "measures", "--only", "cora", "--out", "page.md").exit_code == 0
        for name in ("mine.md", "rows.csv"):
            (here / name).write_text("kept")
            result = command("reproduce", "measures", "--only", "cora", "--out", Path(name).with_suffix(".md"))
            assert f"{name} exists and was not written by this command" in result.stderr
            assert (here / name).read_text() == "kept"

    def test_all_needs_a_folder(self, command, here):
        (here / "results").mkdir()
        (here / "results/accuracy.md").write_text("kept")
        assert "results/accuracy.md exists and was not" in command("reproduce", "all").stderr
        assert "give --out the name of a folder" in command("reproduce", "all", "--out", "-").stderr


@pytest.mark.parametrize("name", ["demo.md", "demo.png"])
def test_a_demo_of_the_users(command, here, name):
    (here / name).write_text("kept")
    assert f"{name} exists and was not written by this command" in command("demo", "--out", ".").stderr
    assert (here / name).read_text() == "kept"


def test_process_substitution_in_a_real_shell(trained, environment, here):
    code = f"{sys.executable} -m gumbel_mpnn"
    files = "--nodes <(cat nodes.csv) --edges <(gzip -c edges.csv | gunzip) --label kind"
    line = f"{code} predict {trained} {files} --out >(cat > out.csv) && {code} measure --graph <(cat graph.npz)"
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (here / "out.csv").read_text().startswith("node,label,prediction,probability,")
    assert "edge homophily" in done.stdout


def test_an_npz_graph_in_a_pipe_and_graphml(command, own, here):
    np.savez(here / "bare.npz", node_labels=np.array([0, 0, 1]), edges=np.array([[0, 1], [1, 2]]))
    for path in (here / "bare.npz", own / "graph.graphml"):
        read, write = os.pipe()
        os.write(write, path.read_bytes()[:60_000])
        os.close(write)
        result = command("measure", "--graph", f"/dev/fd/{read}", "--format", "json")
        os.close(read)
        assert result.exit_code == 0, result.stderr
