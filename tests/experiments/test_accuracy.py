"""The main table, the plain models and the ablation: rows worked out by hand."""

import pytest
from made_runs import EVEN, SPLITS, scoring, shifted

from experiments import Job
from experiments.paper.ablation import Ablation
from experiments.paper.accuracy import Accuracy
from quick_fit import resolved


def settings_of(job):
    return resolved(job.dataset, job.model, preset=job.preset, overrides=job.overrides)


class TestRows:
    def collect(self, run, **shifts):
        """Rows by model, each better than the GCN by a shift on every split."""
        results = {Job("cora", model.replace("_", "-")): shifted(run, shift) for model, shift in shifts.items()}
        return {row["model"]: row for row in Accuracy().collect(results)}

    def test_ours_the_papers_and_the_difference_to_the_gcn(self, run):
        rows = self.collect(run, gcn=0.0, gumbel_mpnn=0.02)
        row = rows["gumbel-mpnn"]
        assert (row["test"], row["paper"], row["paper_pm"]) == (pytest.approx(55.5), 87.95, 0.10)
        assert row["to_paper"] == pytest.approx(55.5 - 87.95)
        assert [row[name] for name in ("difference", "low", "high")] == [pytest.approx(2)] * 3
        assert (row["verdict"], row["n"], row["epochs"], row["tried"]) == ("better", SPLITS, 1, 16)
        assert (rows["gcn"]["difference"], rows["gcn"]["verdict"]) == (None, None)

    def test_only_what_the_pairs_tell_apart_is_worse_than_the_best(self, run):
        rows = self.collect(run, gcn=0.0, sage=0.02, gat=-0.01)
        assert {model: row["top"] for model, row in rows.items()} == {"gcn": "worse", "sage": "best", "gat": "worse"}
        uneven = scoring(run, [value + 0.03 * (-1) ** k for k, value in enumerate(EVEN)])
        results = {Job("cora", "sage"): shifted(run, 0.001), Job("cora", "gcn"): uneven}
        assert [row["top"] for row in Accuracy().collect(results)] == ["best", "same"]

    def test_models_are_compared_with_those_of_the_same_preset(self, run):
        """The tuned GCN is above everything; among the paper's, GraphSAGE is the best baseline and the best."""
        shifts = {("tuned", "gcn"): 0.3, ("paper", "gcn"): 0.0, ("paper", "sage"): 0.02, ("literal", "gcn"): 0.1}
        rows = Accuracy().collect(
            {Job("cora", m, preset): shifted(run, shift) for (preset, m), shift in shifts.items()}
        )
        assert [(row["preset"], row["model"]) for row in rows] == list(shifts)
        assert [row["top"] for row in rows] == ["best", "worse", "best", "best"]
        assert [row["baseline"] for row in rows] == ["gcn", "sage", "sage", "gcn"]
        assert [row["difference"] for row in rows] == [None, None, pytest.approx(2), None]


class TestAblation:
    def test_the_regularizer_is_all_that_differs(self):
        without, with_ = (settings_of(job).to_dict() for job in Ablation().plan()[:2])
        assert (with_["rewiring"]["regularizer.weight"], without["rewiring"]["regularizer"]) == (0.05, "none")
        for settings in (without, with_):
            settings["rewiring"] = {k: v for k, v in settings["rewiring"].items() if not k.startswith("regularizer")}
        assert without == with_

    def test_each_preset_and_each_regularizer_has_its_row(self, rewired):
        """The runs without a regularizer are those of the same preset, and p is corrected within it: four and one."""
        plan = [job for job in Ablation().plan() if job.dataset == "chameleon-unfiltered"]
        shifts = (0.0, 0.01, 0.02, 0.03, 0.04, 0.2, 0.25)
        rows = Ablation().collect({job: shifted(rewired, s) for job, s in zip(plan[:7], shifts, strict=True)})
        assert [row["preset"] for row in rows] == ["paper"] * 4 + ["literal"]
        assert [row["difference"] for row in rows] == [pytest.approx(each) for each in (1, 2, 3, 4, 5)]
        assert [row["p"] for row in rows] == [pytest.approx(4 / 2**7)] * 4 + [pytest.approx(1 / 2**7)]
        numbers = [n for n in Ablation().numbers() if n.dataset == "chameleon-unfiltered"]
        assert [(n.value, n.find(rows)["without"]) for n in numbers] == [
            (57.26, pytest.approx(53.5)),
            (57.26, pytest.approx(73.5)),
        ]
