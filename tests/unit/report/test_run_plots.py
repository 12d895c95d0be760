"""What the plots of a run show; nothing of Matplotlib's state is changed."""

from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

import gumbel_mpnn as gm
from helpers import both_ways, changed, edges, small_data
from quick_fit import TABLES, on_other_data, quick

GIVEN = both_ways(edges((0, 1), (1, 2), (2, 3)))


@pytest.fixture(autouse=True)
def figures():
    """No backend with windows, and no figure is left over."""
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def plain():
    return quick()


@pytest.fixture(scope="module")
def rewired():
    part = torch.stack([torch.arange(12) // 4, (torch.arange(12) // 4 + 1) % 3], dim=1)
    masks = {f"{name}_mask": part == k for k, name in enumerate(("train", "val", "test"))}
    data = changed(small_data(12), class_names=["a", "<b>", "$c$"], edge_index=GIVEN, **masks)
    return quick(data, "gumbel-mpnn", overrides=["rewiring.candidates=two_hop"])


@pytest.fixture
def learned(rewired, monkeypatch):
    """The run with known probabilities: (0, 1) kept, (1, 2) dropped, (2, 3) kept, and (0, 2) added."""

    def rewire(self, data=None, threshold=0.5):
        pairs = edges((0, 1), (0, 2), (0, 3), (1, 2), (2, 3))
        probability = torch.tensor([0.9, 0.8, 0.1, 0.2, 0.6])
        given = torch.tensor([True, False, False, True, True])
        chosen = probability >= threshold
        return changed(
            self.data,
            edge_index=both_ways(pairs[:, chosen]),
            edge_probability=probability[chosen].repeat(2),
            edge_origin=given[chosen].repeat(2),
        )

    monkeypatch.setattr(gm.Run, "rewire", rewire)
    return rewired


def titles(axes):
    return [ax.get_title() for ax in axes]


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


class TestAll:
    def test_models_that_rewire_have_more(self, rewired, plain):
        words = ["training", "test", "learned", "degrees"]
        assert [title.split()[0] for title in titles(rewired.plot())] == words
        assert [title.split()[0] for title in titles(plain.plot())] == words[:2]

    def test_sdrf_has_no_probabilities(self, plain, monkeypatch):
        monkeypatch.setattr(gm.Run, "confusion_matrix", lambda self: torch.eye(3, dtype=torch.int64))
        monkeypatch.setattr(gm.Run, "rewire", lambda self: self.data)
        run = replace(plain, settings=replace(plain.settings, model="sdrf"))
        assert [title.split()[0] for title in titles(run.plot())] == ["training", "test", "degrees"]

    def test_no_confusion_without_test_nodes(self, plain):
        data = changed(plain.data, test_mask=torch.zeros_like(plain.data.test_mask))
        run = on_other_data(plain, data)
        assert len(run.plot()) == 1
        with pytest.raises(gm.UserError, match="no test nodes"):
            run.plot("confusion")

    def test_matplotlib_is_as_before(self, rewired):
        before, open_before = dict(mpl.rcParams), plt.get_fignums()
        axes = rewired.plot()
        assert dict(mpl.rcParams) == before
        assert mpl.get_backend().lower() == "agg"
        assert len(plt.get_fignums()) == len(open_before) + 1
        axes[0].figure.canvas.draw()

    def test_mistakes(self, plain):
        with pytest.raises(gm.UserError, match="there is no plot called 'curve': did you mean 'curves'"):
            plain.plot("curve")
        with pytest.raises(gm.UserError, match="ax takes a single plot: name one of curves, confusion"):
            plain.plot(ax=plt.figure().add_subplot())
        with pytest.raises(gm.UserError, match="'gcn' learns no edge probabilities"):
            plain.plot("probabilities")
        with pytest.raises(gm.UserError, match="'gcn' does not rewire the graph"):
            plain.plot("degrees")


class TestOne:
    def test_given_axes_are_used(self, plain):
        ax = plt.figure().add_subplot()
        assert plain.plot("confusion", ax=ax) is ax
        assert plt.get_fignums() == [ax.figure.number]

    def test_curves(self, plain):
        ax = plain.plot("curves")
        *runs, mean, chosen = ax.get_lines()
        values = plain.history.pivot_table(index="epoch", columns="split", values="val")
        for line, split in zip(runs, (0, 1), strict=True):
            np.testing.assert_allclose(line.get_ydata(), 100 * values[split])
        np.testing.assert_allclose(mean.get_ydata(), 100 * values.mean(axis=1))
        assert chosen.get_xdata().tolist() == [record.best_epoch for record in plain.records]
        assert chosen.get_ydata().tolist() == [100 * record.val for record in plain.records]
        losses = ax.figure.axes[1].get_lines()
        assert [line.get_linestyle() for line in losses] == ["--", ":"]
        by_epoch = plain.history.groupby("epoch")
        np.testing.assert_allclose(losses[0].get_ydata(), by_epoch.train_loss.mean())
        np.testing.assert_allclose(losses[1].get_ydata(), by_epoch.val_loss.mean())

    def test_the_mean_ends_with_the_shortest_run(self, plain, monkeypatch):
        history = plain.history.query("split == 0 or epoch <= 3")
        monkeypatch.setattr(gm.Run, "history", history)
        first, second, mean, _ = plain.plot("curves").get_lines()
        assert np.isfinite(first.get_ydata()).sum() == 6
        assert np.isfinite(second.get_ydata()).sum() == 3
        assert mean.get_xdata().tolist() == [1, 2, 3]

    def test_confusion(self, rewired, monkeypatch):
        matrix = torch.tensor([[3, 1, 0], [0, 4, 0], [2, 0, 0]])
        monkeypatch.setattr(gm.Run, "confusion_matrix", lambda self: matrix)
        ax = rewired.plot("confusion")
        assert ax.get_title() == "test nodes: 70.0 % right (2 runs added)"
        assert ax.images[0].get_array().tolist() == [[0.75, 0.25, 0], [0, 1, 0], [1, 0, 0]]
        assert [text.get_text() for text in ax.texts] == ["3", "1", "0", "0", "4", "0", "2", "0", "0"]
        assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "<b>", r"\$c\$"]
        ax.figure.canvas.draw()  # a dollar sign that began a formula would be an error here

    def test_probabilities(self, learned):
        ax = learned.plot("probabilities")
        assert texts(ax.get_legend()) == [
            "given edges: 3, 2 of them at ½ or more",
            "candidates: 2, 1 of them at ½ or more",
        ]

    def test_degrees(self, learned):
        """Before, the path 0–1–2–3 has mean degree 6/12; after, 0–1, 0–2 and 2–3 have the same. Nodes 4 to 11: none."""
        ax = learned.plot("degrees")
        assert texts(ax.get_legend()) == [
            "given graph: mean 0.5, 8 isolated",
            "learned graph: mean 0.5, 8 isolated",
        ]

    def test_large_degrees_have_wider_bars(self, rewired, monkeypatch):
        star = both_ways(edges(*((0, other) for other in range(1, 101))))
        run = on_other_data(rewired, small_data(101).update({"edge_index": star}))
        monkeypatch.setattr(gm.Run, "rewire", lambda self, threshold=0.5: self.data)
        ax = run.plot("degrees")
        assert ax.get_xscale() == "symlog"
        counts, bins, _ = ax.patches[0].get_data()
        assert counts.max() == 100  # the leaves, all of degree 1
        assert bins.max() > 100


class TestNeighborhood:
    def lines(self, ax):
        """Edges by their look, each as the names of its ends."""
        at = {tuple(np.round(note.xy, 6)): note.get_text() for note in ax.texts}
        found = {}
        for line in ax.get_lines():
            ends = frozenset(at[tuple(np.round(place, 6))] for place in line.get_xydata())
            found.setdefault(line.get_linestyle(), set()).add("".join(sorted(ends)))
        return found

    def test_kept_dropped_and_added(self, learned):
        before, after = gm.plot_neighborhood(learned, 2)
        assert self.lines(before) == {"-": {"01", "12", "23"}}  # node 0 is a neighbor after rewiring
        assert self.lines(after) == {"-": {"01", "23"}, ":": {"12"}, "--": {"02"}}
        assert after.get_title() == "rewired: 2 kept, 1 dropped, 1 added"

    def test_nodes_in_more_hops(self, learned):
        names = [{note.get_text() for note in gm.plot_neighborhood(learned, 3, hops)[0].texts} for hops in (1, 2, 3)]
        assert names == [{"2", "3"}, {"0", "1", "2", "3"}, {"0", "1", "2", "3"}]

    def test_the_surest_edges_first(self, learned):
        """Of the neighbors of 2, node 3 has an edge at .6, near one half; 0 (.8) and 1 (.2) are farther from it."""
        axes = gm.plot_neighborhood(learned, 2, most=3)
        assert {note.get_text() for note in axes[0].texts} == {"0", "1", "2"}
        assert axes[0].figure.get_suptitle().endswith("(3 of 4 nodes: the nearest, and those with the surest edges)")

    def test_a_node_by_its_id(self, learned):
        run = on_other_data(learned, changed(learned.data, node_ids=[f"n{k}" for k in range(12)]))
        assert gm.plot_neighborhood(run, "n2")[0].figure.get_suptitle() == "node n2 and neighbors within 1 hop"
        with pytest.raises(gm.UserError, match=r"no node 'n99': give one of run\.data\.node_ids"):
            gm.plot_neighborhood(run, "n99")

    def test_numbers_that_are_ids(self, learned):
        run = on_other_data(learned, changed(learned.data, node_ids=list(range(11, -1, -1))))
        assert {note.get_text() for note in gm.plot_neighborhood(run, 9)[0].texts} == {"11", "10", "9", "8"}

    def test_the_legend(self, learned):
        y = learned.data.y.clone()
        y[3] = -1
        run = on_other_data(learned, changed(learned.data, y=y))
        names = texts(gm.plot_neighborhood(run, 2)[0].figure.legends[0])
        assert names[:3] == ["added edge", "dropped edge", "kept edge"]
        assert names[3:] == ["no label", "class a", "class <b>", r"class \$c\$"]

    def test_a_lonely_node(self, learned):
        before, after = gm.plot_neighborhood(learned, 7)
        assert len(before.get_lines()) == len(after.get_lines()) == 0
        before.figure.canvas.draw()

    def test_mistakes(self, learned, plain):
        with pytest.raises(gm.UserError, match="hops must be at least 1"):
            gm.plot_neighborhood(learned, 0, hops=0)
        with pytest.raises(gm.UserError, match="no node 12: give a number from 0 to 11"):
            gm.plot_neighborhood(learned, 12)
        with pytest.raises(gm.UserError, match="'gcn' does not rewire the graph"):
            gm.plot_neighborhood(plain, 0)


def test_runs_without_validation_and_test_have_losses_only():
    run = quick(settings={**TABLES, "data": {"protocol": "all"}, "train": {"epochs": 4, "select": "last"}})
    (ax,) = run.plot().flat
    assert len(ax.get_lines()) == 0
    (losses,) = [each for each in ax.figure.axes if each is not ax]
    assert [line.get_label() for line in losses.get_lines()] == ["training loss"]
