"""Readings of the paper: which models they apply to, and which one is nearest."""

from dataclasses import replace

import pytest

from gumbel_mpnn.paper.base import Job
from gumbel_mpnn.paper.readings import CHOSEN, READINGS, Readings, TrainingReadings
from gumbel_mpnn.runs import RunSpec, fit
from helpers import small_data

LINEAR = ("model.shortcut=linear", "model.input_layer=false")


@pytest.fixture(scope="module")
def run():
    settings = {"model": {"hidden_channels": 4}, "train": {"epochs": 1}}
    return fit(small_data(), "gcn", settings=settings, device="cpu")


def with_test(run, percent):
    """The same run with this test accuracy."""
    return replace(run, records=tuple(replace(record, test=percent / 100) for record in run.records))


def names(dataset, model):
    by_overrides = {reading.overrides: reading.name for reading in READINGS}
    return {by_overrides[job.overrides] for job in Readings().plan() if (job.dataset, job.model) == (dataset, model)}


def test_a_reading_of_residuals_is_for_models_with_a_residual():
    assert "linear" in names("pubmed", "gcn")
    assert "linear" not in names("cora", "gcn")
    assert "input layer" in names("cora", "gcn")


def test_a_reading_of_candidates_is_for_models_that_have_them():
    assert "500 pairs" in names("cora", "gumbel-mpnn")
    assert "500 pairs" not in names("citeseer", "gumbel-mpnn")
    assert "3 per node" in names("citeseer", "gumbel-mpnn")
    assert "500 pairs" not in names("cora", "gcn")


def test_features_that_are_few_are_not_normalized():
    assert "row-normalized" in names("cora", "mlp")
    assert "row-normalized" not in names("tolokers", "mlp")


def test_no_two_readings_of_a_model_are_the_same_but_for_the_chosen_one():
    """The chosen reading is one of the others; every other pair differs in its settings."""
    for dataset, model in (("pubmed", "gcn"), ("cora", "gcn"), ("actor", "gumbel-mpnn")):
        jobs = [job for job in Readings().plan() if (job.dataset, job.model) == (dataset, model)]
        found = [RunSpec.of(dataset, model, preset="paper", overrides=job.overrides).settings for job in jobs]
        assert len({settings.fingerprint("") for settings in found[1:]}) == len(found) - 1
        assert found[0] in found[1:]


def test_the_nearest_reading_and_the_mean_distances(run):
    """The paper has 88.07 for the GCN on pubmed and 35.21 on actor."""
    results = {
        Job("pubmed", "gcn", "paper", "paper"): with_test(run, 87.07),
        Job("pubmed", "gcn", "paper", "paper", LINEAR): with_test(run, 90.07),
        Job("actor", "gcn", "paper", "paper"): with_test(run, 37.21),
        Job("actor", "gcn", "paper", "paper", LINEAR): with_test(run, 34.21),
        Job("cora", "gcn", "paper", "paper"): None,
    }
    rows = Readings().collect(results)
    assert [row["to_paper"] for row in rows] == [*map(pytest.approx, (-1, 2, 2, -1)), None]
    assert [row["nearest"] for row in rows] == ["nearest", "", "", "nearest", ""]
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in Readings().remarks(results, rows).splitlines()[2:]
    ]
    assert lines == [[CHOSEN, "2", "1.50", "1", "1.50", "1"], ["linear", "2", "1.50", "1", "1.50", "1"]]


def test_rewired_models_do_not_decide(run):
    results = {Job("cora", "gumbel-mpnn", "paper", "paper"): with_test(run, 80)}
    assert Readings().remarks(results, Readings().collect(results)) == ""


def test_readings_of_training_are_of_plain_models_and_differ_in_nothing_else():
    jobs = [job for job in TrainingReadings().plan() if job.dataset == "cora"]
    assert {job.model for job in jobs} == {"mlp", "gcn", "sage", "gat"}
    trained = [
        RunSpec.of("cora", "gcn", preset="paper", overrides=job.overrides).settings
        for job in jobs
        if job.model == "gcn"
    ]
    assert [settings.train.epochs for settings in trained] == [1000, 100, 200, 400, 1000]
    assert len({settings.fingerprint("") for settings in trained}) == len(trained)
