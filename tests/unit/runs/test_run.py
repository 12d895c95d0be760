"""How a run is printed, how it looks in a notebook, and its training curves."""

import json
import re
from dataclasses import replace

import pandas as pd
import pytest
import torch

from gumbel_mpnn.runs.choice import Candidate, Choice
from gumbel_mpnn.util.errors import DataError
from helpers import changed, small_data
from quick_fit import quick


@pytest.fixture(scope="module")
def run():
    return quick()


@pytest.fixture(scope="module")
def rewired():
    return quick(model="gumbel-mpnn", splits=[0])


def with_figures(run, *pairs):
    """The run with other (validation, test) figures."""
    records = [replace(run.records[0], val=val, test=test) for val, test in pairs]
    return replace(run, records=tuple(records))


CHOICE = Choice(
    chosen="gcn",
    best_plain="gcn",
    gain=0.0,
    gain_error=0.0,
    rungs=(
        Candidate("mlp", "features & nothing", True, None, None, None, 0, None),
        Candidate("gcn", "given edges", True, 0.75, 0.0, 0.0, 2, 1),
        Candidate("free", "all <b>edges</b>", False, 0.5, 0.25, 0.125, 1, None),
    ),
    learned="gumbel-mpnn",
    runs=("split0-seed0", "split1-seed0"),
)


class TestText:
    def test_three_lines(self, run):
        # Test: mean .6, deviation .1 · √2, error .1. Validation: mean .75, error .05.
        assert repr(with_figures(run, (0.7, 0.5), (0.8, 0.7))).splitlines() == [
            "gcn on own: 2 runs, metric accuracy",
            "test 60.00 ± 10.00 %, validation 75.00 ± 5.00 % (mean ± standard error)",
            "next: run.predict(), run.plot(), run.history",
        ]

    def test_one_run_has_no_error(self, rewired):
        assert repr(with_figures(rewired, (0.75, 0.5))).splitlines() == [
            "gumbel-mpnn on own: 1 run, metric accuracy",
            "test 50.00 %, validation 75.00 %",
            "next: run.predict(), run.rewire(), run.plot(), run.history",
        ]

    def test_the_choice_of_auto(self, run):
        first, _, last = repr(replace(run, choice=CHOICE)).splitlines()
        assert first == "auto: gcn on own: 2 runs, metric accuracy"
        assert last == "auto: no rewiring needed: gcn has the best validation value"

    def test_nothing_to_test_on(self, run):
        nothing = with_figures(run, (0.75, float("nan")))
        assert repr(nothing).splitlines()[1] == "test –, validation 75.00 %"
        assert "<td>test</td>" not in nothing._repr_html_()


def cells(page):
    """Texts of the cells of the tables in a page, row by row."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page, re.DOTALL)
    return [re.findall(r"<t[dh]>(.*?)</t[dh]>", row) for row in rows]


class TestHtml:
    def test_the_table(self, run):
        assert cells(with_figures(run, (0.7, 0.5), (0.8, 0.7))._repr_html_()) == [
            ["%", "mean", "std", "stderr", "runs"],
            ["test", "60.00", "14.14", "10.00", "2"],
            ["validation", "75.00", "7.07", "5.00", "2"],
        ]

    def test_one_run_has_no_deviation(self, run):
        assert cells(with_figures(run, (0.7, 0.5))._repr_html_())[1] == ["test", "50.00", "–", "–", "1"]

    def test_the_rungs_of_auto(self, run):
        page = replace(run, choice=CHOICE)._repr_html_()
        assert "no rewiring needed: gcn has the best validation value" in page
        assert cells(page)[-3:] == [
            ["mlp", "features &amp; nothing", "True", "–", "–", "–", "0"],
            ["gcn", "given edges", "True", "75.00", "0.00", "0.00", "2"],
            ["free", "all &lt;b&gt;edges&lt;/b&gt;", "False", "50.00", "25.00", "12.50", "1"],
        ]

    def test_names_are_not_markup(self, run):
        page = replace(run, settings=replace(run.settings, dataset="<script>alert(1)</script>"))._repr_html_()
        assert "<script>" not in page
        assert "&lt;script&gt;" in page


class TestHistory:
    def test_all_runs(self, run):
        history = run.history
        assert list(history.columns) == ["split", "seed", "epoch", "train_loss", "val", "val_loss"]
        assert history[["split", "seed", "epoch"]].values.tolist() == [[s, 0, e] for s in (0, 1) for e in range(1, 7)]
        for record in run.records:
            mine = history[history.split == record.split].set_index("epoch")
            assert mine.val.max() == mine.val[record.best_epoch] == record.val

    def test_the_numbers_are_those_of_the_files(self, run):
        *lines, _checksum = (run.folder.path / "split1-seed0" / "history.jsonl").read_text().splitlines()
        mine = run.history.query("split == 1").drop(columns=["split", "seed"]).reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, pd.DataFrame([json.loads(line) for line in lines]))

    def test_missing_files(self, tmp_path):
        run = quick(runs=tmp_path)
        (run.folder.path / "split0-seed0" / "history.jsonl").unlink()
        with pytest.raises(DataError, match=r"there is no .*split0-seed0.* any more: delete its folder"):
            _ = run.history

    @pytest.mark.parametrize("content", ['{"epoch": 1', "3"])
    def test_a_damaged_file(self, tmp_path, content):
        run = quick(runs=tmp_path)
        (run.folder.path / "split1-seed0" / "history.jsonl").write_text(content)
        with pytest.raises(DataError, match=r"cannot read the curve .*split1-seed0.*; delete its folder"):
            _ = run.history


class TestConfusionMatrix:
    def test_counts_of_each_run_on_its_own_test_nodes(self, run):
        """The diagonal is what the test accuracy counts, and a row has every test node of its class."""
        matrix, data = run.confusion_matrix(), run.data
        right = sum(round(record.test * int(data.test_mask[:, record.split].sum())) for record in run.records)
        assert int(matrix.trace()) == right
        of_class = [int((data.test_mask & (data.y == label)[:, None]).sum()) for label in range(3)]
        assert matrix.sum(1).tolist() == of_class

    def test_rows_are_true_classes(self):
        """Features tell class 0 from class 1, but every test node of class 1 looks like one of class 0."""
        x = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(6, 1)
        part = torch.arange(12) // 4
        x[9::2] = x[8]
        data = changed(
            small_data(12, classes=2, splits=1),
            x=x,
            train_mask=part == 0,
            val_mask=part == 1,
            test_mask=part == 2,
        )
        tables = {"model": {"hidden_channels": 8, "dropout": 0.0}, "train": {"lr": 0.1, "epochs": 20}}
        assert quick(data, "mlp", settings=tables).confusion_matrix().tolist() == [[2, 0], [2, 0]]


@pytest.mark.parametrize(("model", "rewires"), [("mlp", False), ("gcn", False), ("sdrf", True), ("gumbel-mpnn", True)])
def test_which_models_rewire(run, rewired, model, rewires):
    settings = replace((rewired if model == "gumbel-mpnn" else run).settings, model=model)
    assert replace(run, settings=settings).rewires is rewires
