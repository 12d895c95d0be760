"""Runs without test nodes or without validation nodes, and runs on every labelled node."""

import json
import math
from dataclasses import replace

import pytest
import torch

import gumbel_mpnn as gm
from gumbel_mpnn.report import run_table
from gumbel_mpnn.runs.compare import compare
from gumbel_mpnn.runs.fit import final_spec
from gumbel_mpnn.runs.session import Session
from gumbel_mpnn.util.errors import DataError, UserError
from helpers import changed, small_data
from quick_fit import TABLES, history, quick, resolved

LAST = {**TABLES, "train": {**TABLES["train"], "select": "last"}}


def strict(text):
    """JSON that has no NaN."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


@pytest.fixture(scope="module")
def run():
    """Runs without a test mask."""
    return quick(changed(small_data(), test_mask=None))


@pytest.fixture(scope="module")
def tested():
    """The same runs with one."""
    return quick()


class TestWithoutTestNodes:
    def test_training_and_validation_are_as_with_them(self, run, tested):
        assert [record.val for record in run.records] == [record.val for record in tested.records]
        assert torch.equal(run.predict_proba(), tested.predict_proba())

    def test_there_is_no_test_result(self, run):
        assert [record.test for record in run.records] == [None, None]
        assert (run.test.n, run.val.n) == (0, 2)
        assert math.isnan(run.test.mean)
        record = (run.folder.folder(run.records[0].replica) / "record.json").read_text()
        assert strict(record)["test"] is None
        assert strict(json.dumps(run.to_dict()))["test"] == {"mean": None, "std": None, "stderr": None}

    def test_tables_have_a_dash(self, run):
        (row,) = strict(run_table([run]).render("json"))
        assert (row["test"], row["std"], row["stderr"]) == (None, None, None)
        assert row["val"] == pytest.approx(run.val.mean)
        assert run_table([run]).render("text").splitlines()[-1].count("–") == 3

    def test_nothing_to_compare(self, run, tested):
        with pytest.raises(UserError, match="these runs have no test results to compare"):
            compare(run.records, run.records)
        with pytest.raises(UserError, match=r"no validation results to compare: .* with validation nodes"):
            compare([replace(run.records[0], val=None)], run.records, "val")
        mixed = [tested.records[0], replace(tested.records[1], test=None)]
        assert compare(mixed, tested.records).n == 1

    def test_scores_need_test_nodes(self, run, tested):
        assert run.scores(small_data()) == [record.test for record in tested.records]
        assert all(map(math.isnan, run.scores(run.data)))

    def test_a_split_without_test_nodes_beside_one_with_them(self):
        data = small_data()
        data.test_mask[:, 0] = False
        run = quick(data)
        assert [record.test is None for record in run.records] == [True, False]
        assert run.test.mean == run.records[1].test


class TestWithoutValidationNodes:
    def test_the_last_epoch_is_kept(self):
        data = small_data()
        run, other = quick(changed(data, val_mask=None), settings=LAST), quick(data, settings=LAST)
        assert [(r.val, r.test, r.best_epoch) for r in run.records] == [(None, r.test, 6) for r in other.records]
        assert torch.equal(run.predict_proba(), other.predict_proba())
        rows = history(run, run.records[0])
        assert [row["val"] for row in rows] == [row["val_loss"] for row in rows] == [None] * 6
        assert all(math.isfinite(row["train_loss"]) for row in rows)

    def test_beside_a_split_with_validation_nodes(self):
        data = small_data()
        data.val_mask[:, 0] = False
        run = quick(data, settings=LAST)
        assert [record.val is None for record in run.records] == [True, False]
        assert run.val.n == 1

    def test_diverged_training_is_noticed(self):
        settings = {**LAST, "train": {**LAST["train"], "lr": 1e30}}
        with pytest.raises(gm.UserError, match="training diverged"):
            quick(changed(small_data(), val_mask=None, test_mask=None), settings=settings)

    def test_auto_needs_them(self):
        with pytest.raises(UserError, match="model 'auto' chooses on validation"):
            gm.fit(small_data(), "auto", settings={"data": {"protocol": "all"}, "train": {"select": "last"}})

    def test_auto_does_not_need_them_in_splits_that_are_not_asked_for(self):
        data = small_data()
        data.val_mask[:, 1] = False
        run = gm.fit(data, "auto", splits=[0], settings={"train": {"epochs": 2}}, device="cpu")
        assert [record.split for record in run.records] == [0]


class TestProtocols:
    def test_final(self):
        run = quick(settings={**TABLES, "data": {"protocol": "final"}})
        assert run.n == 10
        assert (run.data.train_mask | run.data.val_mask).all()
        # Of the eight nodes of each class, seven train: 0.9 · 8 = 7.2.
        assert run.data.train_mask.sum(0).tolist() == [21] * 10
        assert (run.test.n, run.val.n) == (0, 10)

    def test_all_needs_the_last_epoch(self):
        with pytest.raises(DataError, match="the validation mask of split 0 is empty"):
            quick(settings={**TABLES, "data": {"protocol": "all"}})
        run = quick(settings={**LAST, "data": {"protocol": "all"}})
        assert run.n == 1
        assert run.data.train_mask.all()


class TestFinalSpec:
    def test_settings_and_epochs_of_finished_runs(self):
        run = quick(model="gumbel-mpnn", settings={**TABLES, "rewiring": {"scorer": "bilinear", "keep": 0.8}})
        records = [replace(run.records[0], best_epoch=epoch) for epoch in (2, 5, 4)]
        settings = final_spec(small_data(), records).settings
        assert settings.train == replace(run.settings.train, epochs=4, select="last", patience=0)
        assert settings.data == replace(run.settings.data, protocol="all")
        assert (settings.model, settings.options) == (run.settings.model, run.settings.options)
        assert settings.rewiring == run.settings.rewiring

    def test_it_trains_on_every_node_for_that_long(self, tmp_path):
        run = quick()
        spec = final_spec(small_data(), run.records, seeds=2, overrides=["model.dropout=0.1"])
        final = Session(tmp_path, device="cpu").fit(spec)
        epochs = round(sum(record.best_epoch for record in run.records) / 2)
        assert [(r.seed, r.val, r.test, r.epochs) for r in final.records] == [(k, None, None, epochs) for k in (0, 1)]
        assert final.data.train_mask.all()
        assert final.settings.options["dropout"] == 0.1
        assert torch.isfinite(final.predict_proba()).all()

    def test_component_options_travel(self):
        options = {"regularizer": "inter-class", "regularizer.weight": 0.1, "regularizer.margin": 0.25}
        settings = resolved(small_data(), "gumbel-mpnn", settings={**TABLES, "rewiring": options})
        record = replace(quick().records[0], settings=settings.to_dict())
        assert final_spec(small_data(), [record]).settings.rewiring == settings.rewiring

    def test_what_it_refuses(self):
        run = quick()
        other = replace(run.records[0], fingerprint="0" * 16)
        with pytest.raises(UserError, match="finished runs of one setting"):
            final_spec(small_data(), [*run.records, other])
        with pytest.raises(UserError, match=r"train.epochs follows from the finished runs: leave it out"):
            final_spec(small_data(), run.records, overrides=["train.epochs=3"])
