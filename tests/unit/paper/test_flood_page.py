"""`reproduce flood`: noise at test time and in training, and what is chosen on validation nodes with noise."""

from dataclasses import replace

import pytest
import torch

from gumbel_mpnn.config.presets import read_preset
from gumbel_mpnn.measures import undirected_edges
from gumbel_mpnn.paper import Job, flood, tables
from gumbel_mpnn.paper.compared import ROBUST
from gumbel_mpnn.paper.flood import Flood, Flooded
from gumbel_mpnn.paper.noise import scores_with_noise
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.paper.work import spec_of
from gumbel_mpnn.runs.store import SettingFolder
from helpers import small_data
from quick_fit import quick

COUNTS = (0, 10, 40)


@pytest.fixture
def few(monkeypatch):
    """Small numbers of edges, for a small graph."""
    monkeypatch.setattr(flood, "COUNTS", COUNTS)


def with_scores(run, name, test, val):
    """The runs with these stored metrics for each number of edges."""
    scores = {"test": test, "val": val}
    content = {part: {str(n): [v] * run.n for n, v in zip(COUNTS, of, strict=True)} for part, of in scores.items()}
    folder = SettingFolder(run.folder.path / name)
    folder.path.mkdir()
    fresh = replace(run, folder=folder)
    fresh.stored(Flood.from_models, lambda: content)
    return fresh


def test_flooded_has_so_many_edges_more():
    data = small_data(60)
    noisy = Flooded(30)(data)
    assert undirected_edges(noisy).shape[1] == undirected_edges(data).shape[1] + 30
    assert torch.equal(noisy.edge_index, Flooded(30)(data).edge_index)
    assert Flooded(30) == Flooded(30) != Flooded(40)


def test_scores_are_those_of_each_part(few):
    run = quick(small_data(60), "gcn", seeds=2)
    found = Flood().measure(run)
    assert found["test"]["0"] == [record.test for record in run.records]
    assert found["val"]["0"] == [record.val for record in run.records]
    assert found["val"]["40"] == list(scores_with_noise(run, 40, "val"))
    assert found["test"]["40"] == list(scores_with_noise(run, 40))
    # With no noise, the metric of validation nodes is the recorded one.
    assert list(scores_with_noise(run, 0, "val")) == pytest.approx(found["val"]["0"])


def test_a_variant_is_chosen_once_on_validation_nodes_with_noise(few, tmp_path):
    run = quick(small_data(60), "gcn", runs=tmp_path)
    better_with_noise = with_scores(run, "a", (0.1, 0.2, 0.3), (0.5, 0.6, 0.6))
    better_without = with_scores(run, "b", (0.4, 0.4, 0.4), (0.6, 0.5, 0.5))
    gcn = with_scores(run, "c", (0.7, 0.1, 0.1), (0.5, 0.3, 0.1))
    mlp = with_scores(run, "d", (0.2, 0.2, 0.2), (0.2, 0.2, 0.2))
    jaccard = [Job("cora", "jaccard", "", overrides=(f"model.threshold={value}",)) for value in (0.01, 0.05)]
    results = {jaccard[0]: better_without, jaccard[1]: better_with_noise}
    rows = Flood().collect(results | {Job("cora", "gcn", ""): gcn, Job("cora", "mlp", ""): mlp})
    found = {(row["model"], row["edges"]): row for row in rows}
    assert {row["chosen"] for row in rows if row["model"] == "jaccard"} == {"threshold=0.05"}
    assert [found["jaccard", count]["test"] for count in COUNTS] == pytest.approx([10, 20, 30])
    assert [found["jaccard", count]["plain"] for count in COUNTS] == ["gcn", "gcn", "mlp"]
    assert found["jaccard", 40]["difference"] == pytest.approx(10)
    assert {row["trained"] for row in rows} == {"without random edges"}


def test_the_robust_model_is_compared_with_its_own_control(few, tmp_path):
    run = quick(small_data(60), "gcn", runs=tmp_path)
    results = {
        Job("cora", "gumbel-mpnn", ""): with_scores(run, "a", (0.9,) * 3, (0.5,) * 3),
        Job("cora", "frozen", ""): with_scores(run, "b", (0.8,) * 3, (0.5,) * 3),
        Job("cora", "gumbel-mpnn", ROBUST): with_scores(run, "c", (0.7,) * 3, (0.5,) * 3),
        Job("cora", "frozen", ROBUST): with_scores(run, "d", (0.4,) * 3, (0.5,) * 3),
    }
    rows = {row["model"]: row for row in Flood().collect(results) if row["edges"] == 40}
    assert rows["gumbel-mpnn"]["learned_difference"] == pytest.approx(10)
    assert rows["robust"]["learned_difference"] == pytest.approx(30)


def test_the_lowest_result_of_all_numbers_of_edges(few, tmp_path):
    run = quick(small_data(60), "gcn", runs=tmp_path)
    results = {
        Job("cora", "gumbel-mpnn", ""): with_scores(run, "a", (0.9, 0.5, 0.7), (0.5,) * 3),
        Job("cora", "gcn", ""): with_scores(run, "b", (0.8, 0.6, 0.2), (0.5,) * 3),
        Job("cora", "mlp", ""): with_scores(run, "c", (0.6, 0.6, 0.6), (0.5,) * 3),
        Job("pubmed", "sage", ""): with_scores(run, "d", (0.6, 0.6, 0.3), (0.5,) * 3),
    }
    flooded = quick(small_data(60), "gcn", transform=Flooded(40), runs=tmp_path)
    results[Job("cora", "gcn", "", transform=Flooded(40))] = flooded
    lines = Flood().remarks(results, Flood().collect(results)).splitlines()
    assert lines[0] == ("- Gumbel-MPNN against the best plain model, 3 cases: too few splits for a test on 3.")
    assert lines[-6:] == [
        "| data set | model | no random edges, % | less GCN | lowest of all numbers, % | lowest difference to MLP |",
        "| --- | --- | --: | --: | --: | --: |",
        "| cora | Gumbel-MPNN | 90.00 | 10.00 | 50.00 | -10.00 |",
        "| cora | GCN | 80.00 | 0.00 | 20.00 | -40.00 |",
        "| cora | MLP | 60.00 | -20.00 | 60.00 | 0.00 |",
        "| pubmed | GraphSAGE | 60.00 | – | 30.00 | – |",
    ]


def test_trained_with_the_edges(few, tmp_path):
    run = quick(small_data(60), "gcn", transform=Flooded(40), runs=tmp_path)
    (row,) = Flood().collect({Job("cora", "gcn", "", transform=Flooded(40)): run})
    assert (row["trained"], row["edges"], row["n"]) == ("with the random edges", 40, run.n)
    assert row["test"] == pytest.approx(100 * run.test.mean)


def test_models_are_needed_for_jobs_without_random_edges_in_training_alone():
    clean, flooded = Job("cora", "gcn", ""), Job("cora", "gcn", "", transform=Flooded(40))
    assert (Flood().needed_from(clean), Flood().needed_from(flooded)) == (Flood.from_models, "")


def test_without_data():
    rows = Flood().collect({Job("pubmed", "gcn", ""): None})
    assert {row["verdict"] for row in rows} == {"no data"}


def test_the_plan():
    jobs = Flood().plan()
    assert len(set(jobs)) == len(jobs)
    assert tables.experiments["flood"].plan() == jobs
    assert {job.dataset for job in jobs} == {"cora", "citeseer", "pubmed"}
    assert {job.model for job in jobs if job.preset} == {"gumbel-mpnn", "frozen"}
    assert {job.preset for job in jobs} == {"", ROBUST}


def test_the_preset_of_the_robust_model_is_the_same_for_all_graphs():
    tables = [read_preset(ROBUST, dataset, "gumbel-mpnn").tables for dataset in flood.DATASETS]
    assert tables == tables[:1] * len(tables)


def test_the_robust_model_has_the_common_settings_apart_from_backbone_rewiring_and_two_more():
    job = next(job for job in Flood().plan() if job.model == "gumbel-mpnn" and job.preset == ROBUST)
    robust = spec_of(job, Request()).settings
    common = spec_of(next(job for job in Flood().plan() if job.model == "sage"), Request()).settings
    assert (robust.train.select_from, robust.options["input_dropout"]) == (60, 0.3)
    assert (robust.data, replace(robust.train, select_from=0)) == (common.data, common.train)
    assert common.options.items() <= (robust.options | {"input_dropout": 0.5}).items()


def test_the_small_version():
    request = Request(quick=True, seeds=1)
    jobs = tables.requested_jobs(Flood(), request)
    assert {job.dataset for job in jobs} == {"cora"}
    specs = [spec_of(job, request) for job in jobs if not job.model.startswith("auto")]
    assert {spec.asked_preset for spec in specs} == {None, ROBUST}
