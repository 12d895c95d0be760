"""The command starts quickly, says what it can do, and ends in one line when it is interrupted."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from gumbel_mpnn import UserError, __version__
from gumbel_mpnn.cli.common import parse_range
from gumbel_mpnn.runs.store import Record
from gumbel_mpnn.settings import Settings
from gumbel_mpnn.util.files import json_with_checksum

VERBS = ("demo", "train", "predict", "rewire", "report", "audit", "measure", "tune", "data", "doctor", "runs")
SLOW = ("torch", "torch_geometric", "numpy", "pandas", "matplotlib", "sklearn", "numba", "scipy", "optuna", "ray")


def python(*arguments, **changes):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200", **changes}
    return subprocess.run([sys.executable, *map(str, arguments)], env=environment, capture_output=True, text=True)


def imported(*arguments):
    """Slow packages that the command has imported when it is done."""
    code = "import sys; from gumbel_mpnn.cli import app; app(sys.argv[1:], standalone_mode=False);"
    done = python("-c", f"{code} print(*[name for name in {SLOW} if name in sys.modules])", *arguments)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_help_and_lists_do_not_wait_for_torch(tmp_path):
    settings = Settings("tiny", "gcn", {"num_layers": 2}).to_dict()
    record = Record("0123456789abcdef", "a" * 64, settings, 0, 0, "accuracy", 0.5, 0.6, 1, 2, 3.0, {"device": "cpu"})
    for split in (0, 1):
        folder = tmp_path / "train/tiny/gcn/0123456789abcdef" / f"split{split}-seed0"
        folder.mkdir(parents=True)
        (folder / "record.json").write_bytes(json_with_checksum(replace(record, split=split).to_dict()))
    assert imported("--help") == imported("tune", "--help") == set()
    for call in ((), ("show", "0123"), ("compare", "0123", "0123"), ("export", tmp_path / "all.csv")):
        found = imported("runs", *call, "--runs", tmp_path)
        assert ("pandas" in found) == (call == () or call[0] == "export")
        assert not found & {"torch", "torch_geometric", "matplotlib", "sklearn", "numba", "optuna", "ray"}


def test_training_puts_off_what_it_does_not_need(tmp_path):
    slow = ["numba", "torch._dynamo", "torch_geometric.datasets", "torch_geometric.nn"]
    code = (
        "import os, sys; from gumbel_mpnn.cli import app, set_up; set_up(); os.chdir(sys.argv[1]);"
        "train = ['train', 'demo', '--splits', '0', '--set', 'train.epochs=1', '--model'];"
        "[app([*train, model], standalone_mode=False) for model in ('gcn', 'gumbel-mpnn')];"
        f"print([name for name in {slow} if type(sys.modules[name]).__name__ != '_LazyModule']);"
        "from torch_geometric.nn import GCNConv; import torch; torch._dynamo.reset(); print(GCNConv.__name__)"
    )
    done = python("-c", code, tmp_path)
    assert done.stdout.splitlines()[-2:] == ["[]", "GCNConv"], done.stderr


def test_the_version_and_the_help_of_every_verb(command):
    assert command("--version").stdout == f"gumbel-mpnn {__version__}\n"
    for verb in ("", *VERBS, "runs show", "runs compare", "runs export"):
        short, long = (command(*verb.split(), option) for option in ("-h", "--help"))
        assert (short.exit_code, short.stdout) == (0, long.stdout)
        assert "Usage:" in short.stdout
    assert all(f" {verb} " in command("--help").stdout for verb in VERBS)
    assert "--install-completion" in command("--help").stdout


def test_nothing_is_said_when_nobody_reads_on():
    reading, writing = os.pipe()
    os.close(reading)
    call = [sys.executable, "-m", "gumbel_mpnn", "data"]
    done = subprocess.run(call, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.returncode == 1
    assert "error" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("module", "sentence"),
    [("typer", "interrupted"), ("torch", "interrupted: finished runs are stored; repeat the command to continue")],
)
def test_an_interrupt_during_an_import(tmp_path, module, sentence):
    """In `exec`, as when a dataclass is made, after which Python would end by a signal."""
    (tmp_path / f"{module}.py").write_text("exec('raise KeyboardInterrupt')")
    done = python("-m", "gumbel_mpnn", "train", "demo", PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"{sentence}\n")


def test_ranges():
    assert parse_range("0-4,7") == [0, 1, 2, 3, 4, 7]
    assert parse_range(" 2 , 10-12,0") == [2, 10, 11, 12, 0]
    for text in ("", "a", "1-", "-1", "1--2", "1,,2", "1.5", "0:3", "²", "3-1"):
        with pytest.raises(UserError, match="is not a valid range"):
            parse_range(text)


def test_doctor(command, tmp_path):
    rows = {row["what"]: row["found"] for row in json.loads(command("doctor", "--format", "json").stdout)}
    assert rows["gumbel-mpnn"] == __version__
    assert rows["GUMBEL_MPNN_DATA"] == str(tmp_path / "data")
    assert rows["cache folder"] == str(tmp_path / "cache" / "gumbel-mpnn")
    assert rows["numpy"].count(".") >= 2
