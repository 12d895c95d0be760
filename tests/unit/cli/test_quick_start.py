"""What the command imports before it answers: nobody waits for torch to read a help text or a list."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from gumbel_mpnn.config import Settings
from gumbel_mpnn.runs.query import Record

SLOW = ("torch", "torch_geometric", "pandas", "matplotlib", "sklearn", "numba", "scipy")
FINGERPRINTS = ("0123456789abcdef", "123456789abcdef0")
PROGRAM = f"""
import sys
from gumbel_mpnn.cli import app
app(sys.argv[1:], standalone_mode=False)
print("imported:", *[name for name in {SLOW!r} if name in sys.modules], file=sys.stderr)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two settings with two runs each."""
    root = tmp_path_factory.mktemp("runs")
    for fingerprint in FINGERPRINTS:
        settings = Settings("tiny", "gcn", {"num_layers": 2}).to_dict()
        record = Record(fingerprint, "a" * 64, settings, 0, 0, "accuracy", 0.5, 0.6, 1, 2, 3.0, {"device": "cpu"})
        for split in (0, 1):
            folder = root / "train" / "tiny" / "gcn" / fingerprint / f"split{split}-seed0"
            folder.mkdir(parents=True)
            (folder / "record.json").write_text(json.dumps(replace(record, split=split).to_dict()))
    return root


def imported(environment, *arguments):
    """Which of the slow packages the command has imported when it is done."""
    call = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("imported:")
    return last.split()[1:]


@pytest.mark.parametrize("verb", ["", "train", "reproduce", "runs"])
def test_help_waits_for_nothing(environment, verb):
    assert imported(environment, *verb.split(), "--help") == []


@pytest.mark.parametrize("call", [[], ["show", FINGERPRINTS[0]], ["export", "all.csv"], ["reindex"]], ids=str)
def test_runs_are_read_without_torch(environment, store, tmp_path, call):
    call = [tmp_path / word if word == "all.csv" else word for word in call]
    assert imported(environment, "runs", *call, "--runs", store) == []


def test_runs_are_compared_with_nothing_but_scipy(environment, store):
    assert set(imported(environment, "runs", "compare", *FINGERPRINTS, "--runs", store)) <= {"scipy"}


def test_what_is_slow_would_be_seen(environment):
    assert "torch" in imported(environment, "doctor")
