"""Modules that the command puts off are there when they are used."""

import os
import subprocess
import sys

import pytest

FIRST = "import sys; from gumbel_mpnn.cli import app, set_up; set_up();"
TRAIN = (
    "train = ['train', 'demo', '--splits', '0', '--set', 'train.epochs=1', '--model'];"
    "[app([*train, model], standalone_mode=False) for model in ('gcn', 'gumbel-mpnn')];"
)
ARE_RUN = (
    "put_off = ['numba', 'torch._dynamo', 'torch_geometric.datasets', 'torch_geometric.nn'];"
    "print([name for name in put_off if type(sys.modules[name]).__name__ != '_LazyModule'])"
)
MISSING = "from gumbel_mpnn._util.put_off import put_off; put_off('no_such_module'); import no_such_module"


def python(code, folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True)


def test_training_starts_without_what_it_does_not_need(tmp_path):
    done = python(FIRST + TRAIN + ARE_RUN, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "use",
    [
        "from torch_geometric.nn import GCNConv; print(GCNConv.__name__)",
        "import torch_geometric; print(torch_geometric.nn.conv.GCNConv.__name__)",
        "import torch, torch_geometric; torch._dynamo.reset(); print('GCNConv')",
    ],
)
def test_modules_are_run_when_they_are_used(use, tmp_path):
    done = python(FIRST + "import torch_geometric.data;" + use, tmp_path)
    assert (done.returncode, done.stdout) == (0, "GCNConv\n"), done.stderr


def test_a_missing_module_is_reported_at_once(tmp_path):
    assert "No module named 'no_such_module'" in python(MISSING, tmp_path).stderr
