"""The examples run, at a size that proves nothing but that."""

import importlib.util
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not here")


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tried_here():
    tried = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tried


def test_wrap_your_model(capsys):
    assert 0 <= example("wrap_your_model").main(epochs=1) <= 1
    assert capsys.readouterr().out.startswith("test accuracy")


def test_theorem(capsys):
    wide, narrow = example("theorem").main(count=50)
    assert wide.printed.mean() > 0
    assert narrow.printed.max() == 0 < narrow.on_class_means.mean() <= narrow.expected.mean()
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_graph_classification(capsys):
    found = example("graph_classification").main(graphs=6, epochs=1)
    assert list(found) == ["MLP, no edges", "GCN, given edges", "GCN, all candidates added", "Gumbel-MPNN"]
    assert all(0 <= share <= 1 for share in found.values())
    assert len(capsys.readouterr().out.splitlines()) == 5


@pytest.mark.parametrize(("label", "sums"), [(0, {0.0}), (1, {-8.0, 8.0})])
def test_only_within_groups_do_charges_tell_the_class(label, sums):
    graph = example("graph_classification").make_graph(label, torch.Generator().manual_seed(0))
    charge = graph.x[:, -1].view(4, 8)
    assert set(charge.sum(1).tolist()) == sums
    assert charge.sum() == 0
    assert set(charge.unique().tolist()) == {-1.0, 1.0}
