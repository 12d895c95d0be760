"""Files that verbs write: standard output, pipes and links, but never over files that are the user's or of a run."""

import csv as csv_module
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_fixtures import REWIRED

NODES = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def trained(train, own, here, kept):
    """The folder of a finished run on own files, which lie in the working folder; trained once for this module."""
    for name in ("nodes.csv", "edges.csv", "graph.npz"):
        shutil.copy(own / name, here)
    if not (kept / "runs").exists():
        train(*NODES, *REWIRED, "--splits", "0")
        shutil.move("runs", kept / "runs")
    shutil.copytree(kept / "runs", "runs")
    (path,) = here.glob("runs/train/nodes/gumbel-mpnn/*/data.json")
    return str(path.parent.relative_to(here))


WRITERS = {
    "train": (*("train", *NODES, *REWIRED, "--splits", "0"), "--predictions"),
    "predict": ("predict", "RUN", *NODES, "--out"),
    "audit": ("audit", "RUN", *NODES, "--out"),
    "rewire": ("rewire", "RUN", *NODES, "--out"),
    "export": ("runs", "export"),
}


@pytest.fixture
def write(command, trained):
    def run(verb, path, *more):
        return command(*(trained if word == "RUN" else word for word in WRITERS[verb]), path, *more)

    return run


@pytest.mark.parametrize("verb", WRITERS)
class TestEveryWriter:
    def test_an_existing_file_needs_force(self, write, verb, here):
        (here / "mine.csv").write_text("a,b\n1,2\n")
        result = write(verb, "mine.csv")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "mine.csv exists: give another name, or --force to overwrite it" in result.stderr
        assert (here / "mine.csv").read_text() == "a,b\n1,2\n"
        assert write(verb, "mine.csv", "--force").exit_code == 0
        assert (here / "mine.csv").read_text() != "a,b\n1,2\n"

    def test_files_of_runs_and_inputs_are_never_overwritten(self, write, trained, verb, here):
        (here / "link.csv").symlink_to("nodes.csv")
        suffix = ".npz" if verb == "rewire" else ".json"
        (here / trained / f"split0-seed0/mine{suffix}").write_text("kept")
        of_run = {f"{trained}/split0-seed0/mine{suffix}": "is a file of a stored run: give another name"}
        inputs = dict.fromkeys(("./nodes.csv", "edges.csv", "link.csv"), "is a file that is read: give another name")
        for name, sentence in (of_run if verb == "export" else of_run | inputs).items():
            before = (here / name).read_bytes()
            result = write(verb, name, "--force")
            assert (result.exit_code, (here / name).read_bytes()) == (2, before)
            assert f"{Path(name)} {sentence}" in result.stderr

    def test_standard_output_links_and_devices(self, write, verb, here):
        result = write(verb, "-")
        assert result.exit_code == 0, result.stderr
        rows = list(csv_module.reader(io.StringIO(result.stdout)))
        assert {len(row) for row in rows} == {len(rows[0])}
        assert rows[0][0] in ("node", "kind", "source", "folder")
        (here / "link.csv").symlink_to("target.csv")
        (here / "null").symlink_to("/dev/null")
        for name in ("link.csv", "null"):
            assert write(verb, name).exit_code == 0
            assert (here / name).is_symlink()
        assert (here / "target.csv").stat().st_size > 0

    def test_folders_and_other_endings_are_refused(self, write, verb, here):
        (here / "folder.csv").mkdir()
        (here / "file").touch()
        for path, message in (
            ("folder.csv", "is a folder: give the name of a file"),
            ("file/out.csv", "file is a file"),
            ("out.xlsx", "" if verb == "rewire" else "must end in .csv or .json: give it another ending"),
        ):
            result = write(verb, path)
            assert result.exit_code == 2
            assert message in result.stderr
        assert not (here / "out.xlsx").exists()


def test_json_by_the_ending_or_the_format(command, trained, here):
    assert len(json.loads(command("predict", trained, *NODES, "--out", "-", "--format", "json").stdout)) == 20
    for verb in ("predict", "audit"):
        assert command(verb, trained, *NODES, "--out", f"{verb}.JSON").exit_code == 0
        assert json.loads((here / f"{verb}.JSON").read_text(), parse_constant=pytest.fail)
    assert isinstance(json.loads((here / "audit.JSON").read_text())[0]["source_known"], bool)


def test_process_substitution_in_a_real_shell(trained, environment, here):
    code = f"{sys.executable} -m gumbel_mpnn"
    files = "--nodes <(cat nodes.csv) --edges <(gzip -c edges.csv | gunzip) --label kind"
    line = f"{code} predict {trained} {files} --out >(cat > out.csv)"
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (here / "out.csv").read_text().startswith("node,label,prediction,probability,")
