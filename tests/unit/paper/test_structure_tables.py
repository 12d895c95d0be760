"""Tables of what rewiring does to a graph, and of the settings that decide it."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.config.presets import read_preset
from gumbel_mpnn.data import specs
from gumbel_mpnn.data.tasks import neighborhood_supports
from gumbel_mpnn.paper import Job, experiments, published
from gumbel_mpnn.paper.ablation import Ablation
from gumbel_mpnn.paper.components import Components, MixtureNeighborhoods
from gumbel_mpnn.paper.consistency import Consistency
from gumbel_mpnn.paper.degree import GOAL, DegreeGoal
from gumbel_mpnn.paper.spectra import Spectra
from gumbel_mpnn.paper.temperature import Temperature
from gumbel_mpnn.runs import fit
from helpers import changed, small_data
from quick_fit import resolved

SPLITS = 8
QUICK = {"model": {"hidden_channels": 4}, "train": {"epochs": 1}}
ALL = [Ablation(), Components(), Consistency(), DegreeGoal(), Spectra(), Temperature()]


@pytest.fixture(scope="module")
def run():
    return fit(small_data(splits=SPLITS), "gumbel-mpnn", settings=QUICK, device="cpu")


def make_anew(name, make):
    """What stands in for `Run.stored`, and stores nothing; what it gives has been plain JSON all the same."""
    return json.loads(json.dumps(make()))


def shifted(run, shift):
    """The same run with test figures from 0.5 on, moved by `shift`."""
    return replace(run, records=tuple(replace(r, test=0.5 + 0.01 * r.split + shift) for r in run.records))


@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.name)
def test_every_job_is_known_and_can_be_resolved(experiment):
    assert type(experiments[experiment.name]) is type(experiment)
    for job in experiment.plan():
        assert job.dataset in specs
        if job.preset == "paper":
            assert read_preset("paper", job.dataset, job.model) is not None
        resolved(job.dataset, job.model, preset=job.preset, overrides=job.overrides)


@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.name)
def test_no_data(experiment):
    jobs = experiment.plan()[:2]
    rows = experiment.collect(dict.fromkeys(jobs))
    assert rows
    assert all(set(experiment.headings) <= set(row) for row in rows)
    assert all(row.get("test") is None for row in rows)


@pytest.mark.parametrize("table", ["ablation", "degree", "consistency"])
def test_the_papers_twelve_data_sets(table):
    assert len(published(table)) == 12
    assert {job.dataset for job in Ablation().plan()} == set(published(table))


class TestAblation:
    @pytest.mark.parametrize("dataset", published("ablation"))
    def test_the_paper_repeats_its_main_figures(self, dataset):
        assert published("ablation")[dataset]["with"] == published("accuracy")[dataset]["gumbel-mpnn"]

    def test_the_weight_is_all_that_differs(self):
        with_, without = (
            resolved(job.dataset, job.model, preset=job.preset, overrides=job.overrides).to_dict()
            for job in Ablation().plan()[:2]
        )
        assert with_["rewiring"].pop("regularizer_weight") == 0.05
        assert without["rewiring"].pop("regularizer_weight") == 0
        assert with_ == without

    def test_the_difference_is_paired(self, run):
        with_, without = Ablation().plan()[:2]
        (row,) = Ablation().collect({with_: shifted(run, 0.03), without: shifted(run, 0.0)})
        assert [row[name] for name in ("difference", "low", "high")] == [pytest.approx(3)] * 3
        assert (row["without"], row["test"]) == (pytest.approx(53.5), pytest.approx(56.5))
        assert (row["verdict"], row["n"]) == ("better", SPLITS)
        assert (row["paper_without"], row["paper_with"]) == (87.91, 87.95)
        assert row["paper_difference"] == pytest.approx(0.04)


class TestDegree:
    def test_the_goal_is_five_more_than_the_mean(self):
        settings = resolved("cora", "gumbel-mpnn", preset="paper", overrides=GOAL).rewiring
        assert (settings.regularizer, settings.target_degree, settings.regularizer_weight) == ("degree", 0, 1)

    def test_given_learned_and_expected(self):
        """A path 0-1-2 that loses 1-2 and gains 0-2, with probabilities 1, 0.25 and 0.75."""
        index = torch.tensor([[0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0]])
        learned = SimpleNamespace(
            edge_index=index, edge_probability=torch.tensor([1, 1, 0.25, 0.25, 0.75, 0.75]), num_nodes=3
        )
        data = changed(small_data(3), edge_index=index[:, :4], num_nodes=3)
        records = [SimpleNamespace(best_epoch=epoch) for epoch in (3, 4, 8)]
        run = SimpleNamespace(
            data=data,
            rewire=lambda threshold: learned,
            stored=make_anew,
            test=SimpleNamespace(mean=0.6),
            n=3,
            records=records,
        )
        given, after, expected, paper_given, paper_after = DegreeGoal().collect({Job("cora", "gumbel-mpnn"): run})
        names = ("degree_min", "degree_mean", "degree_max")
        assert [given[name] for name in names] == [1, pytest.approx(4 / 3), 2]
        assert [after[name] for name in names] == [1, pytest.approx(4 / 3), 2]
        assert [expected[name] for name in names] == [1, pytest.approx(4 / 3), 1.75]
        assert after["goal"] == pytest.approx(4 / 3 + 5)
        assert after["test"] == pytest.approx(60)
        assert [row["best_epoch"] for row in (given, after, expected, paper_after)] == [None, 5, 5, None]
        assert [paper_given[name] for name in names] == [1, 3.9, 168]
        assert [paper_after[name] for name in names] == [4, 11.5, 161]

    def test_a_heavy_goal_raises_the_degree(self):
        """Candidates start unlikely; the goal is what turns them into edges."""
        data = small_data(nodes=40, splits=1)
        rewiring = {"lr": 0.3, "per_node": 6}
        settings = {"model": {"hidden_channels": 4}, "train": {"epochs": 20}, "rewiring": rewiring}
        means = []
        for overrides in ((), GOAL):
            run = fit(data, "gumbel-mpnn", settings=settings, overrides=overrides, device="cpu")
            row = DegreeGoal().collect({Job("tiny", "gumbel-mpnn"): run})[2]
            means.append(row["degree_mean"])
        assert means[1] > means[0] + 2


class TestTemperature:
    def test_constant_and_annealed(self, run):
        plan = Temperature().plan()
        assert len(plan) == 3 * 8
        rows = Temperature().collect(dict.fromkeys(plan[:8], run))
        assert [row["constant"] for row in rows] == [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, None, None]
        assert [row["schedule"] for row in rows[-3:]] == ["constant", "from 1 to 0.5", "from 2 to 0.1"]
        assert [row["paper"] for row in rows] == [None, 87.95] + [None] * 6
        settings = resolved("cora", "gumbel-mpnn", overrides=plan[7].overrides).rewiring
        assert (settings.tau, settings.tau_end) == (2.0, 0.1)


class TestComponents:
    def test_one_to_seven_neighborhoods_for_both_models(self):
        jobs = Components().plan()
        kinds = [
            ("tuned", "gcn"),
            ("tuned", "gumbel-mpnn"),
            ("paper", "gcn"),
            ("paper", "gcn"),
            ("paper", "gumbel-mpnn"),
            ("paper", "gumbel-mpnn"),
        ]
        found = [(job.transform.components, (job.preset, job.model)) for job in jobs]
        assert found == [(k, kind) for k in range(1, 8) for kind in kinds]
        assert {job.dataset for job in jobs} == {"actor"}
        assert len(neighborhood_supports(5, 7)) == 5  # Actor has as many classes

    def test_one_gcn_has_the_settings_of_the_papers_gumbel_mpnn(self):
        """The fault it is there for: the paper's GCN on actor has one layer, its Gumbel-MPNN two."""
        _, _, plain, beneath, rewired = (
            resolved(job.dataset, job.model, preset=job.preset, overrides=job.overrides)
            for job in Components().plan()[:5]
        )
        assert (plain.options["num_layers"], rewired.options["num_layers"]) == (1, 2)
        shared = {name: rewired.options[name] for name in beneath.options}
        assert beneath.options == shared
        assert (beneath.train, beneath.data, beneath.model) == (rewired.train, rewired.data, "gcn")

    def test_edges_are_drawn_anew(self):
        data = small_data(nodes=30)
        mixture = MixtureNeighborhoods(2)(data)
        assert mixture.component.max() == 1
        assert mixture.edge_index.shape != data.edge_index.shape

    def test_rewired_runs_are_paired_with_plain_ones_of_the_same_k_and_settings(self, run):
        jobs = Components().plan()[:8]
        shifts = (0.0, 0.01, 0.2, 0.3, 0.22, 0.4, 0.1, 0.05)
        rows = Components().collect(dict(zip(jobs, (shifted(run, shift) for shift in shifts), strict=True)))
        differences = [1, None, 2, -8, None, None, -5, None]
        assert [row["difference"] for row in rows] == [each and pytest.approx(each) for each in differences]
        assert [row["verdict"] for row in rows] == ["better", None, "better", "worse", None, None, "worse", None]
        assert [row["components"] for row in rows] == [1] * 6 + [2] * 2
        assert [row["settings"] for row in rows] == [
            "tuned",
            "tuned",
            "the paper's",
            "the paper's for Gumbel-MPNN",
            "the paper's",
            "the paper's, no candidates",
            "tuned",
            "tuned",
        ]

    def test_another_data_set(self):
        other = Components().on("cora")
        assert {job.dataset for job in other.plan()} == {"cora"}
        assert (other.title, other.charts[0].title) == (
            "Synthetic neighborhoods on cora",
            "cora with synthetic neighborhoods",
        )
        with pytest.raises(UserError, match="corra"):
            Components().on("corra")

    def test_a_data_set_that_the_paper_does_not_have(self):
        assert {job.preset for job in Components().on("texas").plan()} == {"tuned"}


def lined_up(run, edges):
    """A run whose learned graph has these undirected edges."""
    index = torch.tensor(edges).T
    learned = changed(run.data, edge_index=torch.cat([index, index.flip(0)], dim=1))
    return SimpleNamespace(data=run.data, rewire=lambda: learned, stored=make_anew)


class TestConsistency:
    def test_a_graph_whose_edges_stay_within_classes_has_no_spread(self, run):
        nodes = run.data.num_nodes
        within = [(node, (node + 3) % nodes) for node in range(nodes)]  # labels repeat with period 3
        jobs = {Job("cora", "gumbel-mpnn"): run, Job("cora", "gumbel-mpnn", "paper"): lined_up(run, within)}
        given, tuned, learned = Consistency().collect(jobs)
        assert given["std"] > 0.05
        assert tuned["std"] > 0.05
        assert learned["std"] == pytest.approx(0)
        assert learned["clusters"] == 3
        assert (given["paper_std"], given["paper_clusters"]) == (0.0957, 47)
        assert (tuned["paper_std"], tuned["paper_clusters"]) == (None, None)
        assert (learned["paper_std"], learned["paper_clusters"]) == (0.0853, 41)
        names = ["given", "learned, tuned settings", "learned, the paper's settings"]
        assert [row["graph"] for row in (given, tuned, learned)] == names

    def test_the_papers_numbers_are_beside_its_own_settings(self, run):
        rows = Consistency().collect({Job("cora", "gumbel-mpnn"): run, Job("cora", "gumbel-mpnn", "paper"): run})
        answered = [number for number in Consistency().numbers() if number.find(rows) is not None]
        assert [(number.dataset, number.column) for number in answered] == [("cora", "std"), ("cora", "clusters")]

    def test_runs_are_those_of_the_tables_that_train_them(self):
        others = ("accuracy", "accuracy-unfiltered", "ablation")
        assert set(Consistency().plan()) <= {job for name in others for job in experiments[name].plan()}


class TestSpectra:
    def test_a_complete_graph(self, run):
        """Its gap is N / (N − 1), and the resistance of any two nodes 2 / N."""
        nodes = run.data.num_nodes
        complete = [(i, j) for i in range(nodes) for j in range(i)]
        given, learned = Spectra().collect({Job("cora", "gumbel-mpnn"): lined_up(run, complete)})
        assert learned["gap"] == pytest.approx(nodes / (nodes - 1))
        assert learned["resistance"] == pytest.approx(2 / nodes, rel=1e-4)
        assert (learned["components"], learned["nodes"], learned["joined"]) == (1, nodes, 100)
        assert given["components"] > 1
        assert given["nodes"] < nodes
        assert given["joined"] < 100
        assert given["resistance"] > learned["resistance"]

    def test_no_pair_is_joined_in_both(self, run):
        nothing = SimpleNamespace(
            data=run.data,
            rewire=lambda: changed(run.data, edge_index=torch.empty(2, 0, dtype=torch.int64)),
            stored=make_anew,
        )
        _, learned = Spectra().collect({Job("cora", "gumbel-mpnn"): nothing})
        assert (learned["edges"], learned["joined"], learned["resistance"]) == (0, 0, None)
        assert (learned["nodes"], learned["gap"]) == (1, None)
