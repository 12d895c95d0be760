"""Components of the user's own: each a file of `examples`, its option set from the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
# Commands in one process, each with its exit code and what it says.
PROGRAM = """
import json, sys
from typer.testing import CliRunner
from gumbel_mpnn.cli import app, set_up
set_up()
called = [CliRunner().invoke(app, words) for words in json.loads(sys.argv[1])]
print(json.dumps([[result.exit_code, result.stderr] for result in called]))
"""
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not here")


def commands(folder, plugins, *calls):
    """(exit code, standard error) of `train` with the arguments of each call, all in one process."""
    env = os.environ | {"GUMBEL_MPNN_PLUGINS": plugins, "PYTHONPATH": str(ROOT / "src")}
    quick = ["--splits", "0", "--set", "train.epochs=2", "--set", "model.hidden_channels=8", "--device", "cpu"]
    words = [["train", "demo", *call, *quick, "--runs", str(folder / str(k))] for k, call in enumerate(calls)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(words)], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def settings(folder, number):
    (record,) = folder.glob(f"{number}/train/demo/*/*/split0-seed0/record.json")
    return json.loads(record.read_text())["settings"]


def rewiring(*changes):
    return "--model", "gumbel-mpnn", *(word for change in changes for word in ("--set", f"rewiring.{change}"))


def own_share(change):
    return rewiring("regularizer=edge-share", "regularizer.weight=0.5", change)


CALLS = [
    own_share("regularizer.share=0.3"),
    rewiring("candidates=hubs", "candidates.hubs=8"),
    ["--model", "far-gcn", "--set", "model.hops=3"],
    ["--model", "drop-edge", "--set", "model.backbone=far-gcn", "--set", "model.hops=3"],
    own_share("regularizer.shar=0.3"),
    own_share("regularizer.share=some"),
]


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """The folder of the runs of all calls, and how each ended."""
    folder = tmp_path_factory.mktemp("own")
    plugins = ",".join(str(EXAMPLES / name) for name in ("own_regularizer.py", "own_candidates.py", "own_model.py"))
    return folder, commands(folder, plugins, *CALLS)


def test_a_regularizer(called):
    folder, ended = called
    assert ended[0][0] == 0, ended[0]
    found = settings(folder, 0)["rewiring"]
    assert (found["regularizer"], found["regularizer.share"]) == ("edge-share", 0.3)


def test_candidates(called):
    folder, ended = called
    assert ended[1][0] == 0, ended[1]
    assert settings(folder, 1)["rewiring"]["candidates.hubs"] == 8


@pytest.mark.parametrize(("number", "name"), [(2, "far-gcn"), (3, "drop-edge")])
def test_a_model(called, number, name):
    folder, ended = called
    assert ended[number][0] == 0, ended[number]
    found = settings(folder, number)["model"]
    assert (found["name"], found["hops"]) == (name, 3)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (4, "error: regularizer 'edge-share' has no option 'shar': did you mean 'share'?"),
        (5, "error: option 'share' of regularizer 'edge-share' must be of type float, like 0.5, but is 'some'"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(called, number, message):
    code, stderr = called[1][number]
    assert [code, stderr] == [2, f"{message}\n"]


@pytest.mark.parametrize(
    ("plugins", "model", "message"),
    [
        ("", "far-gcn", "error: there is no model called 'far-gcn': did you mean 'gcn'?"),
        (str(EXAMPLES / "nowhere.py"), "gcn", "of GUMBEL_MPNN_PLUGINS: FileNotFoundError: there is no file"),
    ],
)
def test_components_that_are_not_there(tmp_path, plugins, model, message):
    ((code, stderr),) = commands(tmp_path, plugins, ["--model", model])
    assert code == 2
    assert message in stderr
    assert stderr.count("\n") == 1
