"""Which runs a job has, what of them is trained, and what is kept of trained models."""

from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import SHORT, fit

from experiments import PAGES, Experiment, Job
from experiments.kept import kept
from experiments.paper.accuracy import Accuracy, Backbones
from experiments.training import Options, selected_jobs, train
from gumbel_mpnn.data import specs
from gumbel_mpnn.util import DivergedError, UserError

EXPERIMENTS = {name: page for name, page in PAGES.items() if isinstance(page, Experiment)}
JOB = Job("small", "gcn", "")
MODEL_FILE = "model.safetensors"


class Measured(Experiment):
    """Takes predictions from the models."""

    name, title, measured = "measured", "Measured", "predicted"

    def plan(self):
        return [JOB]

    def collect(self, results):
        return [{"predicted": self.kept(run)} for run in results.values()]

    def measure(self, run):
        return run.predict()


@pytest.fixture
def options(small, tmp_path):
    small("small")
    return Options(seeds=1, splits=(0,), overrides=SHORT, runs=tmp_path / "runs", device="cpu", quiet=True)


class TestSelection:
    @pytest.mark.parametrize(
        ("table", "only", "selected"),
        [
            ("accuracy", ("paper", "cora"), 7),
            ("poison", ("attacked-cora", "gcn", "default", "meta-0.25"), 2),
            ("flood", ("cora", "gcn", "flooded-10000"), 1),
            ("missing", ("cora", "gcn"), 5),
            ("auto", ("blogcatalog", "auto"), 2),
        ],
    )
    def test_names_of_each_kind(self, table, only, selected):
        jobs = selected_jobs(PAGES[table], Options(only=only))
        assert len(jobs) == selected
        assert all({job.dataset, job.model, job.preset, job.setting} & set(only) for job in jobs)

    def test_names_that_stand_in_no_row_together(self):
        with pytest.raises(UserError, match="accuracy has no row with all of literal, frozen: name a data set"):
            selected_jobs(Accuracy(), Options(only=("literal", "frozen")))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_jobs_are_of_known_data_sets_and_each_is_there_once(name):
    jobs = EXPERIMENTS[name].plan()
    assert len(set(jobs)) == len(jobs) > 0
    assert {job.dataset for job in jobs} <= set(specs)


class TestTraining:
    def test_finished_runs_are_not_trained_again(self, options, no_training):
        first = train(Backbones(), [JOB], options)[JOB]
        no_training()
        again = train(Backbones(), [JOB], options)[JOB]
        assert again.records == first.records
        assert Path(first.folders[0]).relative_to(options.runs).parts[:2] == ("backbones", "small")

    def test_workers_train_the_same(self, options, tmp_path):
        jobs = [Job("bottleneck-10", model, "") for model in ("gcn", "mlp")]
        alone = train(Backbones(), jobs, options)
        together = train(Backbones(), jobs, replace(options, runs=tmp_path / "others", workers=2))
        assert list(together) == jobs
        assert [run.test for run in together.values()] == [run.test for run in alone.values()]

    def test_missing_files_give_none_and_the_rest_goes_on(self, options, no_data_sets):
        missing = Job("cora", "gcn", "")
        results = train(Backbones(), [missing, JOB], options)
        assert results[missing] is None
        assert results[JOB].n == 1

    def test_a_search_goes_on_without_what_diverges(self, options):
        diverging = replace(JOB, overrides=("train.lr=1e30",))
        search = PAGES["budget"]
        assert list(train(search, [diverging, JOB], options)) == [JOB]
        with pytest.raises(DivergedError, match="training diverged"):
            train(Accuracy(), [diverging], options)


class TestKept:
    def test_it_is_made_once_for_these_very_runs(self, tmp_path):
        run, calls = fit(runs=tmp_path), []

        def make():
            calls.append(1)
            return {"pairs": (1, 2), "mean": 0.1 + 0.2}

        assert kept(run, "mine", make) == kept(run, "mine", make) == {"pairs": [1, 2], "mean": 0.1 + 0.2}
        assert calls == [1]
        assert kept(run, "another", lambda: 2) == kept(replace(run, records=run.records[:1]), "mine", lambda: 2) == 2

    def test_models_may_go_once_all_was_taken_from_them(self, options, no_training):
        (row,) = Measured().collect(train(Measured(), [JOB], options))
        for file in options.runs.rglob(MODEL_FILE):
            file.unlink()
        no_training()
        assert Measured().collect(train(Measured(), [JOB], options)) == [row]
