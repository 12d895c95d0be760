"""The plan of the plain models, the paper's numbers, and how ours are put beside them."""

from dataclasses import replace

import pytest

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.config.presets import read_preset
from gumbel_mpnn.data import specs
from gumbel_mpnn.paper import Job, Request, base, experiments, published, run_jobs
from gumbel_mpnn.paper.backbones import DATASETS, MODELS, Backbones
from gumbel_mpnn.runs import fit
from helpers import small_data

PAPER = published("accuracy")


@pytest.fixture(scope="module")
def run():
    return fit(small_data(), "mlp", settings={"model": {"hidden_channels": 4}, "train": {"epochs": 1}}, device="cpu")


def with_figures(run, test, val):
    """The same run with these figures in every record."""
    return replace(run, records=tuple(replace(record, test=test, val=val) for record in run.records))


class TestPlan:
    def test_ten_data_sets_and_four_models(self):
        plan = Backbones().plan()
        assert [(job.dataset, job.model) for job in plan] == [(d, m) for d in DATASETS for m in MODELS]
        assert (len(DATASETS), len(MODELS), len(set(plan))) == (10, 4, 40)
        assert {job.preset for job in plan} == {"tuned"}

    @pytest.mark.parametrize("job", Backbones().plan(), ids=lambda job: f"{job.dataset}-{job.model}")
    def test_every_job_has_a_data_set_a_preset_and_a_paper_number(self, job):
        assert job.dataset in specs
        assert read_preset(job.preset, job.dataset, job.model) is not None
        assert len(PAPER[job.dataset][job.model]) == 2

    def test_experiments_are_known_by_their_names(self):
        assert isinstance(experiments["backbones"], Backbones)
        assert all(experiment.name == name for name, experiment in experiments.items())


class TestPublished:
    @pytest.mark.parametrize(
        ("dataset", "model", "value"),
        [
            ("cora", "gcn", [87.47, 0.12]),
            ("squirrel-unfiltered", "gcn", [55.80, 0.13]),
            ("minesweeper", "sage", [93.58, 0.05]),
            ("cora", "gumbel-mpnn", [87.95, 0.10]),
            ("actor", "mlp", [36.50, 0.13]),
            ("chameleon", "sdrf", [35.88, 0.15]),
            ("chameleon-unfiltered", "sdrf", [63.82, 0.06]),
        ],
    )
    def test_values_of_the_papers_table(self, dataset, model, value):
        assert PAPER[dataset][model] == value

    def test_every_data_set_of_the_paper_is_there_and_known(self):
        assert set(DATASETS) < set(PAPER)
        assert set(PAPER) <= set(specs)
        assert len(PAPER) == 14

    @pytest.mark.parametrize("dataset", PAPER)
    def test_every_model_has_a_number(self, dataset):
        models = {*MODELS, "drop-edge", "gumbel-mpnn"} | (set() if dataset == "ogbn-arxiv" else {"sdrf"})
        assert set(PAPER[dataset]) == models
        for value, spread in PAPER[dataset].values():
            assert 20 < value < 100
            assert 0 < spread < 1


class TestCollect:
    def test_ours_beside_the_papers(self, run):
        (row,) = Backbones().collect({Job("cora", "gcn"): with_figures(run, 0.88, 0.9)})
        assert row == {
            "dataset": "cora",
            "model": "gcn",
            "test": pytest.approx(88),
            "std": pytest.approx(0, abs=1e-9),
            "stderr": pytest.approx(0, abs=1e-9),
            "n": 2,
            "val": pytest.approx(90),
            "paper": 87.47,
            "paper_pm": 0.12,
            "difference": pytest.approx(0.53),
            "best": "by val",
        }

    def test_no_data(self):
        (row,) = Backbones().collect({Job("minesweeper", "sage"): None})
        ours = {name: row[name] for name in ("test", "std", "stderr", "n", "val", "difference")}
        assert set(ours.values()) == {None}
        assert (row["paper"], row["paper_pm"], row["best"]) == (93.58, 0.05, "no data")

    def test_the_best_is_chosen_on_validation_in_each_data_set(self, run):
        results = {
            Job("cora", "mlp"): with_figures(run, 0.99, 0.5),
            Job("cora", "gcn"): with_figures(run, 0.2, 0.6),
            Job("actor", "mlp"): with_figures(run, 0.3, 0.1),
            Job("actor", "gcn"): None,
        }
        assert [row["best"] for row in Backbones().collect(results)] == ["", "by val", "by val", "no data"]

    def test_a_data_set_that_the_paper_does_not_have(self, run):
        (row,) = Backbones().collect({Job("texas", "gcn"): run})
        assert (row["paper"], row["paper_pm"], row["difference"]) == (None, None, None)

    def test_every_heading_belongs_to_a_column(self, run):
        (row,) = Backbones().collect({Job("cora", "gcn"): run})
        assert set(Backbones().headings) <= set(row)


class TestRunJobs:
    JOBS = (Job("cora", "mlp"), Job("cora", "gcn", preset="paper"))

    @pytest.fixture
    def calls(self, monkeypatch, run):
        made = []

        def note(dataset, model, **keywords):
            made.append((dataset, model, keywords))
            return run

        monkeypatch.setattr(base, "fit", note)
        return made

    def test_every_job_is_done_with_its_preset(self, calls, run, tmp_path):
        results = run_jobs(Backbones(), self.JOBS, Request(seeds=2, runs=tmp_path, splits=(0, 3), device="cpu"))
        assert results == dict.fromkeys(self.JOBS, run)
        assert [(dataset, model, keywords["preset"]) for dataset, model, keywords in calls] == [
            ("cora", "mlp", "tuned"),
            ("cora", "gcn", "paper"),
        ]
        for _, _, keywords in calls:
            assert (keywords["seeds"], keywords["splits"], keywords["runs"]) == (2, (0, 3), tmp_path)
            assert (keywords["experiment"], keywords["device"]) == ("backbones", "cpu")

    def test_overrides_reach_every_job(self, calls, tmp_path):
        run_jobs(Backbones(), self.JOBS, Request(runs=tmp_path, overrides=("train.epochs=1",)))
        assert [keywords["overrides"] for _, _, keywords in calls] == [["train.epochs=1"]] * 2

    def test_a_quick_job_keeps_its_own_settings_and_overrides_come_last(self, calls, tmp_path):
        jobs = [Job("cora", "gcn", overrides=("model.hidden_channels=32",))]
        run_jobs(Backbones(), jobs, Request(runs=tmp_path, overrides=("train.epochs=7",), quick=True))
        run_jobs(Backbones(), jobs, Request(runs=tmp_path, splits=(3,), quick=True))
        overrides = [*base.QUICK_OVERRIDES, "model.hidden_channels=32"]
        assert [keywords["overrides"] for _, _, keywords in calls] == [[*overrides, "train.epochs=7"], overrides]
        assert [keywords["splits"] for _, _, keywords in calls] == [(0, 1), (3,)]

    def test_quick_leaves_out_large_data_sets_unless_there_are_no_others(self):
        small, large = Job("cora", "gcn"), Job("pubmed", "gcn")
        assert base.quick_jobs([small, large]) == [small]
        assert base.quick_jobs([large]) == [large]

    def test_missing_files_give_none_and_the_rest_goes_on(self, monkeypatch, tmp_path, no_data_sets):
        monkeypatch.setitem(GENERATED, "small", small_data)
        jobs = (Job("cora", "mlp"), Job("small", "mlp", preset=None, overrides=("train.epochs=2",)))
        results = run_jobs(jobs, seeds=1, runs=tmp_path, root=tmp_path / "data", experiment="try", device="cpu")
        assert list(results) == list(jobs)
        assert results[jobs[0]] is None
        assert results[jobs[1]].n == 2

        monkeypatch.setattr(base, "fit", one_is_missing)
        results = run_jobs(Backbones(), self.JOBS, Request(runs=tmp_path))
        assert list(results.values()) == [None, run]

    def test_damaged_files_are_not_passed_over(self, monkeypatch, tmp_path):
        def damaged(*_, **__):
            raise DataError("altered")

        monkeypatch.setattr(base, "fit", damaged)
        with pytest.raises(DataError, match="altered"):
            run_jobs(Backbones(), self.JOBS, Request(runs=tmp_path))
