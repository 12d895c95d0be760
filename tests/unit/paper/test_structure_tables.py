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
from gumbel_mpnn.paper import experiments, published
from gumbel_mpnn.paper.ablation import Ablation
from gumbel_mpnn.paper.components import Components, MixtureNeighborhoods
from gumbel_mpnn.paper.consistency import Consistency
from gumbel_mpnn.paper.degree import DegreeGoal
from gumbel_mpnn.paper.spectra import Spectra
from gumbel_mpnn.paper.temperature import Temperature
from gumbel_mpnn.runs import fit
from helpers import small_data
from quick_fit import resolved

SPLITS = 8
QUICK = {"model": {"hidden_channels": 4}, "train": {"epochs": 1}}
ALL = [Ablation(), Components(), Consistency(), DegreeGoal(), Spectra(), Temperature()]


@pytest.fixture(scope="module")
def run():
    return fit(small_data(splits=SPLITS), "gumbel-mpnn", settings=QUICK, device="cpu")


def make_anew(name, make):
    """`Run.stored` of a run that stores nothing: what is made, as JSON gives it back."""
    return json.loads(json.dumps(make()))


def shifted(run, shift):
    """The same run with test figures from 0.5 on, moved by `shift`."""
    return replace(run, records=tuple(replace(r, test=0.5 + 0.01 * r.split + shift) for r in run.records))


def settings_of(job):
    """The settings that a job is trained with."""
    return resolved(job.dataset, job.model, preset=job.preset, overrides=job.overrides)


@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.name)
def test_every_job_is_known_and_can_be_resolved(experiment):
    assert type(experiments[experiment.name]) is type(experiment)
    for job in experiment.plan():
        assert job.dataset in specs
        if job.preset in ("paper", "literal"):
            assert read_preset(job.preset, job.dataset, job.model) is not None
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
        without, with_ = (settings_of(job).to_dict() for job in Ablation().plan()[:2])
        assert with_["rewiring"].pop("regularizer_weight") == 0.05
        assert without["rewiring"].pop("regularizer_weight") == 0
        assert with_ == without

    @pytest.mark.parametrize("preset", ["paper", "literal"])
    def test_all_regularizers_where_the_paper_names_none(self, preset):
        jobs = [job for job in Ablation().plan() if (job.dataset, job.preset) == ("chameleon-unfiltered", preset)]
        without, *with_ = [settings_of(job).rewiring for job in jobs]
        assert without.regularizer_weight == 0
        assert [(each.regularizer, each.regularizer_weight) for each in with_] == [
            (name, 0.5) for name in ("lc", "pc", "dc", "mix")
        ]
        wanted = {"lc": "cora", "pc": "squirrel-unfiltered", "mix": "citeseer"}  # data sets where they are used
        for each in with_:
            if each.regularizer in wanted:
                usual = resolved(wanted[each.regularizer], "gumbel-mpnn", preset=preset).rewiring
                assert usual.regularizer == each.regularizer
                assert usual.own_options("regularizer") == each.own_options("regularizer")

    @pytest.mark.parametrize("preset", ["paper", "literal"])
    def test_the_preset_is_among_them_and_so_shared_with_the_main_table(self, preset):
        jobs = [job for job in Ablation().plan() if (job.dataset, job.preset) == ("chameleon-unfiltered", preset)]
        assert resolved("chameleon-unfiltered", "gumbel-mpnn", preset=preset) in map(settings_of, jobs)
        assert {job.experiment for job in jobs} == {"paper"}

    def test_the_difference_is_paired(self, run):
        without, with_ = Ablation().plan()[:2]
        (row,) = Ablation().collect({with_: shifted(run, 0.03), without: shifted(run, 0.0)})
        assert [row[name] for name in ("difference", "low", "high")] == [pytest.approx(3)] * 3
        assert (row["without"], row["test"]) == (pytest.approx(53.5), pytest.approx(56.5))
        assert (row["verdict"], row["n"], row["preset"]) == ("better", SPLITS, "paper")
        assert (row["paper_without"], row["paper_with"]) == (87.91, 87.95)
        assert row["paper_difference"] == pytest.approx(0.04)

    def test_each_preset_and_each_regularizer_has_its_row(self, run):
        """The runs without a regularizer are those of the same preset, and p is corrected within it: four and one."""
        plan = [job for job in Ablation().plan() if job.dataset == "chameleon-unfiltered"]
        paper, literal = plan[:5], plan[5:7]
        shifts = (0.0, 0.01, 0.02, 0.03, 0.04, 0.2, 0.25)
        rows = Ablation().collect(
            {job: shifted(run, shift) for job, shift in zip(paper + literal, shifts, strict=True)}
        )
        assert [row["preset"] for row in rows] == ["paper"] * 4 + ["literal"]
        assert [row["difference"] for row in rows] == [pytest.approx(each) for each in (1, 2, 3, 4, 5)]
        assert [row["p"] for row in rows] == [pytest.approx(4 / 2**7)] * 4 + [pytest.approx(1 / 2**7)]
        numbers = [n for n in Ablation().numbers() if n.dataset == "chameleon-unfiltered"]
        assert [(n.value, n.find(rows)["without"]) for n in numbers] == [
            (57.26, pytest.approx(53.5)),
            (57.26, pytest.approx(73.5)),
        ]


class TestTemperature:
    def test_constant_and_annealed(self, run):
        plan = Temperature().plan()
        assert len(plan) == 4 * 5
        rows = Temperature().collect(dict.fromkeys(plan[:5], run))
        assert [row["constant"] for row in rows] == [0.1, 0.5, 1.0, 2.0, None]
        assert [row["schedule"] for row in rows[-2:]] == ["constant", "from 1 to 0.5"]
        assert [row["paper"] for row in rows] == [87.95] + [None] * 4
        settings = settings_of(plan[4]).rewiring
        assert (settings.tau, settings.tau_end) == (1.0, 0.5)

    def test_the_papers_temperature_is_shared_with_the_main_table(self):
        first = Temperature().plan()[0]
        assert settings_of(first) == resolved("cora", "gumbel-mpnn", preset="paper")
        assert first.experiment == "paper"

    def test_how_far_the_graph_moved(self, run):
        """Two runs on a path 0-1-2 with the candidate 0-2: the first keeps one edge of two, the second both."""
        index = torch.tensor([[0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0]])
        given = torch.tensor([True, True, True, True, False, False])
        learned = {
            0: torch.tensor([0.9, 0.9, 0.4, 0.4, 0.5, 0.5]),
            1: torch.tensor([0.9, 0.9, 0.6, 0.6, 0.4, 0.4]),
        }
        alone = replace(run, records=run.records[:2])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                type(run),
                "graphs",
                lambda self, threshold: (
                    SimpleNamespace(edge_index=index, edge_origin=given, edge_probability=learned[record.split])
                    for record in self.records
                ),
            )
            patch.setattr(type(run), "stored", lambda self, name, make, wait: make_anew(name, make))
            (row,) = Temperature().collect({Temperature().plan()[0]: alone})
        assert (row["kept"], row["added"]) == (pytest.approx(75), pytest.approx(50))

    def test_no_candidates(self, run):
        pairs = SimpleNamespace(edge_probability=torch.tensor([0.9, 0.1]), edge_origin=torch.tensor([True, True]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(run), "graphs", lambda self, threshold: [pairs] * len(self.records))
            patch.setattr(type(run), "stored", lambda self, name, make, wait: make_anew(name, make))
            (row,) = Temperature().collect({Temperature().plan()[0]: run})
        assert (row["kept"], row["added"]) == (pytest.approx(50), None)


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
