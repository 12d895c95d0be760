"""Tables of learned graphs: each run's own graph counts, at the chosen epoch and at the last."""

from types import SimpleNamespace

import pytest
import torch

from experiments import Job
from experiments.paper.learned_graphs import EPOCHS, Consistency, DegreeGoal
from experiments.studies.spectra import Spectra
from gumbel_mpnn.measures import decompose, std_per_class
from gumbel_mpnn.runs.store import Record
from helpers import both_ways, changed, edges, small_data

LAST = EPOCHS["last"]
PAPER, PAPER_LAST = (Job("cora", "gumbel-mpnn", "paper", overrides=kept) for kept in EPOCHS.values())
PAIRS = ((0, 1), (1, 2), (0, 2))


def record(split, seed=0, epoch=1, test=0.5):
    return Record("f", "d", {}, split, seed, "accuracy", 0.5, test, epoch, epoch, 1.0, {})


@pytest.fixture
def runs(tmp_path):
    """Makes finished runs on `data` whose learned graphs are known: the probabilities of `pairs`, [runs, pairs].

    If they are not `symmetric`, pairs have a direction.
    """

    class Runs:
        def __init__(self, data, pairs, probability, records=None, symmetric=True):
            self.data, self.symmetric = data, symmetric
            self.pairs, self.probability = pairs, torch.tensor(probability)
            self.records = tuple(records or (record(split) for split in range(len(probability))))
            self.n, self.test = len(self.records), SimpleNamespace(mean=0.6)
            self.folders = [str(tmp_path / str(id(self)) / "split0-seed0")]
            (tmp_path / str(id(self))).mkdir()

        def graphs(self, threshold=0.5, records=None):
            for each in self.records if records is None else records:
                probability = self.probability[self.records.index(each)]
                kept = probability >= threshold
                index = edges(*self.pairs)[:, kept]
                yield changed(
                    self.data,
                    edge_index=both_ways(index) if self.symmetric else index,
                    edge_probability=probability[kept].repeat(2 if self.symmetric else 1),
                    num_nodes=self.data.num_nodes,
                )

        def rewire(self, *_, **__):
            pytest.fail("the graphs of the runs were averaged")

    return Runs


@pytest.fixture
def path():
    """A path 0-1-2 of two classes, and the pair 0-2 that may join it."""
    return changed(
        small_data(3), edge_index=both_ways(edges((0, 1), (1, 2))), y=torch.tensor([0, 1, 0]), x=None, num_nodes=3
    )


class TestDegree:
    NAMES = ("degree_min", "degree_mean", "degree_max", "expected")

    def test_means_over_the_graphs_of_the_runs(self, path, runs):
        """A triangle and a single edge: the graph of the mean probabilities is the given path, which no run learned."""
        made = runs(path, PAIRS, [[0.8, 1.0, 0.7], [0.5, 0.2, 0.1]], [record(0, epoch=3), record(1, epoch=8)])
        given, learned, paper_given, paper_learned = DegreeGoal().collect({PAPER: made})
        assert [given[name] for name in self.NAMES] == [1, pytest.approx(4 / 3), 2, None]
        assert [learned[name] for name in self.NAMES] == [1, pytest.approx(4 / 3), 1.5, pytest.approx(1.1)]
        deviations = [2**0.5, 8**0.5 / 3, 0.5**0.5, (5 - 1.6) / 3 / 2**0.5]
        assert [learned[f"{name}_std"] for name in self.NAMES] == pytest.approx(deviations)
        assert (learned["goal"], learned["best_epoch"]) == (pytest.approx(4 / 3 + 5), 5.5)
        assert (learned["test"], learned["n"]) == (pytest.approx(60), 2)
        assert [paper_given[name] for name in self.NAMES] == [1, 3.9, 168, None]
        assert [paper_learned[name] for name in self.NAMES] == [4, 11.5, 161, None]
        text = DegreeGoal().shown([given, learned, paper_given, paper_learned])
        assert "| cora | 1.33 | 1.33±0.94 | 3.90 | 11.50 |" in text

    def test_the_last_epoch_has_a_row_of_its_own_which_is_compared_with_the_paper(self, path, runs):
        chosen, last = (runs(path, PAIRS, [[0.9, 0.9, p]]) for p in (0.1, 0.9))
        rows = DegreeGoal().collect({PAPER: chosen, PAPER_LAST: last})
        found = [(row["preset"], row["epoch"], row["degree_min"]) for row in rows[1:3]]
        assert found == [("paper", "chosen", 1), ("paper", "last", 2)]
        numbers = [n for n in DegreeGoal().numbers() if n.find(rows)]
        assert {n.column: n.find(rows)[n.column] for n in numbers} == dict.fromkeys(self.NAMES[:3], 2)
        mean = next(n for n in numbers if n.column == "degree_mean")
        assert (mean.quantity, mean.value) == ("mean degree, rewired, last epoch", 11.5)
        assert [mean.verdict(ours, None) for ours in (11.52, 12.65, 12.66)] == ["equal", "close", "differs"]


class TestConsistency:
    @pytest.fixture
    def halves(self, runs):
        """A graph between classes, to which both runs add edges within classes; the second removes all others."""
        nodes = 24
        data = small_data(nodes)  # labels repeat with period 3
        across = [(node, node + 1) for node in range(0, nodes, 2)]
        within = [(node, node + 3) for node in range(nodes - 3)]
        data = changed(data, edge_index=both_ways(edges(*across)))
        probability = [[0.9] * len(across) + [0.9] * len(within), [0.1] * len(across) + [0.9] * len(within)]
        return runs(data, (*across, *within), probability)

    def test_means_over_the_graphs_of_the_runs(self, halves):
        both, within = halves.graphs()
        given, learned = Consistency().collect({PAPER: halves})
        spread = std_per_class(both)
        assert spread > 0.05
        assert learned["std"] == pytest.approx((spread + 0) / 2)
        assert learned["std_std"] == pytest.approx(spread / 2**0.5)
        clusters = [
            decompose(both, seeds=[0]).total,
            decompose(within, seeds=[1]).total,
        ]
        assert clusters[1] == 3
        assert learned["clusters"] == sum(clusters) / 2
        assert (learned["n"], learned["clustered"]) == (2, 2)
        assert (given["paper_std"], given["paper_clusters"]) == (0.0957, 47)
        assert (learned["paper_std"], learned["paper_clusters"]) == (0.0853, 41)


def test_spectra_of_a_complete_graph_and_the_given_one(runs):
    """The gap of a complete graph is N / (N − 1), and the resistance of any two nodes 2 / N; a star's gap is 1."""
    nodes = 12
    star = [(0, node) for node in range(1, nodes)]
    others = [(i, j) for i in range(1, nodes) for j in range(i + 1, nodes)]
    data = changed(small_data(nodes), edge_index=both_ways(edges(*star)))
    made = runs(data, (*star, *others), [[0.9] * 66, [0.9] * 11 + [0.1] * 55])
    given, learned = Spectra().collect({PAPER: made})
    assert (given["edges"], given["gap"], given["joined"]) == (11, pytest.approx(1), 100)
    assert learned["edges"] == (66 + 11) / 2
    assert learned["gap"] == pytest.approx((nodes / (nodes - 1) + 1) / 2)
    assert learned["resistance"] == pytest.approx((2 / nodes + given["resistance"]) / 2, rel=1e-4)
    assert learned["given_resistance"] == pytest.approx(given["resistance"])
    assert "| cora | 1.0000 | 1.0455±0.0643 |" in Spectra().shown([given, learned])
