"""The command starts quickly, says what it can do, and knows its ranges."""

import os
import subprocess
import sys

import pytest

from gumbel_mpnn import __version__
from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.cli.common import parse_range

VERBS = ("demo", "train", "reproduce", "runs", "doctor", "data", "presets")
LIGHT = (
    "import sys; from gumbel_mpnn.cli import app; app(['--help'], standalone_mode=False);"
    "heavy = {'torch', 'torch_geometric', 'numpy', 'pandas', 'matplotlib', 'sklearn', 'numba'} & set(sys.modules);"
    "sys.exit(f'imported {heavy}' if heavy else 0)"
)
AS_INSTALLED = "import sys; sys.argv = ['gumbel-mpnn']; from gumbel_mpnn.cli import main; main()"


def python(*arguments, **changes):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200", **changes}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


def test_version(command):
    assert command("--version").stdout == f"gumbel-mpnn {__version__}\n"


def test_help_does_not_wait_for_torch():
    done = python("-c", LIGHT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage:" in done.stdout


def test_nothing_is_said_when_nobody_reads_on():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "gumbel_mpnn", "data"], stdout=writing, stderr=subprocess.PIPE, text=True
    )
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
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = python("-m", "gumbel_mpnn", "train", "demo", PYTHONPATH=path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"{sentence}\n")


@pytest.mark.parametrize("arguments", [["--help"], []], ids=["help", "nothing"])
def test_every_verb_is_named(arguments):
    done = python("-m", "gumbel_mpnn", *arguments)
    for verb in VERBS:
        assert f" {verb} " in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", [*VERBS, "data show", "presets show"])
def test_every_verb_explains_itself(command, verb):
    result = command(*verb.split(), "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout
    assert "--format" in result.stdout


@pytest.mark.parametrize("verb", ["", *VERBS, "measure", "rewire", "tune", "data show", "runs export", "runs show"])
def test_the_short_option_of_help(command, verb):
    short, long = (command(*verb.split(), option) for option in ("-h", "--help"))
    assert short.exit_code == 0
    assert short.stdout == long.stdout
    assert "-h, --help" in short.stdout


def test_completion_is_offered(command):
    shown = command("--help").stdout
    assert "--install-completion" in shown
    assert "--show-completion" in shown
    assert "--install-completion" not in command("train", "--help").stdout


def test_verbs_are_completed():
    done = python(
        "-c", AS_INSTALLED, _GUMBEL_MPNN_COMPLETE="complete_bash", COMP_WORDS="gumbel-mpnn re", COMP_CWORD="1"
    )
    assert done.stdout.split() == ["rewire", "report", "reproduce"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0", [0]),
        ("0-4,7", [0, 1, 2, 3, 4, 7]),
        ("3-3", [3]),
        (" 1 , 2-3 ", [1, 2, 3]),
        ("2,0", [2, 0]),
        ("10-12", [10, 11, 12]),
    ],
)
def test_ranges(text, numbers):
    assert parse_range(text) == numbers


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1--2", "1,,2", "1.5", "0:3", "²"])
def test_what_is_no_range(text):
    with pytest.raises(UserError, match="is not a valid range"):
        parse_range(text)


def test_a_range_that_runs_backwards():
    with pytest.raises(UserError, match="the range '3-1' is backwards"):
        parse_range("0,3-1")
