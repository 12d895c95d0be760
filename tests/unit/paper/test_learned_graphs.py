"""Tables of learned graphs: each run's own graph counts, at the chosen epoch and at the last."""

import json
from types import SimpleNamespace

import pytest
import torch

from gumbel_mpnn.measures import decompose
from gumbel_mpnn.paper import Job, consistency, experiments, published
from gumbel_mpnn.paper.consistency import Consistency
from gumbel_mpnn.paper.degree import GOAL, DegreeGoal
from gumbel_mpnn.paper.spectra import Spectra
from gumbel_mpnn.paper.structure import EPOCHS, SAMPLE, epoch_of, over_runs, paper_jobs, sample
from gumbel_mpnn.report.table import Fixed
from gumbel_mpnn.runs import fit
from gumbel_mpnn.runs.query import Record
from helpers import both_ways, changed, edges, small_data
from quick_fit import resolved

LAST = EPOCHS["last"]
PAPER, PAPER_LAST = (Job("cora", "gumbel-mpnn", "paper", overrides=kept) for kept in EPOCHS.values())


def record(split, seed=0, epoch=1, test=0.5):
    return Record("f", "d", {}, split, seed, "accuracy", 0.5, test, epoch, epoch, 1.0, {})


class Runs:
    """Finished runs on `data` whose learned graphs are known: the probabilities of `pairs`, [runs, pairs].

    If they are not `symmetric`, pairs have a direction.
    """

    def __init__(self, data, pairs, probability, records=None, symmetric=True):
        self.data, self.symmetric = data, symmetric
        self.pairs, self.probability = pairs, torch.tensor(probability)
        self.records = tuple(records or (record(split) for split in range(len(probability))))
        self.n, self.test = len(self.records), SimpleNamespace(mean=0.6)

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

    def stored(self, name, make, wait):
        """Make it anew and store nothing; what it returns has been plain JSON all the same."""
        return json.loads(json.dumps(make()))


@pytest.fixture
def path():
    """A path 0-1-2 of two classes, and the pair 0-2 that may join it."""
    return changed(
        small_data(3), edge_index=both_ways(edges((0, 1), (1, 2))), y=torch.tensor([0, 1, 0]), x=None, num_nodes=3
    )


PAIRS = ((0, 1), (1, 2), (0, 2))


class TestShared:
    def test_last_is_the_preset_with_other_evaluations(self):
        chosen, last = (
            resolved(job.dataset, job.model, preset=job.preset, overrides=job.overrides).to_dict()
            for job in (PAPER, PAPER_LAST)
        )
        changed_settings = ("select", "patience", "eval_every")
        assert [chosen["train"].pop(name) for name in changed_settings] == ["validation", 100, 1]
        assert [last["train"].pop(name) for name in changed_settings] == ["last", 0, 100]
        assert chosen == last
        assert [epoch_of(job) for job in (PAPER, PAPER_LAST)] == ["chosen", "last"]

    def test_evaluations_do_not_change_the_last_epoch(self):
        settings = {"model": {"hidden_channels": 4, "dropout": 0.5}, "train": {"epochs": 5}}
        rare, often = (
            fit(small_data(), "gumbel-mpnn", splits=[0], settings=settings, overrides=(*LAST, *more), device="cpu")
            for more in ([], ["train.eval_every=1"])
        )
        (one,), (other,) = rare.graphs(threshold=0.0), often.graphs(threshold=0.0)
        assert torch.equal(one.edge_probability, other.edge_probability)
        assert torch.equal(rare.predict_proba(), often.predict_proba())
        assert [len(run.history) for run in (rare, often)] == [1, 5]

    def test_both_presets_at_both_epochs(self):
        jobs = paper_jobs(["cora", "actor"], "mine", GOAL)
        assert [(job.dataset, job.preset, epoch_of(job)) for job in jobs[:5]] == [
            ("cora", "paper", "chosen"),
            ("cora", "paper", "last"),
            ("cora", "literal", "chosen"),
            ("cora", "literal", "last"),
            ("actor", "paper", "chosen"),
        ]
        assert {job.overrides[: len(GOAL)] for job in jobs} == {GOAL}
        assert {job.experiment for job in jobs} == {"mine"}

    def test_a_few_splits_with_the_first_seed(self):
        records = [record(split, seed) for seed in (0, 1) for split in range(8)]
        assert sample(records) == [record(split, 0) for split in range(SAMPLE)]
        assert sample(records[3:5]) == records[3:5]

    def test_mean_and_deviation(self):
        found = over_runs([{"a": 1, "b": None}, {"a": 3, "b": 5.0}, {"a": 8, "b": None}], counts=["a"])
        assert found == {"a": 4.0, "a_std": pytest.approx(13**0.5), "b": 5.0, "b_std": None}
        assert (found["a"].digits, isinstance(found["b"], Fixed)) == (1, False)
        assert over_runs([{"a": None}]) == {"a": None, "a_std": None}

    @pytest.mark.parametrize(("page", "columns"), [("degree", 3), ("consistency", 2)])
    def test_every_published_number_once_for_each_preset(self, page, columns):
        numbers = experiments[page].numbers()
        assert len(numbers) == 12 * columns * 2
        assert len({(n.dataset, n.quantity, n.preset) for n in numbers}) == len(numbers)
        assert {(n.preset, n.row["preset"], n.row["epoch"]) for n in numbers} == {
            ("paper", "paper", "last"),
            ("literal", "literal", "last"),
        }

    def test_ten_percent_is_close(self):
        number = next(n for n in DegreeGoal().numbers() if n.column == "degree_mean")
        assert (number.quantity, number.value) == ("mean degree, rewired, last epoch", 11.5)
        assert [number.verdict(ours, None) for ours in (11.52, 12.65, 10.35, 12.66)] == [
            "equal",
            "close",
            "close",
            "differs",
        ]


class TestDegree:
    NAMES = ("degree_min", "degree_mean", "degree_max", "expected")

    def test_the_goal_is_five_more_than_the_mean(self):
        settings = resolved("cora", "gumbel-mpnn", preset="paper", overrides=GOAL).rewiring
        assert (settings.regularizer, settings.target_degree, settings.regularizer_weight) == ("degree", 0, 1)

    def test_means_over_the_graphs_of_the_runs(self, path):
        """A triangle and a single edge: the graph of the mean probabilities is the given path, which no run learned."""
        runs = Runs(path, PAIRS, [[0.8, 1.0, 0.7], [0.5, 0.2, 0.1]], [record(0, epoch=3), record(1, epoch=8)])
        given, learned, paper_given, paper_learned = DegreeGoal().collect({PAPER: runs})
        assert [given[name] for name in self.NAMES] == [1, pytest.approx(4 / 3), 2, None]
        assert [learned[name] for name in self.NAMES] == [1, pytest.approx(4 / 3), 1.5, pytest.approx(1.1)]
        deviations = [2**0.5, 8**0.5 / 3, 0.5**0.5, (5 - 1.6) / 3 / 2**0.5]
        assert [learned[f"{name}_std"] for name in self.NAMES] == pytest.approx(deviations)
        assert (learned["goal"], learned["best_epoch"]) == (pytest.approx(4 / 3 + 5), 5.5)
        assert (learned["test"], learned["n"]) == (pytest.approx(60), 2)
        assert [paper_given[name] for name in self.NAMES] == [1, 3.9, 168, None]
        assert [paper_learned[name] for name in self.NAMES] == [4, 11.5, 161, None]

    def test_edges_to_a_node_count(self, path):
        """0 → 1 ← 2 with 2 → 0 unlikely: degrees 0, 2, 0."""
        runs = Runs(path, ((0, 1), (2, 1), (2, 0)), [[0.9, 0.9, 0.3]], symmetric=False)
        learned = DegreeGoal().collect({PAPER: runs})[1]
        assert [learned[name] for name in self.NAMES] == [0, pytest.approx(2 / 3), 2, pytest.approx(2.1 / 3)]

    def test_the_last_epoch_has_a_row_of_its_own(self, path):
        chosen = Runs(path, PAIRS, [[0.9, 0.9, 0.1]])
        last = Runs(path, PAIRS, [[0.9, 0.9, 0.9]], [record(0, epoch=1000)])
        rows = DegreeGoal().collect({PAPER: chosen, PAPER_LAST: last})
        found = [(row["preset"], row["epoch"], row["degree_min"], row["best_epoch"]) for row in rows[1:3]]
        assert found == [("paper", "chosen", 1, 1), ("paper", "last", 2, 1000)]
        compared = [n for n in DegreeGoal().numbers() if n.find(rows) is not None]
        assert {n.column: n.find(rows)[n.column] for n in compared} == {
            "degree_min": 2,
            "degree_mean": 2,
            "degree_max": 2,
        }

    def test_a_heavy_goal_raises_the_degree_until_the_last_epoch(self):
        """Candidates start unlikely; the goal is what turns them into edges."""
        data = small_data(nodes=40, splits=2)
        settings = {"model": {"hidden_channels": 4}, "train": {"epochs": 20}, "rewiring": {"lr": 0.3, "per_node": 6}}
        means = []
        for overrides in (LAST, (*GOAL, *LAST)):
            run = fit(data, "gumbel-mpnn", settings=settings, overrides=overrides, device="cpu")
            row = DegreeGoal().collect({Job("tiny", "gumbel-mpnn", overrides=overrides): run})[1]
            assert (row["graph"], row["epoch"], row["best_epoch"]) == ("learned", "last", 20)
            means.append(row["degree_mean"])
        assert means[1] > means[0] + 2


class TestConsistency:
    @pytest.fixture
    def halves(self):
        """A graph between classes, to which both runs add edges within classes; the second removes all others."""
        nodes = 24
        data = small_data(nodes)  # labels repeat with period 3
        across = [(node, node + 1) for node in range(0, nodes, 2)]
        within = [(node, node + 3) for node in range(nodes - 3)]
        data = changed(data, edge_index=both_ways(edges(*across)))
        probability = [[0.9] * len(across) + [0.9] * len(within), [0.1] * len(across) + [0.9] * len(within)]
        return Runs(data, (*across, *within), probability)

    def test_means_over_the_graphs_of_the_runs(self, halves):
        both, within = halves.graphs()
        given, learned = Consistency().collect({PAPER: halves})
        spread = consistency.std_per_class(both)
        assert spread > 0.05
        assert learned["std"] == pytest.approx((spread + 0) / 2)
        assert learned["std_std"] == pytest.approx(spread / 2**0.5)
        clusters = [
            decompose(both, seeds=[0], reg_covar=1e-6).total,
            decompose(within, seeds=[1], reg_covar=1e-6).total,
        ]
        assert clusters[1] == 3
        assert learned["clusters"] == sum(clusters) / 2
        assert (learned["n"], learned["clustered"]) == (2, 2)
        assert (given["paper_std"], given["paper_clusters"]) == (0.0957, 47)
        assert (learned["paper_std"], learned["paper_clusters"]) == (0.0853, 41)

    def test_neighbors_are_those_with_an_edge_to_a_node(self, path):
        """0 → 1 and 0 → 2: only node 1 sees another class. The second run has 1 → 0 as well."""
        runs = Runs(path, ((0, 1), (0, 2), (1, 0)), [[0.9, 0.9, 0.1], [0.9, 0.9, 0.9]], symmetric=False)
        learned = Consistency().collect({PAPER: runs})[1]
        # The second run: (1/2, 1/2) and (1, 0) in class 0, whose deviation is √(1/8) in both dimensions.
        assert learned["std"] == pytest.approx((0 + 0.125**0.5) / 2)

    def test_the_same_regularization_before_and_after(self, halves, monkeypatch):
        asked = []

        def note(graph, seeds, directed, reg_covar, cache):
            asked.append((*seeds, reg_covar))
            return SimpleNamespace(total=7)

        monkeypatch.setattr(consistency, "decompose", note)
        given, learned = Consistency().collect({PAPER: halves})
        assert asked == [(seed, 1e-6) for seed in range(SAMPLE)] + [(0, 1e-6), (1, 1e-6)]
        assert (given["clusters"], learned["clusters"]) == (7, 7)

    def test_few_runs_are_clustered_and_all_are_measured(self, halves, monkeypatch):
        records = [record(split, seed) for split in range(7) for seed in range(2)]
        probability = [halves.probability[0].tolist()] * 14
        monkeypatch.setattr(consistency, "decompose", lambda *_, seeds, **__: SimpleNamespace(total=seeds[0]))
        given, learned = Consistency().collect({PAPER: Runs(halves.data, halves.pairs, probability, records)})
        assert (learned["n"], learned["clustered"]) == (14, 5)
        assert (given["clusters"], learned["clusters"]) == (2, 2)  # seeds 0 to 4

    def test_tuned_chosen_and_last(self, halves):
        first, second = (Runs(halves.data, halves.pairs, [row]) for row in halves.probability.tolist())
        rows = Consistency().collect({Job("cora", "gumbel-mpnn"): first, PAPER: first, PAPER_LAST: second})
        assert [(row["graph"], row["preset"], row["epoch"]) for row in rows] == [
            ("given", None, None),
            ("learned", "tuned", "chosen"),
            ("learned", "paper", "chosen"),
            ("learned", "paper", "last"),
        ]
        assert [row["paper_std"] for row in rows] == [0.0957, None, 0.0853, 0.0853]
        assert rows[2]["std"] > 0.05
        assert rows[3]["std"] == pytest.approx(0)
        found = [n for n in Consistency().numbers() if n.find(rows) is not None]
        assert [(n.preset, n.row["epoch"], n.column) for n in found] == [
            ("paper", "last", "std"),
            ("paper", "last", "clusters"),
        ]

    def test_no_data_shows_the_papers_numbers(self):
        rows = Consistency().collect({PAPER: None, PAPER_LAST: None})
        assert [(row["graph"], row["paper_clusters"]) for row in rows] == [
            ("given: no data", published("mixtures")["cora"]["components"]),
            ("learned: no data", 41),
        ]

    def test_chosen_epochs_are_those_of_the_tables_that_train_them(self):
        tables = ("accuracy", "accuracy-unfiltered", "ablation")
        others = {job for name in tables for job in experiments[name].plan()}
        mine = {job for job in Consistency().plan() if epoch_of(job) == "chosen" and job.preset != "literal"}
        assert mine <= others


class TestSpectra:
    def test_a_complete_graph_and_the_given_one(self):
        """The gap of a complete graph is N / (N − 1), and the resistance of any two nodes 2 / N; a star's gap is 1."""
        nodes = 12
        star = [(0, node) for node in range(1, nodes)]
        others = [(i, j) for i in range(1, nodes) for j in range(i + 1, nodes)]
        data = changed(small_data(nodes), edge_index=both_ways(edges(*star)))
        runs = Runs(data, (*star, *others), [[0.9] * 66, [0.9] * 11 + [0.1] * 55])
        given, learned = Spectra().collect({PAPER: runs})
        assert (given["edges"], given["gap"], given["joined"]) == (11, pytest.approx(1), 100)
        assert learned["edges"] == (66 + 11) / 2
        assert learned["gap"] == pytest.approx((nodes / (nodes - 1) + 1) / 2)
        assert learned["resistance"] == pytest.approx((2 / nodes + given["resistance"]) / 2, rel=1e-4)
        assert learned["given_resistance"] == pytest.approx(given["resistance"])
        assert (learned["components"], learned["nodes"], learned["n"]) == (1, nodes, 2)
        assert (learned["graph"], learned["preset"], learned["epoch"]) == ("learned", "paper", "chosen")

    def test_a_graph_that_did_not_move(self, path):
        runs = Runs(path, PAIRS, [[0.9, 0.9, 0.1], [0.6, 0.5, 0.49]])
        given, learned = Spectra().collect({PAPER_LAST: runs})
        assert learned["graph"] == "the learned graph is the given one"
        assert (learned["epoch"], learned["edges"], learned["n"]) == ("last", None, 2)
        assert given["edges"] == 2

    def test_a_graph_that_lost_directions_did_move(self, path):
        runs = Runs(path, ((0, 1), (1, 0), (1, 2), (2, 1)), [[0.9, 0.9, 0.9, 0.1]], symmetric=False)
        given, learned = Spectra().collect({PAPER: runs})
        assert (learned["graph"], learned["edges"]) == ("learned", given["edges"])
        whole = Runs(path, runs.pairs, [[0.9] * 4], symmetric=False)
        assert Spectra().collect({PAPER: whole})[1]["graph"] == "the learned graph is the given one"

    def test_no_pair_is_joined_in_both(self, path):
        _, learned = Spectra().collect({PAPER: Runs(path, PAIRS, [[0.1, 0.1, 0.1]])})
        assert (learned["edges"], learned["joined"], learned["resistance"]) == (0, 0, None)
        assert (learned["nodes"], learned["gap"], learned["components"]) == (1, None, 3)

    def test_few_runs_are_solved(self, path):
        runs = Runs(path, PAIRS, [[0.9, 0.9, 0.9]] * 9)
        assert Spectra().collect({PAPER: runs})[1]["n"] == SAMPLE

    def test_runs_are_those_of_other_tables(self):
        others = {job for name in ("rewiring", "consistency") for job in experiments[name].plan()}
        assert set(Spectra().plan()) <= others
