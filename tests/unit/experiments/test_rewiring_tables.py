"""What rewiring adds, what noise takes, and the two generated tasks."""

from dataclasses import replace

import pytest
import torch

from gumbel_mpnn.config import read_preset
from gumbel_mpnn.data import specs
from gumbel_mpnn.data.tasks import add_noise_edges, bottleneck, leaf_count
from gumbel_mpnn.experiments import Bottleneck, Job, LongRange, Noise, Rewiring, experiments, run_jobs
from gumbel_mpnn.experiments import noise as noise_experiment
from gumbel_mpnn.experiments.base import GENERATED
from gumbel_mpnn.runs import fit
from helpers import small_data

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
        assert job.dataset in specs or job.dataset in GENERATED
        assert read_preset(job.preset, job.dataset, job.model) is not None


class TestRewiring:
    def test_every_rewired_job_has_its_backbone_with_the_same_budget(self):
        plan = Rewiring().plan()
        rewired = [job for job in plan if job.model == "gumbel-mpnn"]
        assert len(rewired) == 10
        for job in rewired:
            (backbone,) = [b for b in plan if (b.dataset, b.preset, b.model) == (job.dataset, job.preset, "gcn")]
            ours, theirs = (
                read_preset(job.preset, job.dataset, model)["train"] for model in (job.model, backbone.model)
            )
            assert (ours["epochs"], ours["lr"]) == (theirs["epochs"], theirs["lr"])

    def test_the_difference_is_paired(self, run):
        results = {
            Job("cora", "gcn"): with_tests(run, 0.1, 0.2, 0.3, 0.4),
            Job("cora", "gumbel-mpnn"): with_tests(run, 0.2, 0.3, 0.4, 0.5),
        }
        (row,) = Rewiring().collect(results)
        assert (row["backbone"], row["test"], row["paper"]) == (pytest.approx(25), pytest.approx(35), 87.95)
        assert [row[name] for name in ("difference", "low", "high")] == [pytest.approx(10)] * 3
        assert (row["verdict"], row["n"], row["labels"]) == ("same", 4, "full")  # no test calls four splits enough
        assert set(Rewiring().headings) <= set(row)

    def test_no_data(self):
        (row,) = Rewiring().collect({Job("cora", "gcn"): None, Job("cora", "gumbel-mpnn"): None})
        assert (row["test"], row["verdict"], row["paper"]) == (None, "no data", 87.95)


class TestNoise:
    def test_without_noise_the_figure_is_that_of_the_record(self, run, monkeypatch):
        monkeypatch.setattr(noise_experiment, "COUNTS", (0, 20))
        (row,) = Noise().collect({Job("cora", "gcn"): run})
        assert row["at_0"] == pytest.approx(100 * run.test.mean)
        assert row["kept"] == pytest.approx(100 * row["at_20"] / row["at_0"])
        assert row["n"] == 4

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
        assert (row["model"], row["at_0"], row["kept"]) == ("gcn", None, None)


@pytest.mark.parametrize("experiment", [LongRange(), Bottleneck()], ids=lambda e: e.name)
def test_generated_tasks_are_trained_and_shown(experiment, tmp_path, monkeypatch):
    makers = {
        "leaf-count": lambda: leaf_count(3, num_trees=100),
        "bottleneck": lambda: bottleneck(5, 2, num_graphs=3, num_splits=1),
    }
    monkeypatch.setattr("gumbel_mpnn.experiments.base.GENERATED", makers)
    jobs = experiment.plan()
    changes = ["train.epochs=1", "model.hidden_channels=4"]
    results = run_jobs(
        jobs, seeds=1, splits=[0], runs=tmp_path, experiment=experiment.name, device="cpu", overrides=changes
    )
    rows = experiment.collect(results)
    assert [row["model"] for row in rows] == [job.model for job in jobs]
    assert all(row["n"] == 1 and set(experiment.headings) <= set(row) for row in rows)
    layers = [row["layers"] for row in rows]
    assert layers == ([2, 4, 2] if experiment.name == "long-range" else [3, 3])
