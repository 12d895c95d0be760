"""How a run is printed, and its training curves."""

import json
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


class TestText:
    def test_three_lines(self, run):
        # Test: mean .6, deviation .1 · √2. Validation: mean .75, deviation .05 · √2.
        assert repr(with_figures(run, (0.7, 0.5), (0.8, 0.7))).splitlines() == [
            "gcn on own: 2 runs, metric accuracy",
            "test 60.00 ± 14.14 (std of 2), validation 75.00 ± 7.07 (std of 2)",
            "next: run.predict(), run.page('run.html')",
        ]

    def test_one_run_has_no_deviation(self, rewired):
        assert repr(with_figures(rewired, (0.75, 0.5))).splitlines() == [
            "gumbel-mpnn on own: 1 run, metric accuracy",
            "test 50.00 (one run), validation 75.00 (one run)",
            "next: run.predict(), run.rewire(), run.page('run.html')",
        ]
        assert "\ntest –, validation 75.00" in repr(with_figures(rewired, (0.75, float("nan"))))

    def test_the_choice_of_auto(self, run):
        rungs = (Candidate("gcn", "given edges", True, 0.75, 0.0, 0.0, 2, 1),)
        choice = Choice("gcn", "gcn", 0.0, 0.0, rungs, "gumbel-mpnn", ("split0-seed0", "split1-seed0"))
        first, _, last = repr(replace(run, choice=choice)).splitlines()
        assert first == "auto: gcn on own: 2 runs, metric accuracy"
        assert last == "auto: no rewiring needed: gcn has the best validation value"


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

    def test_missing_and_damaged_files(self, tmp_path):
        run = quick(runs=tmp_path)
        path = run.folder.path / "split0-seed0" / "history.jsonl"
        for content in ('{"epoch": 1', "3"):
            path.write_text(content)
            with pytest.raises(DataError, match=r"cannot read the curve .*split0-seed0.*; delete its folder"):
                _ = run.history
        path.unlink()
        with pytest.raises(DataError, match=r"there is no .*split0-seed0.* any more: delete its folder"):
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
