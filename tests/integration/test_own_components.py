"""Components of the user's own: each a file of `examples`, its option set from the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not here")


def command(folder, plugin, *arguments):
    plugins = str(EXAMPLES / plugin) if plugin else ""
    env = os.environ | {"GUMBEL_MPNN_PLUGINS": plugins, "PYTHONPATH": str(ROOT / "src"), "GUMBEL_MPNN_CACHE": "off"}
    quick = ["--splits", "0", "--set", "train.epochs=2", "--set", "model.hidden_channels=8", "--device", "cpu"]
    call = [sys.executable, "-m", "gumbel_mpnn", "train", "demo", *arguments, *quick, "--format", "json"]
    return subprocess.run(call, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)


def settings(folder):
    (record,) = folder.glob("runs/train/demo/*/*/split0-seed0/record.json")
    return json.loads(record.read_text())["settings"]


def rewiring(*changes):
    return "--model", "gumbel-mpnn", *(word for change in changes for word in ("--set", f"rewiring.{change}"))


def test_a_regularizer(tmp_path):
    chosen = rewiring("regularizer=edge-share", "regularizer_weight=0.5", "regularizer.share=0.3")
    done = command(tmp_path, "own_regularizer.py", *chosen)
    assert done.returncode == 0, done.stderr
    found = settings(tmp_path)["rewiring"]
    assert (found["regularizer"], found["regularizer.share"]) == ("edge-share", 0.3)


def test_candidates(tmp_path):
    done = command(tmp_path, "own_candidates.py", *rewiring("candidates=hubs", "candidates.hubs=8"))
    assert done.returncode == 0, done.stderr
    assert settings(tmp_path)["rewiring"]["candidates.hubs"] == 8


@pytest.mark.parametrize(
    ("chosen", "name"),
    [(["--model", "far-gcn"], "far-gcn"), (["--model", "drop-edge", "--set", "model.backbone=far-gcn"], "drop-edge")],
)
def test_a_model(tmp_path, chosen, name):
    done = command(tmp_path, "own_model.py", *chosen, "--set", "model.hops=3")
    assert done.returncode == 0, done.stderr
    found = settings(tmp_path)["model"]
    assert (found["name"], found["hops"]) == (name, 3)


@pytest.mark.parametrize(
    ("plugin", "chosen", "message"),
    [
        (
            "own_regularizer.py",
            rewiring("regularizer=edge-share", "regularizer_weight=1", "regularizer.shar=0.3"),
            "error: regularizer 'edge-share' has no option 'shar': did you mean 'share'?",
        ),
        (
            "own_regularizer.py",
            rewiring("regularizer=edge-share", "regularizer_weight=1", "regularizer.share=some"),
            "error: option 'share' of regularizer 'edge-share' must be of type float, like 0.5, but is 'some'",
        ),
        ("", ["--model", "far-gcn"], "error: there is no model called 'far-gcn': did you mean 'gcn'?"),
        ("nowhere.py", ["--model", "gcn"], "of GUMBEL_MPNN_PLUGINS: FileNotFoundError: there is no file"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(tmp_path, plugin, chosen, message):
    done = command(tmp_path, plugin, *chosen)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
