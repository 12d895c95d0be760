"""The main table: every model beside the paper's figure, against the plain GCN and against the best."""

from dataclasses import replace
from pathlib import Path

import pytest

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.data import specs
from gumbel_mpnn.paper import Job, Reproduction, Request, experiments, published
from gumbel_mpnn.paper.accuracy import Accuracy, AccuracyUnfiltered
from gumbel_mpnn.paper.backbones import Backbones
from gumbel_mpnn.paper.rewiring import Rewiring
from gumbel_mpnn.paper.tables import requested_jobs
from gumbel_mpnn.report.grid import grid_table
from gumbel_mpnn.runs import find_preset, fit
from helpers import small_data
from quick_fit import resolved

MODELS = ("mlp", "gcn", "sage", "gat", "drop-edge", "sdrf", "gumbel-mpnn")
CONTROLS = ("frozen", "random")
SPLITS = 8
EVEN = [0.5 + 0.01 * split for split in range(SPLITS)]


@pytest.fixture(scope="module")
def run():
    settings = {"model": {"hidden_channels": 4}, "train": {"epochs": 1}}
    return fit(small_data(splits=SPLITS), "gcn", settings=settings, device="cpu")


def with_tests(run, values):
    """The same run with these test figures."""
    return replace(run, records=tuple(replace(r, test=t) for r, t in zip(run.records, values, strict=True)))


class TestPlan:
    def test_seven_models_on_the_papers_data_sets(self):
        main = [(job.dataset, job.model, job.preset) for job in Accuracy().plan()]
        assert len(main) == len(set(main)) == 12 * (7 * 3 + 2)
        tuned = [model for dataset, model, preset in main if (dataset, preset) == ("cora", "tuned")]
        assert tuned == [*MODELS, *CONTROLS]
        assert {model for _, model, preset in main if preset != "tuned"} == set(MODELS)
        assert {preset for _, _, preset in main} == {"tuned", "paper", "literal"}
        assert {job.dataset for job in AccuracyUnfiltered().plan()} == {"squirrel-unfiltered", "chameleon-unfiltered"}
        assert {dataset for dataset, _, _ in main} | {"squirrel-unfiltered", "chameleon-unfiltered"} == set(
            published("accuracy")
        )

    def test_one_preset_can_be_selected(self):
        jobs = requested_jobs(Accuracy(), Request(only=("paper", "cora")))
        assert [(job.dataset, job.model, job.preset) for job in jobs] == [("cora", model, "paper") for model in MODELS]

    def test_names_that_stand_in_no_row_together_are_an_error(self):
        """The fault: an empty page was written."""
        with pytest.raises(UserError, match="accuracy has no row with all of literal, frozen: name a data set"):
            requested_jobs(Accuracy(), Request(only=("literal", "frozen")))

    def test_settings_that_the_papers_presets_share_are_trained_once(self):
        """Both store runs in one folder, and only the rewired model differs between them."""
        papers = [job for job in Accuracy().plan() if job.dataset == "cora" and job.preset != "tuned"]
        assert {job.experiment for job in papers} == {"paper"}
        found = {(job.preset, job.model): resolved("cora", job.model, preset=job.preset) for job in papers}
        same = {model for model in MODELS if found["paper", model] == found["literal", model]}
        assert same == {*MODELS} - {"gumbel-mpnn"}

    def test_they_are_known_by_name(self):
        assert isinstance(experiments["accuracy"], Accuracy)
        assert isinstance(experiments["accuracy-unfiltered"], AccuracyUnfiltered)

    def test_runs_are_shared_with_the_experiments_that_train_the_same(self):
        kept = {(job.dataset, job.model, job.preset): job.experiment for job in Accuracy().plan()}
        for job in Backbones().plan():
            assert kept.get((job.dataset, job.model, job.preset), "backbones") == "backbones"
        for job in Rewiring().plan():
            if job.preset == "tuned" and not job.overrides:
                assert kept[job.dataset, job.model, job.preset] == job.experiment

    @pytest.mark.parametrize(
        "job", AccuracyUnfiltered().plan(), ids=lambda job: f"{job.dataset}-{job.model}-{job.preset}"
    )
    def test_every_job_has_a_preset_of_its_own_or_its_backbones(self, job):
        assert job.dataset in specs
        assert find_preset(job.preset, job.dataset, job.model) is not None


def test_what_the_notes_say_of_the_tuned_gumbel_mpnn():
    """A class-space edge model on all but squirrel, and nowhere a regularizer of the paper."""
    found = {}
    for job in (*Accuracy().plan(), *AccuracyUnfiltered().plan()):
        if (job.preset, job.model) == ("tuned", "gumbel-mpnn") and find_preset("tuned", job.dataset, job.model):
            found[job.dataset] = resolved(job.dataset, job.model, preset="tuned").rewiring
    assert {rewiring.regularizer for rewiring in found.values()} == {"none"}
    others = {dataset: rewiring.scorer for dataset, rewiring in found.items() if rewiring.scorer != "class-space"}
    assert others == {"squirrel": "bilinear"}
    assert found["squirrel"].candidates == "none"
    assert len(found) == 10


class TestRows:
    def collect(self, run, **shifts):
        """Rows by model, each better than the GCN by a shift on every split."""
        results = {
            Job("cora", model.replace("_", "-")): with_tests(run, [value + shift for value in EVEN])
            for model, shift in shifts.items()
        }
        return {row["model"]: row for row in Accuracy().collect(results)}

    def test_ours_the_papers_and_the_difference_to_the_gcn(self, run):
        rows = self.collect(run, gcn=0.0, gumbel_mpnn=0.02)
        row = rows["gumbel-mpnn"]
        mean = 100 * sum(EVEN) / SPLITS + 2
        assert (row["test"], row["paper"], row["paper_pm"]) == (pytest.approx(mean), 87.95, 0.10)
        assert row["to_paper"] == pytest.approx(mean - 87.95)
        assert [row[name] for name in ("difference", "low", "high")] == [pytest.approx(2)] * 3
        assert (row["verdict"], row["n"], row["epochs"]) == ("better", SPLITS, 1)
        assert row["std"] == pytest.approx(row["stderr"] * SPLITS**0.5)
        assert (rows["gcn"]["difference"], rows["gcn"]["verdict"]) == (None, None)
        assert set(Accuracy().headings) <= set(row)

    def test_the_difference_to_the_best_baseline(self, run):
        rows = self.collect(run, gcn=0.0, sage=0.02, gat=0.01, gumbel_mpnn=0.05)
        assert {row["baseline"] for row in rows.values()} == {"sage"}  # Gumbel-MPNN is none
        found = {model: (row["baseline_difference"], row["baseline_verdict"]) for model, row in rows.items()}
        assert found == {
            "gcn": (pytest.approx(-2), "worse"),
            "sage": (None, None),
            "gat": (pytest.approx(-1), "worse"),
            "gumbel-mpnn": (pytest.approx(3), "better"),
        }
        ours = rows["gumbel-mpnn"]
        assert [ours[f"baseline_{name}"] for name in ("low", "high")] == [pytest.approx(3)] * 2
        assert ours["baseline_p"] == pytest.approx(1 / 2**7)

    def test_seeds_of_one_split_tell_the_best_too(self, run):
        one_split = replace(
            run, records=tuple(replace(record, split=0, seed=seed) for seed, record in enumerate(run.records))
        )
        rows = self.collect(one_split, gcn=0.0, sage=0.02)
        assert (rows["sage"]["verdict"], rows["sage"]["over"]) == ("better (one split)", "seeds")
        assert {model: row["top"] for model, row in rows.items()} == {"gcn": "worse", "sage": "best"}

    def test_without_any_baseline(self, run):
        row = self.collect(run, gumbel_mpnn=0.0)["gumbel-mpnn"]
        assert (row["baseline"], row["baseline_difference"], row["top"]) == (None, None, "best")

    def test_only_what_the_pairs_tell_apart_is_worse_than_the_best(self, run):
        rows = self.collect(run, gcn=0.0, sage=0.02, gat=-0.01)
        uneven = with_tests(run, [value + 0.03 * (-1) ** k for k, value in enumerate(EVEN)])
        results = {Job("cora", "sage"): with_tests(run, [v + 0.001 for v in EVEN]), Job("cora", "gcn"): uneven}
        assert {model: row["top"] for model, row in rows.items()} == {"gcn": "worse", "sage": "best", "gat": "worse"}
        assert [row["top"] for row in Accuracy().collect(results)] == ["best", "same"]

    def test_p_values_are_corrected_for_the_number_of_data_sets(self, run):
        """All eight splits are better: p is 2 / 2^8 for one data set, and twice that for each of two."""
        better = with_tests(run, [value + 0.02 for value in EVEN])
        results = {}
        for dataset in ("cora", "actor"):
            results |= {Job(dataset, "gcn"): with_tests(run, EVEN), Job(dataset, "sage"): better}
            rows = [row for row in Accuracy().collect(results) if row["model"] == "sage"]
            assert [row["p"] for row in rows] == [pytest.approx(len(rows) / 2**7)] * len(rows)
            assert {row["verdict"] for row in rows} == {"better"}

    def test_each_data_set_has_its_own_best(self, run):
        results = {Job("cora", "gcn"): with_tests(run, EVEN), Job("actor", "mlp"): with_tests(run, [0.1] * SPLITS)}
        assert [row["top"] for row in Accuracy().collect(results)] == ["best", "best"]

    def test_models_are_compared_with_those_of_the_same_preset(self, run):
        """The tuned GCN is above everything; among the paper's, GraphSAGE is the best baseline and the best."""
        shifts = {("tuned", "gcn"): 0.3, ("paper", "gcn"): 0.0, ("paper", "sage"): 0.02, ("literal", "gcn"): 0.1}
        results = {
            Job("cora", model, preset): with_tests(run, [value + shift for value in EVEN])
            for (preset, model), shift in shifts.items()
        }
        rows = Accuracy().collect(results)
        assert [(row["preset"], row["model"]) for row in rows] == list(shifts)
        assert [row["top"] for row in rows] == ["best", "worse", "best", "best"]
        assert [row["baseline"] for row in rows] == ["gcn", "sage", "sage", "gcn"]
        assert [row["difference"] for row in rows] == [None, None, pytest.approx(2), None]

    def test_p_values_are_not_corrected_for_other_presets(self, run):
        better = with_tests(run, [value + 0.02 for value in EVEN])
        results = {
            Job("cora", model, preset): better if model == "sage" else with_tests(run, EVEN)
            for preset in ("tuned", "paper")
            for model in ("gcn", "sage")
        }
        rows = [row for row in Accuracy().collect(results) if row["model"] == "sage"]
        assert [row["p"] for row in rows] == [pytest.approx(1 / 2**7)] * 2

    def test_the_number_of_each_preset_is_found(self, run):
        rows = Accuracy().collect({Job("cora", "gcn", preset): run for preset in ("tuned", "literal")})
        found = {n.preset: n.find(rows) for n in Accuracy().numbers() if (n.dataset, n.model) == ("cora", "gcn")}
        assert found == {"tuned": rows[0], "paper": None, "literal": rows[1]}

    def test_no_data(self, run):
        (row,) = Accuracy().collect({Job("questions", "sdrf"): None})
        assert (row["test"], row["paper"], row["verdict"], row["top"]) == (None, 57.16, "no data", "")
        rows = Accuracy().collect({Job("cora", "gcn"): None, Job("cora", "mlp"): run})
        assert (rows[1]["difference"], rows[1]["top"], rows[0]["baseline"]) == (None, "best", None)

    def test_the_paper_ran_out_of_time(self):
        (row,) = Accuracy().collect({Job("ogbn-arxiv", "sdrf"): None})
        assert (row["paper"], row["paper_pm"], row["to_paper"]) == (None, None, None)


class TestPage:
    def test_the_best_of_a_line_is_bold_in_the_grid(self, run):
        results = {
            Job("cora", model, preset): with_tests(run, [value + shift for value in EVEN])
            for preset, model, shift in (
                ("tuned", "gcn", 0.0),
                ("tuned", "sage", 0.02),
                ("paper", "gcn", 0.01),
                ("paper", "sage", 0.0),
            )
        }
        table = grid_table(Accuracy().grid, Accuracy().collect(results), Accuracy().all_headings())
        assert (table.columns, table.headings["dataset"]) == (["dataset", "preset", "gcn", "sage"], "data set")
        assert table.rows == [
            ["cora", "tuned", "53.50 ± 0.87", "**55.50** ± 0.87"],
            ["cora", "paper", "**54.50** ± 0.87", "53.50 ± 0.87"],
            ["cora", "published", "87.47 ± 0.12", "87.89 ± 0.13"],
        ]

    def test_lines_of_a_data_set_are_together_and_those_without_a_number_left_out(self, run):
        results = {Job("cora", "gcn"): None, Job("cora", "mlp"): run, Job("actor", "gcn", "paper"): None}
        table = grid_table(Accuracy().grid, Accuracy().collect(results), {})
        assert [line[:2] for line in table.rows] == [["cora", "tuned"], ["cora", "published"], ["actor", "published"]]
        assert [line[2] for line in table.rows] == ["–", "87.47 ± 0.12", "35.21 ± 0.07"]
        assert table.rows[2][3] == "–"
        assert grid_table(Accuracy().grid, [], {}).rows == []

    def test_a_single_run_has_no_error_in_the_grid(self, run):
        """The fault: ± 0.00 stood behind it."""
        rows = Accuracy().collect({Job("cora", "gcn"): replace(run, records=run.records[:1])})
        (_, _, cell), _ = grid_table(Accuracy().grid, rows, {}).rows
        assert cell.count("±") == 0
        assert cell.strip("*") == f"{100 * run.records[0].test:.2f}"

    def test_the_budget_is_named(self, run):
        results = {Job("cora", "gcn"): run, Job("roman-empire", "sdrf"): run, Job("roman-empire", "mlp"): run}
        controls = Accuracy().remarks({Job("cora", "frozen"): run, Job("actor", "random"): run}, [])
        assert "the Gumbel-MPNN's preset, not searched for this model: frozen on cora; random on actor" in controls
        remarks = Accuracy().remarks(results, [])
        assert "- random search on validation, ten splits, one seed: gcn on cora\n" in remarks
        assert "- the GCN's preset, not searched for this model: sdrf on roman-empire\n" in remarks
        assert remarks.endswith("- no preset: the package's defaults: mlp on roman-empire")
        assert Accuracy().remarks({Job("cora", "gcn"): None}, []) == ""
        assert [row["tried"] for row in Accuracy().collect(results)] == [16, None, None]
        searched = Accuracy().remarks({Job("cora", "gcn", "paper", "paper"): run}, [])
        assert "Settings tried" not in searched  # only tuned settings were searched for

    def test_models_that_chose_the_readings_are_counted_apart(self, run):
        """The paper has 87.47 for the GCN, 87.93 for DropEdge and 87.95 for Gumbel-MPNN on cora, and 35.21 on actor."""
        tests = {
            ("cora", "gcn", "paper"): 88.97,
            ("actor", "gcn", "paper"): 36.72,
            ("cora", "drop-edge", "paper"): 89.5,
            ("cora", "gumbel-mpnn", "paper"): 86.5,
            ("cora", "gumbel-mpnn", "literal"): 80.0,
        }
        results = {Job(*key, "paper"): with_tests(run, [test / 100] * SPLITS) for key, test in tests.items()}
        tuned = {Job("cora", "mlp", experiment="backbones"): run, Job("cora", "sage", "paper", "paper"): None}
        text, _, _ = Accuracy().remarks({**results, **tuned}, []).partition("Settings tried")
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"]
        assert lines[0] == ["preset", "models", "numbers", "within 1.5 points"]
        assert lines[2:] == [
            ["paper", "plain models, which chose the readings", "2", "1"],
            ["paper", "other models, which test them", "2", "1"],
            ["literal", "other models, which test them", "1", "0"],
        ]

    def test_all_of_it_is_on_the_page(self, run):
        rows = Accuracy().collect({Job("cora", "gcn"): run})
        page = Reproduction(Accuracy(), rows, [run], remarks="Settings tried.").markdown(Path("page.md"))
        assert page.index("**") < page.index("| data set | preset | model | test % |") < page.index("Settings tried.")
        assert Accuracy().grid.caption in page
