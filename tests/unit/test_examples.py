"""The examples run, at a size that a moment is enough for."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not here")


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OWN_COMPONENTS = Path(__file__).parents[1] / "integration" / "test_own_components.py"
"""Examples that are plugins are tried there, each by its file name."""


def test_every_example_is_tried():
    here = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    there = set(re.findall(r'"(\w+)\.py"', OWN_COMPONENTS.read_text(encoding="utf-8")))
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= here | there


def test_wrap_your_model(capsys):
    """A few epochs are enough to be far better than a guess among four classes, and none is not."""
    main = example("wrap_your_model").main
    untrained, trained = main(epochs=0), main(epochs=10)
    assert untrained < 0.35
    assert trained > 0.5
    for accuracy, line in zip((untrained, trained), capsys.readouterr().out.splitlines(), strict=True):
        shown = re.fullmatch(r"test accuracy (.+) %, (\d+) edges of which (\d+) given", line)
        assert float(shown[1]) == pytest.approx(100 * accuracy, abs=0.05)
        assert 0 < int(shown[3]) < int(shown[2])


def test_mini_batches(capsys):
    main = example("mini_batches").main
    assert main(epochs=0) < 0.4
    trained = main(epochs=6)
    assert trained > 0.5
    assert f"test accuracy {100 * trained:.1f} %" in capsys.readouterr().out


def test_theorem(capsys):
    wide, narrow = example("theorem").main(count=50)
    assert wide.printed.mean() > 0
    assert narrow.printed.max() == 0 < narrow.on_class_means.mean() <= narrow.expected.mean()
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_graph_classification(capsys):
    found = example("graph_classification").main(graphs=6, epochs=1)
    assert list(found) == ["MLP, no edges", "GCN, given edges", "GCN, all candidates added", "Gumbel-MPNN"]
    *shown, of_edges = capsys.readouterr().out.splitlines()
    assert [line.split() for line in shown] == [
        [*name.split(), f"{100 * share:.1f}", "%"] for name, share in found.items()
    ]
    # Of nine edges of a node one stays within its group, and of the eight others one in four does by chance.
    given = re.match(r"edges within a group: (\d+) % of the given ones, ", of_edges)
    assert 25 < int(given[1]) < 40


@pytest.mark.parametrize(("told", "expected"), [("the same", 1.0), ("the opposite", 0.0)])
def test_graph_classification_counts_what_is_told_right(told, expected):
    """Where the feature is the class, all that is learned carries over to graphs labeled alike, and nothing else."""
    labels = torch.arange(8) % 2
    train = [Data(x=torch.full((3, 1), 2.0 * y - 1), edge_index=torch.empty(2, 0).long(), y=y[None]) for y in labels]
    test = [Data(x=graph.x, edge_index=graph.edge_index, y=1 - graph.y) for graph in train]
    torch.manual_seed(0)
    model = gm.MLP(1, out_channels=2, hidden_channels=8, dropout=0.0)
    held_out = train if told == "the same" else test
    assert example("graph_classification").accuracy(model, train, held_out, epochs=30) == expected


@pytest.mark.parametrize(("label", "sums"), [(0, {0.0}), (1, {-8.0, 8.0})])
def test_only_within_groups_do_charges_tell_the_class(label, sums):
    graph = example("graph_classification").make_graph(label, torch.Generator().manual_seed(0))
    charge = graph.x[:, -1].view(4, 8)
    assert set(charge.sum(1).tolist()) == sums
    assert charge.sum() == 0
    assert set(charge.unique().tolist()) == {-1.0, 1.0}
