"""The table of what every model tried: equal numbers, equal draws, validation alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from gumbel_mpnn._util.errors import DivergedError
from gumbel_mpnn.data import specs
from gumbel_mpnn.paper import Job, Request, run_jobs
from gumbel_mpnn.paper.accuracy import MODELS, Accuracy
from gumbel_mpnn.paper.backbones import DATASETS
from gumbel_mpnn.paper.budget import LARGE, START, Budget, space_of
from helpers import generated, small_data
from quick_fit import quick, resolved


@pytest.fixture(scope="module")
def run():
    return quick()


def with_val(run, val):
    """The same run with this validation figure, and a test figure that would choose otherwise."""
    return replace(run, records=tuple(replace(record, val=val, test=1 - val) for record in run.records))


@cache
def plan():
    """All that the experiment tries; drawn once, which takes a second."""
    return tuple(Budget().plan())


def trials(dataset, model):
    return [job for job in plan() if (job.dataset, job.model) == (dataset, model)]


class TestPlan:
    @pytest.mark.parametrize("dataset", DATASETS)
    def test_every_model_tries_as_many_settings_each_once(self, dataset):
        for model in MODELS:
            tried = {
                resolved(dataset, model, preset=job.preset, overrides=job.overrides).fingerprint("")
                for job in trials(dataset, model)
            }
            assert len(tried) == (8 if dataset in LARGE else 16)

    def test_the_first_is_the_start(self):
        assert trials("cora", "gcn")[0] == Job("cora", "gcn")
        assert trials("pubmed", "mlp")[0] == Job("pubmed", "mlp", "start")

    def test_runs_are_its_own(self):
        """What was chosen by stands, whatever becomes of the runs that the other tables judge by."""
        assert {job.experiment for job in plan()} == {""}

    def test_plain_models_have_the_same_draws_and_data_sets_have_their_own(self):
        drawn = {model: [job.overrides for job in trials("cora", model)] for model in MODELS}
        assert drawn["mlp"] == drawn["gcn"] == drawn["sage"] == drawn["gat"]
        assert drawn["gcn"][1:] != [job.overrides for job in trials("actor", "gcn")][1:]

    @pytest.mark.parametrize("model", MODELS)
    def test_all_draws_are_settings_of_the_model(self, model):
        settings = [resolved("cora", model, overrides=job.overrides) for job in trials("cora", model)[1:]]
        assert len({each.fingerprint("") for each in settings}) == 15

    @pytest.mark.parametrize("model", ["drop-edge", "sdrf", "gumbel-mpnn"])
    def test_what_is_laid_over_a_gcn_leaves_the_gcn_as_it_is(self, model):
        assert not space_of("gcn").open.keys() & space_of(model).open.keys()


class TestRows:
    def test_validation_chooses(self, run):
        first, second, third = trials("cora", "gcn")[:3]
        results = {first: with_val(run, 0.7), second: with_val(run, 0.8), third: with_val(run, 0.75)}
        (row,) = Budget().collect(results)
        assert (row["dataset"], row["model"], row["tried"], row["diverged"]) == ("cora", "gcn", 16, 13)
        assert [row[name] for name in ("start", "middle", "best", "gain")] == [
            pytest.approx(value) for value in (70, 75, 80, 10)
        ]
        assert row["chosen"] == ", ".join(second.overrides)
        assert set(Budget().headings) <= set(row)

    def test_the_start_stays_where_nothing_is_better(self, run):
        first, second = trials("cora", "sdrf")[:2]
        (row,) = Budget().collect({first: with_val(run, 0.7), second: with_val(run, 0.7)})
        assert row["chosen"] == START

    def test_the_start_stays_where_the_gain_is_no_larger_than_its_standard_error(self, run):
        first, second = trials("cora", "sdrf")[:2]
        low, high = (replace(run.records[0], split=split, val=val) for split, val in ((0, 0.70), (1, 0.75)))
        others = [replace(low, val=0.76), replace(high, val=0.70)]
        results = {first: replace(run, records=(low, high)), second: replace(run, records=tuple(others))}
        (row,) = Budget().collect(results)
        assert row["best"] > row["start"]
        assert (row["gain"], row["gain_stderr"]) == (pytest.approx(0.5), pytest.approx(5.5))
        assert row["chosen"] == START
        (row,) = Budget().collect(results | {second: replace(run, records=(others[0], replace(high, val=0.78)))})
        assert row["chosen"] == ", ".join(second.overrides)

    def test_the_start_stays_where_no_standard_error_is_known(self, run):
        """The fault: that of a single run was taken for 0, so that any draw that is better was chosen."""
        first, second = trials("cora", "sdrf")[:2]
        one = replace(run, records=run.records[:1])
        (row,) = Budget().collect({first: with_val(one, 0.5), second: with_val(one, 0.6)})
        assert (row["gain"], row["gain_stderr"], row["chosen"]) == (pytest.approx(10), None, START)

    def test_a_start_that_diverged_is_replaced(self, run):
        second = trials("cora", "sdrf")[1]
        (row,) = Budget().collect({second: run})
        assert (row["start"], row["chosen"]) == (None, ", ".join(second.overrides))

    def test_no_data(self):
        first, second = trials("actor", "mlp")[:2]
        (row,) = Budget().collect({first: None, second: None})
        assert (row["chosen"], row["best"], row["tried"]) == ("no data", None, 16)


class TestDivergence:
    TOO_FAST = Job("small", "gcn", preset=None, overrides=("train.lr=1e30",))
    JOBS = (Job("small", "gcn", preset=None), TOO_FAST, Job("small", "mlp", preset=None))

    @pytest.fixture
    def asked(self, monkeypatch, tmp_path):
        monkeypatch.setitem(specs, "small", generated("small", small_data))
        changes = ("train.epochs=2", "model.hidden_channels=4")
        return Request(seeds=1, runs=tmp_path, overrides=changes, device="cpu")

    def test_a_search_goes_on_without_it(self, asked):
        results = run_jobs(Budget(), self.JOBS, asked)
        assert list(results) == [self.JOBS[0], self.JOBS[2]]
        assert [run.n for run in results.values()] == [2, 2]

    def test_elsewhere_it_is_an_error(self, asked):
        with pytest.raises(DivergedError, match="training diverged"):
            run_jobs(Accuracy(), self.JOBS, asked)
