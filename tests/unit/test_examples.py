"""The examples run, at a size that a moment is enough for."""

import importlib.util
import random
import re
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from helpers import edges, normal, small_data

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
    here = {name.removeprefix("test_") for name in (*globals(), *vars(TestTheorem)) if name.startswith("test_")}
    there = set(re.findall(r'"(\w+)\.py"', OWN_COMPONENTS.read_text(encoding="utf-8")))
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= here | there


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80


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


def test_pyg_loop(capsys):
    main = example("pyg_loop").main
    assert main(epochs=1) < 0.5
    trained = main(epochs=12)
    assert trained > 0.6
    assert f"test accuracy {100 * trained:.1f} %" in capsys.readouterr().out


def test_own_data(tmp_path, capsys):
    """Two groups with their own features and contacts, and ten contacts between the groups, which are wrong."""
    rng = random.Random(0)
    rows = [f"p{k},{k % 2 + rng.gauss(0, 0.4):.2f},{'ab'[k % 2] if k % 7 else ''}" for k in range(60)]
    right = [f"p{a},p{b}" for a in range(60) for b in range(a) if a % 2 == b % 2 and rng.random() < 0.15]
    wrong = [f"p{a},p{a + 1}" for a in range(0, 20, 2)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,size,group", *rows]))
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *right, *wrong]))
    files = str(tmp_path / "nodes.csv"), str(tmp_path / "edges.csv")
    short = {"splits": range(2), "settings": {"train": {"epochs": 30}}}
    run = example("own_data").main(*files, "group", model="gcn", **short)
    assert run.test.mean > 0.7
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 61
    edges, cleaned = (
        [tuple(row.split(",")[:2]) for row in (tmp_path / name).read_text().splitlines()[1:]]
        for name in ("edges-ranked.csv", "edges-cleaned.csv")
    )
    assert set(cleaned) < set(edges)
    assert len(edges) == len(right) + len(wrong)
    between = [int(a[1:]) % 2 != int(b[1:]) % 2 for a, b in edges]
    assert sum(between[: len(edges) // 10]) > sum(between) / 2
    assert f"kept {len(cleaned)} of {len(edges)} edges" in capsys.readouterr().out


def test_inductive(capsys):
    with_edges, without = example("inductive").main(epochs=20, splits=1)
    assert with_edges > 0.6
    assert 0.25 < without < 1
    assert re.search(r"(\d+) learned edges at new nodes, of which (\d+) were given", capsys.readouterr().out)


def test_with_sklearn(capsys):
    found = example("with_sklearn").main(epochs=10, folds=2)
    assert list(found) == ["gcn", "gumbel-mpnn"]
    assert min(found.values()) > 0.4
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_with_lightning():
    """It trains or, without Lightning, ends in one sentence and no traceback."""
    if importlib.util.find_spec("lightning"):
        main = example("with_lightning").main
        assert main(epochs=1) < main(epochs=12)
    else:
        with pytest.raises(SystemExit, match="this example needs Lightning"):
            example("with_lightning")


def test_mini_batches(capsys):
    main = example("mini_batches").main
    assert main(epochs=0) < 0.4
    trained = main(epochs=6)
    assert trained > 0.5
    assert f"test accuracy {100 * trained:.1f} %" in capsys.readouterr().out


def test_graph_classification(capsys):
    found = example("graph_classification").main(graphs=6, epochs=1)
    assert list(found) == ["MLP, no edges", "GCN, given edges", "GCN, all candidates added", "Gumbel-MPNN"]
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert shown == [[*name.split(), f"{100 * share:.1f}", "%"] for name, share in found.items()]


class TestTheorem:
    """Nodes 0 and 1 are of class 0; around 0 are one of each class, around 1 two of class 1."""

    GRAPH = Data(
        edge_index=edges((0, 4), (0, 2), (1, 2), (1, 3)),
        y=torch.tensor([0, 0, 1, 1, 0]),
        x=torch.tensor([[2.0, 0], [4, 0], [0, 2], [0, 4], [0, 0]]),
    )
    PAIR = edges((0, 1))

    def test_theorem(self, capsys):
        wide, narrow = example("theorem").main(count=50)
        assert wide.printed.mean() > 0
        assert narrow.printed.max() == 0 < narrow.on_class_means.mean() <= narrow.expected.mean()
        assert len(capsys.readouterr().out.splitlines()) == 2

    def test_the_bound_by_hand(self):
        """Class means (2, 0) and (0, 3): expected neighbor features (1, 1.5) and (0, 3), their difference (1, -1.5)."""
        bounds = example("theorem").theorem_bounds(self.GRAPH, torch.tensor([[3.0, 0], [0, 2], [0, 0]]), self.PAIR)
        assert bounds.printed.tolist() == pytest.approx([2 * 3.25**0.5])
        assert bounds.expected.tolist() == pytest.approx([18**0.5])

    def test_the_inequality_on_a_generated_graph(self):
        """Gaussian features, the mean distance over 300 draws of features."""
        theorem, data = example("theorem"), small_data(120, classes=4)
        data.edge_index, _ = remove_self_loops(data.edge_index)
        means, weight = 3 * normal(4, 5, seed=2), normal(8, 5, seed=3)
        first, second = pairs = theorem.same_class_pairs(data, 200)
        assert (data.y[first] == data.y[second]).all()
        bounds = theorem.theorem_bounds(data, weight, pairs, means)
        source, target = to_undirected(data.edge_index, num_nodes=120)
        average = torch.zeros(120, 120, dtype=torch.float64).index_put((target, source), torch.tensor(1.0).double())
        average = average / average.sum(1, keepdim=True).clamp(min=1)
        x = means[data.y] + normal(300, 120, 5, seed=4)
        h = average @ x @ weight.T
        distance = (h[:, first] - h[:, second]).norm(dim=2).mean(0)
        assert bounds.printed.mean() > 0.1
        assert (bounds.printed <= distance).all()
        assert (bounds.expected <= 1.02 * distance + 0.05).all()  # a mean over draws may be below its expectation
