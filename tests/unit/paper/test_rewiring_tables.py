"""What rewiring adds, what noise takes, and the generated tasks."""

import shutil
from dataclasses import replace

import pytest
import torch

from gumbel_mpnn._util.errors import UnknownNameError
from gumbel_mpnn.baselines import SDRFOfEachGraph
from gumbel_mpnn.config import RewiringSettings
from gumbel_mpnn.config.presets import read_preset
from gumbel_mpnn.data import load, specs
from gumbel_mpnn.data.generated import SIDES
from gumbel_mpnn.data.tasks import add_noise_edges, bottleneck, leaf_count, tree_neighbors_match
from gumbel_mpnn.paper import Job, Request, experiments, long_range, run_jobs
from gumbel_mpnn.paper import noise as noise_experiment
from gumbel_mpnn.paper.bottleneck import Bottleneck
from gumbel_mpnn.paper.long_range import DEPTHS, LongRange
from gumbel_mpnn.paper.noise import Noise
from gumbel_mpnn.paper.rewiring import Rewiring, best_control
from gumbel_mpnn.runs import find_preset, fit
from helpers import changed, small_data
from quick_fit import on_other_data, resolved

QUICK = {"model": {"hidden_channels": 4}, "train": {"epochs": 2}}


@pytest.fixture(scope="module")
def run():
    return fit(small_data(splits=4), "gcn", settings=QUICK, device="cpu")


def with_tests(run, *values):
    records = [replace(record, test=test) for record, test in zip(run.records, values, strict=True)]
    return replace(run, records=tuple(records))


@pytest.mark.parametrize("experiment", [Rewiring(), Noise(), LongRange(), Bottleneck()], ids=lambda e: e.name)
def test_every_job_has_a_data_set_and_a_preset(experiment):
    assert experiments[experiment.name].name == experiment.name
    for job in experiment.plan():
        assert job.dataset in specs
        task = "bottleneck" if job.dataset.startswith("bottleneck") else job.dataset
        assert find_preset(job.preset, task, job.model) is not None


class TestRewiring:
    def test_every_rewired_job_has_its_backbone_with_the_same_budget(self):
        plan = Rewiring().plan()
        rewired = [job for job in plan if job.model == "gumbel-mpnn"]
        assert len(rewired) == 10
        for job in rewired:
            (backbone,) = [b for b in plan if (b.dataset, b.preset, b.model) == (job.dataset, job.preset, "gcn")]
            ours, theirs = (
                read_preset(job.preset, job.dataset, model).tables["train"] for model in (job.model, backbone.model)
            )
            assert (ours["epochs"], ours["lr"]) == (theirs["epochs"], theirs["lr"])

    def test_every_rewired_job_has_its_controls_with_the_same_settings(self):
        plan = Rewiring().plan()
        for job in plan:
            if job.model in ("frozen", "random"):
                ours, control = (
                    resolved(job.dataset, model, preset=job.preset) for model in ("gumbel-mpnn", job.model)
                )
                assert (control.data, control.train, control.options) == (ours.data, ours.train, ours.options)
        assert [job.model for job in plan].count("frozen") == [job.model for job in plan].count("random") == 10

    def test_drop_edge_has_the_agreement_and_everything_else_of_gumbel_mpnn_that_has_it(self):
        jobs = [job for job in Rewiring().plan() if job.model == "drop-edge"]
        assert [(job.dataset, job.preset) for job in jobs] == [
            ("citeseer", "tuned"),
            ("pubmed", "tuned"),
            ("cora", "few-labels"),
            ("citeseer", "few-labels"),
        ]
        for job in jobs:
            ours = resolved(job.dataset, "gumbel-mpnn", preset=job.preset)
            control = resolved(job.dataset, "drop-edge", preset=job.preset, overrides=job.overrides)
            assert (control.data, control.train) == (ours.data, ours.train)
            own = {name: control.options[name] for name in control.options.keys() - ours.options.keys()}
            assert ours.options == {name: control.options[name] for name in ours.options}
            assert own == {
                "edge_dropout": pytest.approx(1 - ours.rewiring.keep),
                "per_layer": False,
                "samples": ours.rewiring.samples,
                "agreement": ours.rewiring.agreement,
                "agreement_ramp": ours.rewiring.agreement_ramp,
            }

    def gain(self, run, **means):
        """The row of a Gumbel-MPNN at 35 % and of its controls."""
        of_all = {"gumbel_mpnn": 35} | means
        results = {
            Job("cora", model.replace("_", "-")): with_tests(run, *(mean / 100 + k / 100 for k in (-3, -1, 1, 3)))
            for model, mean in of_all.items()
        }
        (row,) = Rewiring().collect(results)
        return row

    def test_a_gain_counts_over_the_best_of_the_controls(self, run):
        row = self.gain(run, gcn=25, frozen=33, random=31)
        assert (row["frozen"], row["to_frozen"]) == (pytest.approx(33), pytest.approx(2))
        assert (row["random"], row["to_random"]) == (pytest.approx(31), pytest.approx(4))
        assert (row["drop-edge"], row["to_drop-edge"], row["drop-edge_verdict"]) == (None, None, None)
        assert (row["difference"], row["control"]) == (pytest.approx(10), "frozen")
        assert [row[f"gain_{name}"] for name in ("difference", "low", "high")] == [pytest.approx(2)] * 3
        assert row["gain_verdict"] == row["frozen_verdict"] == "too few splits"

    def test_the_backbone_is_a_control_too(self, run):
        row = self.gain(run, gcn=36, frozen=33, random=31)
        assert (row["control"], row["gain_difference"]) == ("gcn", pytest.approx(-1))

    def test_without_one_of_the_controls_there_is_no_gain(self, run):
        row = self.gain(run, gcn=25, frozen=33)
        assert (row["to_frozen"], row["control"], row["gain_difference"]) == (pytest.approx(2), None, None)

    def test_where_predictions_have_to_agree_drop_edge_is_needed(self, run):
        agreeing = replace(run, settings=replace(run.settings, rewiring=RewiringSettings(samples=2, agreement=1.0)))
        runs = {"gumbel-mpnn": agreeing, **dict.fromkeys(("gcn", "frozen", "random"), run)}
        assert best_control(runs) is None
        assert best_control({**runs, "drop-edge": with_tests(run, 1.0, 1.0, 1.0, 1.0)}) == "drop-edge"

    def test_the_difference_is_paired(self, run):
        results = {
            Job("cora", "gcn"): with_tests(run, 0.1, 0.2, 0.3, 0.4),
            Job("cora", "gumbel-mpnn"): with_tests(run, 0.2, 0.3, 0.4, 0.5),
        }
        (row,) = Rewiring().collect(results)
        assert (row["backbone"], row["test"], row["paper"]) == (pytest.approx(25), pytest.approx(35), 87.95)
        assert [row[name] for name in ("difference", "low", "high")] == [pytest.approx(10)] * 3
        assert (row["verdict"], row["n"], row["labels"]) == ("too few splits", 4, "full")
        assert set(Rewiring().headings) <= set(row)

    def test_one_of_the_two_models_alone(self, run):
        """The fault: with --only gumbel-mpnn its figure was left out, and the row said no data."""
        one = with_tests(run, 0.2, 0.3, 0.4, 0.5)
        (row,) = Rewiring().collect({Job("cora", "gumbel-mpnn"): one})
        assert (row["backbone"], row["test"], row["n"]) == (None, pytest.approx(35), 4)
        assert (row["difference"], row["verdict"]) == (None, None)
        (row,) = Rewiring().collect({Job("cora", "gcn"): one})
        assert (row["backbone"], row["test"], row["n"], row["verdict"]) == (pytest.approx(35), None, None, None)

    def test_no_data(self):
        (row,) = Rewiring().collect({Job("cora", "gcn"): None, Job("cora", "gumbel-mpnn"): None})
        assert (row["test"], row["verdict"], row["paper"]) == (None, "no data", 87.95)


class TestNoise:
    def test_the_papers_model_with_and_without_the_bias_and_a_gcn_of_its_size(self):
        """The paper's GCN on cora has 256 channels, its Gumbel-MPNN 1024."""
        jobs = [job for job in Noise().plan() if job.preset == "paper"]
        plain, beneath, biased, free = (
            resolved(job.dataset, job.model, preset="paper", overrides=job.overrides) for job in jobs
        )
        assert [settings.options["hidden_channels"] for settings in (plain, beneath, biased)] == [256, 1024, 1024]
        assert beneath.options == {name: biased.options[name] for name in beneath.options}
        assert (beneath.train, beneath.model) == (biased.train, "gcn")
        assert (biased.rewiring.origin, free.rewiring.origin) == ("fixed", "none")
        assert replace(free, rewiring=replace(free.rewiring, origin="fixed")) == biased
        assert {job.experiment for job in jobs} == {"paper"}

    def test_each_kind_is_named(self):
        rows = Noise().collect(dict.fromkeys(Noise().plan()))
        named = [(row["model"], row["preset"], row["changed"]) for row in rows]
        assert len(set(named)) == len(named)
        assert named[-5:] == [
            ("gcn", "paper", ""),
            ("gcn", "paper", "settings of Gumbel-MPNN"),
            ("gumbel-mpnn", "paper", "bias for given edges"),
            ("gumbel-mpnn", "paper", "no bias for given edges"),
            ("gumbel-mpnn", "literal", ""),
        ]

    def test_tuned_runs_are_those_of_the_tables_that_train_them(self):
        kept = {job.model: job.experiment for job in Noise().plan() if job.preset == "tuned"}
        plain = dict.fromkeys(("gcn", "sage", "gat"), "backbones")
        assert kept == plain | {"drop-edge": "accuracy", "gumbel-mpnn": "rewiring", "frozen": "rewiring"}

    def test_a_row_for_each_number_of_edges(self, run, monkeypatch):
        monkeypatch.setattr(noise_experiment, "COUNTS", (0, 20))
        clean, noisy = Noise().collect({Job("cora", "gcn"): run})
        assert (clean["edges"], noisy["edges"], noisy["n"]) == (0, 20, 4)
        assert clean["test"] == pytest.approx(100 * run.test.mean)
        assert clean["kept"] == pytest.approx(100)
        assert set(Noise().headings) <= set(noisy)

    def test_what_is_kept_is_taken_run_by_run(self, run, monkeypatch):
        """Records of 0.4 and 0.8, scores of 0.2 and 0.8: a half and all of it."""
        two = replace(run, records=run.records[:2])
        two = with_tests(two, 0.4, 0.8)
        monkeypatch.setattr(noise_experiment, "COUNTS", (7,))
        monkeypatch.setattr(
            type(run), "scores", lambda _, data, records: [0.2 if r.split == 0 else 0.8 for r in records]
        )
        (row,) = Noise().collect({Job("cora", "gcn"): two})
        assert (row["test"], row["kept"]) == (pytest.approx(50), pytest.approx(75))
        assert (row["stderr"], row["kept_stderr"]) == (pytest.approx(30), pytest.approx(25))

    def test_scores_stand_in_the_order_of_the_records(self, run, monkeypatch):
        mixed = [replace(run.records[0], split=split, seed=seed) for split, seed in ((1, 0), (0, 0), (1, 5), (0, 5))]
        monkeypatch.setattr(type(run), "scores", lambda _, data, records: [r.split + r.seed / 10 for r in records])
        scores = list(noise_experiment.scores_with_noise(replace(run, records=tuple(mixed)), 3))
        assert scores == [1.0, 0.0, 1.5, 0.5]

    def test_scores_are_of_the_noisy_graph_and_of_each_runs_own_split(self, run):
        noisy = add_noise_edges(run.data, 60, seed=1, nodes=torch.arange(24))
        scores = run.scores(noisy, run.records[1:3], device="cpu")
        wanted = []
        for record in run.records[1:3]:
            alone = replace(run, records=(record,))
            mask = run.data.test_mask[:, record.split]
            right = alone.predict_proba(noisy).argmax(-1) == run.data.y
            wanted.append(right[mask].double().mean().item())
        assert scores == pytest.approx(wanted)

    def test_no_data(self):
        (row,) = Noise().collect({Job("cora", "gcn"): None})
        assert (row["model"], row["test"], row["kept"], row["verdict"]) == ("gcn", None, None, "no data")


@pytest.mark.parametrize("experiment", [LongRange(), Bottleneck()], ids=lambda e: e.name)
def test_generated_tasks_are_trained_and_shown(experiment, tmp_path, monkeypatch):
    makers = {
        "leaf-count": lambda: leaf_count(3, num_trees=256),
        "tree-neighbors-match": lambda: tree_neighbors_match(2),
    }
    makers |= dict.fromkeys(SIDES, lambda: bottleneck(5, 2, num_graphs=3, num_splits=1))
    for name, make in makers.items():
        monkeypatch.setitem(specs, name, replace(specs[name], make=make))
    jobs = experiment.plan()[:7]
    changes = ("train.epochs=1", "model.hidden_channels=4")
    request = Request(splits=(0,), seeds=1, runs=tmp_path, device="cpu", overrides=changes)
    results = run_jobs(experiment, jobs, request)
    rows = experiment.collect(results)
    assert [row["model"] for row in rows] == ["sdrf" if job.transform else job.model for job in jobs]
    assert all(row["n"] == 1 and set(experiment.headings) <= set(row) for row in rows)
    if experiment.name == "long-range":
        assert [row["paper"] for row in rows] == [14.29, 100, None, 100, None, None, None]
        assert rows[0]["to_paper"] == pytest.approx(rows[0]["test"] - 14.29)
        assert [row["chance"] for row in rows] == pytest.approx([100 / 3] * 4 + [25] * 3)
    layers = [row["layers"] for row in rows]
    assert layers == ([2, 4, 2, 2, 3, 4, 3] if experiment.name == "long-range" else [3] * 7)


def test_the_tree_that_is_drawn_is_a_test_tree_with_the_edges_of_the_first_run(tmp_path, monkeypatch):
    monkeypatch.setitem(specs, "leaf-count", replace(specs["leaf-count"], make=lambda: leaf_count(3, num_trees=256)))
    experiment = LongRange(("leaf-count",))
    request = Request(
        splits=(0,), seeds=2, runs=tmp_path / "runs", device="cpu", overrides=("train.epochs=1", "rewiring.add=0.9")
    )
    jobs = [job for job in experiment.plan() if job.model == "gumbel-mpnn"]
    (run,) = run_jobs(experiment, jobs, request).values()
    drawn = []
    monkeypatch.setattr(long_range, "draw_rewired_tree", lambda tree, paths: drawn.append(tree))
    assert experiment.draw([], [run], None, [])
    (tree,) = drawn
    root = int(run.data.test_mask[:, 0].nonzero()[0])
    assert (len(tree.parent), tree.parent[:4]) == (15, [-1, 0, 1, 2])
    assert sum(bit == 1 for bit in tree.bits) == int(run.data.class_names[int(run.data.y[root])])
    learned = replace(run, records=run.records[:1]).rewire().edge_index.T.tolist()
    inside = {(i - root, j - root) for i, j in learned if root <= i < j < root + 15}
    assert {tuple(edge) for edge in tree.edges} == inside
    assert tree.edges_by_kind()["added"]
    shutil.rmtree(run.folder.path)
    assert not experiment.draw([], [run], None, [])


def test_without_a_rewired_run_no_tree_is_drawn(run):
    assert not LongRange().draw([], [run], None, [])


@pytest.mark.parametrize(
    ("dataset", "depth", "layers"),
    [
        ("leaf-count-3", 3, [2, 3, 2, 2]),
        ("leaf-count-5", 5, [3, 5, 3, 3]),
        ("tree-neighbors-match-2", 2, [2, 3, 2]),
        ("tree-neighbors-match-5", 5, [4, 6, 4]),
    ],
)
def test_a_task_on_trees_at_another_depth(dataset, depth, layers):
    experiment = LongRange().on(dataset)
    plan = experiment.plan()
    models = ["gcn", "gcn", *(["gcn"] if dataset.startswith("leaf-count") else []), "gumbel-mpnn"]
    assert [(job.dataset, job.model) for job in plan] == [(dataset, model) for model in models]
    assert [job.transform for job in plan if job.transform] == [SDRFOfEachGraph(100)] * dataset.startswith("leaf-count")
    assert [job.overrides for job in plan] == [(f"model.num_layers={count}",) for count in layers]
    assert DEPTHS[dataset] == depth
    assert experiment.title.endswith(dataset)


@pytest.mark.parametrize("name", ["leaf-count-3", "tree-neighbors-match-2", "tree-neighbors-match"])
def test_trees_have_the_depth_that_their_name_says_and_the_presets_of_their_task(name):
    data = load(name)
    assert int(data.batch.bincount()[0]) == 2 ** (DEPTHS[name] + 1) - 1
    assert f"{data.name}-{DEPTHS[name]}" == name or data.name == name
    assert data.train_mask.shape[1] == 10


def test_an_unknown_task_on_trees():
    with pytest.raises(UnknownNameError, match="leaf-count-5"):
        LongRange().on("leaf-count-55")


def test_the_default_size_of_the_bottleneck_comes_first_and_is_in_both_charts():
    sizes, widths = Bottleneck().charts
    assert sizes.where == {"varied": ("", "nodes")}
    assert widths.where == {"varied": ("", "width")}
    plan = Bottleneck().plan()
    assert [(job.dataset, job.model, job.overrides) for job in plan[:3]] == [
        ("bottleneck", model, ()) for model in ("gcn", "sdrf", "gumbel-mpnn")
    ]
    assert {load(name).num_nodes for name in ("bottleneck", "bottleneck-10")} == {20 * 2 * 20, 20 * 2 * 10}


def test_what_the_rows_of_the_bottleneck_vary(run):
    made = on_other_data(run, changed(run.data, batch=torch.zeros(24, dtype=torch.int64)))
    rows = Bottleneck().collect(dict.fromkeys(Bottleneck().plan(), made))
    kinds = [(row["model"], row["scorer"], row["varied"]) for row in rows]
    assert len(kinds) == 3 * 5 + 5 + 3 * 4
    assert kinds[:4] == [("gcn", "", ""), ("sdrf", "", ""), ("gumbel-mpnn", "", ""), ("gcn", "", "nodes")]
    assert kinds[15:20] == [("gumbel-mpnn", "fixed", "")] + [("gumbel-mpnn", "fixed", "nodes")] * 4
    assert {varied for _, _, varied in kinds[20:]} == {"width"}
    assert [row["nodes"] for row in rows] == [12] * 32
