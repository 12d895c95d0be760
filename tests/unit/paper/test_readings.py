"""Readings of the paper: which models they apply to, and which one is nearest."""

import csv
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from gumbel_mpnn.paper.backbones import DATASETS, MODELS
from gumbel_mpnn.paper.base import Job, published
from gumbel_mpnn.paper.readings import (
    CHOSEN,
    LENGTHS,
    READINGS,
    USUAL,
    Readings,
    RewiringReadings,
    TrainingReadings,
    chosen_length,
)
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


def test_readings_of_training_are_of_plain_models_and_name_their_length():
    """So they stay the same when a preset takes the chosen length."""
    jobs = [job for job in TrainingReadings().plan() if job.dataset == "cora"]
    assert {job.model for job in jobs} == {"mlp", "gcn", "sage", "gat"}
    overrides = [job.overrides for job in jobs if job.model == "gcn"]
    assert overrides == [(f"train.epochs={epochs}",) for epochs in (100, 200, 400, 1000)]


@pytest.mark.parametrize(
    ("means", "length"),
    [
        ((3.0, 1.0, 2.0, 1.6), "200 epochs"),
        ((3.0, 1.0, 2.0, 1.5), "1000 epochs"),  # nearer by the margin, and not by more
        ((1.0, 0.9, 2.0, 0.5), "1000 epochs"),
        ((0.1, 0.2, 2.0, 3.0), "100 epochs"),
    ],
)
def test_another_length_is_chosen_if_it_is_clearly_nearer(means, length):
    assert chosen_length(dict(zip([reading.name for reading in LENGTHS], means, strict=True))) == length


def lines_of(results):
    """The lines of the table of lengths, and the text below it."""
    table, _, below = TrainingReadings().remarks(results, TrainingReadings().collect(results)).rpartition("\n\n")
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line[:1] == "|"], below


def trained_for_all_lengths(run, dataset, model, *to_paper):
    """Runs of a model whose results differ from the paper's by so much with each length."""
    paper = published("accuracy")[dataset][model][0]
    return {
        Job(dataset, model, "paper", "paper", reading.overrides): with_test(run, paper + distance)
        for reading, distance in zip(LENGTHS, to_paper, strict=True)
    }


def test_the_length_of_each_data_set_is_chosen_by_its_mean_distance(run):
    results = {}
    for model in MODELS:
        results |= trained_for_all_lengths(run, "cora", model, 0, 0, 0, -0.4)
        results |= trained_for_all_lengths(run, "tolokers", model, -4, -0.4 if model == "mlp" else 2, 3, 4)
    lines, below = lines_of(results)
    models = "MLP, GCN, GraphSAGE, GAT"
    assert lines[0] == ["data set", "models", *(reading.name for reading in LENGTHS), "chosen"]
    assert lines[2:] == [
        ["cora", models, "0.00", "0.00", "0.00", "0.40", "1000 epochs"],
        ["tolokers", models, "4.00", "1.60", "3.00", "4.00", "200 epochs"],
    ]
    assert "5 of 8 (mean distance 1.00) with the chosen lengths, and 4 of 8 (mean distance 2.20)" in below


def test_some_of_the_plain_models_choose_nothing(run):
    """The fault: two models that were finished chose for all four."""
    results = {}
    for model in ("mlp", "gcn"):
        results |= trained_for_all_lengths(run, "tolokers", model, 4, 0, 3, 4)
    unfinished = trained_for_all_lengths(run, "tolokers", "sage", 1, 1, 1, 1)
    unfinished.popitem()
    lines, below = lines_of(results | unfinished)
    assert lines[2:] == [["tolokers", "MLP, GCN", "4.00", "0.00", "3.00", "4.00", "undecided"]]
    assert "0 of 2 (mean distance 4.00) with the chosen lengths, and 0 of 2 (mean distance 4.00)" in below


def test_nothing_is_chosen_without_results():
    nothing = {Job("cora", "gcn", "paper", "paper", LENGTHS[0].overrides): None}
    assert TrainingReadings().remarks(nothing, TrainingReadings().collect(nothing)) == ""


PAGE = Path(__file__).parents[3] / "docs" / "results" / "readings-training.csv"


@pytest.mark.skipif(not PAGE.is_file(), reason="the pages of results are not here")
def test_the_presets_have_the_lengths_that_the_page_chose():
    distances = {}
    with PAGE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            by_length = distances.setdefault(row["dataset"], {reading.name: [] for reading in LENGTHS})
            by_length[row["reading"]].append(abs(float(row["to_paper"])))
    complete = {d: found for d, found in distances.items() if all(len(each) == 4 for each in found.values())}
    chosen = {d: chosen_length({name: fmean(each) for name, each in found.items()}) for d, found in complete.items()}
    presets = {d: f"{RunSpec.of(d, 'gcn', preset='paper').settings.train.epochs} epochs" for d in DATASETS}
    assert presets == dict.fromkeys(DATASETS, USUAL) | chosen


def test_readings_of_rewiring_change_nothing_but_rewiring_and_are_summed_up():
    jobs = [job for job in RewiringReadings().plan() if job.dataset == "chameleon-unfiltered"]
    assert all(option.startswith("rewiring.") for job in jobs for option in job.overrides)
    assert len({job.overrides for job in jobs}) == len(jobs)
    results = dict.fromkeys(jobs)
    rows = RewiringReadings().collect(results)
    assert [row["reading"] for row in rows][:3] == [CHOSEN, "2|E| pairs", "2,000 pairs"]
    measured = [row | {"to_paper": float(place)} for place, row in enumerate(rows)]
    table = RewiringReadings().remarks(results, measured)
    assert "| 2,000 pairs | 1 | 2.00 | 0 | 0.00 | 1 |" in table
