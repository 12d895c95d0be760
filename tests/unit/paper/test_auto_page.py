"""The page of `auto`: each row compares it with the best plain model and with the better control."""

from types import SimpleNamespace

import pytest

from gumbel_mpnn.paper import tables
from gumbel_mpnn.paper.auto import AUTO, CASES, CONTROLS, Auto, _chosen_per_split
from gumbel_mpnn.paper.base import Job
from gumbel_mpnn.runs import fit
from helpers import small_data

FAST = ["train.epochs=3", "model.hidden_channels=8"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    return {
        Job("small", model, experiment="auto", overrides=("data.attack=meta-0.1",)): fit(
            small_data(), model, overrides=FAST, seeds=2, runs=runs
        )
        for model in (AUTO, *CONTROLS)
    }


def test_a_row(results):
    (row,) = Auto().collect(results)
    ours, *controls = results.values()
    plain = ours.rungs[ours.choice.best_plain]
    assert (row["dataset"], row["setting"]) == ("small", "attack=meta-0.1")
    assert (row["rung"], row["plain"]) == (ours.choice.chosen, ours.choice.best_plain)
    assert row["test"] == pytest.approx(100 * ours.test.mean)
    assert row["difference"] == pytest.approx(100 * (ours.test.mean - plain.test.mean))
    better = max(controls, key=lambda run: run.test.mean)
    assert row["learned_difference"] == pytest.approx(100 * (ours.test.mean - better.test.mean))
    assert row["best_on_test"] == max(ours.rungs, key=lambda name: ours.rungs[name].test.mean)
    assert row["verdict"] == "too few splits"
    assert (row["low"], row["high"], row["over"]) == (None, None, "splits")
    assert "Auto against the best plain model, 1 graph: too few splits for a test on 1." in (
        Auto().remarks(results, [row])
    )


def test_seeds_of_one_split_have_a_verdict(results, tmp_path):
    runs = {
        job: fit(small_data(), job.model, overrides=FAST, splits=[0], seeds=6, runs=tmp_path, preset=None)
        for job in results
    }
    (row,) = Auto().collect(runs)
    assert (row["over"], row["learned_over"]) == ("seeds", "seeds")
    assert row["verdict"].endswith("(one split)")
    assert row["low"] <= row["difference"] <= row["high"]
    assert "; 1 of the tests is over the seeds of one split." in Auto().remarks(runs, [row])


def row_of(dataset, setting, difference, verdict, learned_verdict, hit=False):
    best = "gcn" if hit else "sage"
    named = {"dataset": dataset, "setting": setting, "difference": difference, "rung": "gcn", "best_on_test": best}
    return {**named, "verdict": verdict, "learned_verdict": learned_verdict}


def test_remarks_count_the_rows():
    rows = [
        row_of("cora", "", -0.2, "same", "worse"),
        row_of("pubmed", "", 0.5, "better", "better", hit=True),
        row_of("attacked-cora", "attack=", -0.1, "same (one split)", "same (one split)"),
        row_of("attacked-cora", "attack=meta-0.25", -9.0, "worse (one split)", "better (one split)", hit=True),
        row_of("actor", "", None, "no data", None) | {"rung": None, "best_on_test": None},
    ]
    assert Auto().remarks({}, rows).splitlines() == [
        "- Auto against the best plain model, 4 graphs: better on 1, the same on 2, worse on 1; 2 of the tests are over"
        " the seeds of one split.",
        "- Its largest loss on a graph without an attack is 0.20 points (cora).",
        "- Auto against the better control (what is learned), 4 graphs: better on 2, the same on 1, worse on 1; 2 of"
        " the tests are over the seeds of one split.",
        "- The chosen rung is the best one on test, known only afterwards, on 2 of 4 graphs.",
    ]
    assert "loss on a graph without an attack is 0.10 points (attacked-cora)." in Auto().remarks({}, rows[2:])
    assert "on none of 1 graph without an attack" in Auto().remarks({}, rows[1:2])
    assert "on none of 1 graph" in Auto().remarks({}, [row_of("cora", "", 0.0, "same", "same")])
    assert Auto().remarks({}, []) == Auto().remarks({}, rows[-1:]) == ""


def test_what_each_split_would_choose():
    def run(*of_splits):
        records = [SimpleNamespace(split=split, val=val, test=test) for split, (val, test) in enumerate(of_splits)]
        return SimpleNamespace(records=records)

    finalists = {"gcn": run((0.9, 0.1), (0.5, 0.2)), "free": run((0.8, 0.3), (0.6, 0.4))}
    assert _chosen_per_split(finalists) == pytest.approx((0.1 + 0.4) / 2)


def test_in_controls_no_edge_is_learned(results):
    for model, run in zip(CONTROLS, list(results.values())[1:], strict=True):
        assert "gumbel-mpnn" not in {each.settings.model for each in run.rungs.values()}
        assert model.removeprefix("auto-") in {each.settings.model for each in run.rungs.values()}


def test_plain_rungs_are_the_same_runs_in_all_ladders(results):
    ours, *controls = results.values()
    for run in controls:
        assert run.rungs["gcn"].records == ours.rungs["gcn"].records


def test_without_data_or_a_control():
    job = Job("cora", AUTO, experiment="auto")
    (row,) = Auto().collect({job: None})
    assert (row["verdict"], row["test"], row["learned_difference"]) == ("no data", None, None)


def test_the_plan_is_of_every_case_and_control():
    jobs = Auto().plan()
    assert len(jobs) == len(set(jobs)) == 3 * len(CASES)
    assert {job.seeds for job in jobs if job.dataset.startswith("attacked")} == {10}
    assert tables.experiments["auto"].plan() == jobs
