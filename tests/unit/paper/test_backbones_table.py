"""The plan of the plain models, the paper's numbers, and how ours are put beside them."""

from dataclasses import replace

import pytest

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.config.presets import read_preset
from gumbel_mpnn.data import specs
from gumbel_mpnn.paper import Job, Request, base, experiments, published, run_jobs
from gumbel_mpnn.paper.backbones import DATASETS, MODELS, Backbones
from gumbel_mpnn.runs import fit
from helpers import generated, small_data
from quick_fit import names, resolved

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
    FAST = ("train.epochs=1", "model.hidden_channels=4")

    @pytest.fixture
    def cora(self, monkeypatch):
        """A small graph of four splits in the place of cora."""
        monkeypatch.setitem(specs, "cora", generated("cora", lambda: small_data(splits=4)))

    @pytest.mark.usefixtures("cora")
    def test_every_job_is_done_with_its_preset_and_the_overrides(self, tmp_path):
        request = Request(seeds=2, runs=tmp_path, splits=(0, 3), overrides=self.FAST, device="cpu")
        results = run_jobs(Backbones(), self.JOBS, request)
        assert list(results) == list(self.JOBS)
        for job, run in results.items():
            assert run.settings == resolved(job.dataset, job.model, preset=job.preset, overrides=self.FAST)
            seeds = 1 if job.preset == "paper" else 2  # one seed is enough for the paper's own settings
            assert names(run) == [(split, seed) for split in (0, 3) for seed in range(seeds)]
            assert run.folder.path.parent == tmp_path / "backbones" / "cora" / job.model
        tuned, paper = (read_preset(family, "cora", "gcn").tables["train"] for family in ("tuned", "paper"))
        assert tuned["lr"] != paper["lr"] == results[self.JOBS[1]].settings.train.lr

    @pytest.mark.usefixtures("cora")
    def test_a_quick_job_keeps_its_own_settings_and_overrides_come_last(self, tmp_path):
        job = Job("cora", "gcn", overrides=("model.hidden_channels=32",))
        with_overrides = Request(runs=tmp_path, seeds=1, overrides=("train.epochs=7",), quick=True, device="cpu")
        run = run_jobs(Backbones(), [job], with_overrides)[job]
        quick = [*base.QUICK_OVERRIDES, *base.QUICK_LENGTH, "model.hidden_channels=32"]
        assert run.settings == resolved("cora", "gcn", overrides=[*quick, "train.epochs=7"])
        assert (run.settings.options["hidden_channels"], run.settings.train.epochs) == (32, 7)
        assert names(run) == [(0, 0), (1, 0)]
        with_splits = Request(runs=tmp_path, seeds=1, splits=(3,), quick=True, device="cpu")
        run = run_jobs(Backbones(), [job], with_splits)[job]
        assert run.settings == resolved("cora", "gcn", overrides=quick)
        assert names(run) == [(3, 0)]

    def test_quick_leaves_out_large_data_sets_unless_there_are_no_others(self):
        small, large = Job("cora", "gcn"), Job("pubmed", "gcn")
        assert base.quick_jobs([small, large]) == [small]
        assert base.quick_jobs([large]) == [large]

    def test_missing_files_give_none_and_the_rest_goes_on(self, monkeypatch, tmp_path, no_data_sets):
        monkeypatch.setitem(specs, "small", generated("small", small_data))
        jobs = (Job("cora", "mlp"), Job("small", "mlp", preset=None))
        request = Request(seeds=1, runs=tmp_path, root=tmp_path, overrides=self.FAST, device="cpu")
        results = run_jobs(Backbones(), jobs, request)
        assert list(results) == list(jobs)
        assert results[jobs[0]] is None
        assert results[jobs[1]].n == 2

    def test_damaged_files_are_not_passed_over(self, tmp_path, no_data_sets):
        file = tmp_path / specs["questions"].forms[0].files[0].path
        file.parent.mkdir(parents=True)
        file.write_bytes(b"altered")
        with pytest.raises(DataError, match="is not the published file"):
            run_jobs(Backbones(), [Job("questions", "mlp", preset=None)], Request(runs=tmp_path, root=tmp_path))
