"""Records and summaries, by hand; lists of runs, and settings found by their fingerprint."""

import json
import math
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

import gumbel_mpnn as gm
from gumbel_mpnn.runs.spec import Job
from gumbel_mpnn.runs.store import Record, Summary, find_records, find_setting
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import train
from gumbel_mpnn.util.errors import DataWarning, UserError
from helpers import changed, make_settings, make_task, replicas, small_data
from quick_fit import TABLES, quick

pytestmark = pytest.mark.filterwarnings("ignore::gumbel_mpnn.util.errors.DataWarning")
FINGERPRINT = "0123456789abcdef"
NAMES = {"split0-seed0": Replica(0, 0), "split12-seed345": Replica(12, 345), "split1-seed-2": Replica(1, -2)}


class TestSummary:
    def test_two_values(self):
        summary = Summary.of([0.5, 0.7])
        assert summary.mean == pytest.approx(0.6)
        assert summary.std == pytest.approx(math.sqrt(0.02))
        assert summary.stderr == pytest.approx(0.1)
        assert summary.n == 2
        assert str(summary) == "60.00 ± 14.14 (std of 2)"

    def test_a_single_value_has_no_spread_and_what_is_missing_is_left_out(self):
        assert Summary.of([None, 0.25, math.nan]) == Summary.of([0.25]) == Summary(mean=0.25, std=0.0, stderr=0.0, n=1)

    def test_no_values_have_no_mean(self):
        summary = Summary.of([None, None])
        assert (summary.n, str(summary)) == (0, "–")
        assert math.isnan(summary.mean)
        assert summary.to_dict() == {"mean": None, "std": None, "stderr": None}


class TestReplicas:
    @pytest.mark.parametrize("name", NAMES)
    def test_the_name_reads_back(self, name):
        assert str(NAMES[name]) == name
        assert Replica.parse(name) == NAMES[name]

    @pytest.mark.parametrize("name", ["", "split0", "0-seed0", "split0-seed", "split0-seed0.tmp", "split-1-seed0"])
    def test_another_name_is_refused(self, name):
        with pytest.raises(ValueError, match="is not the name of a replica"):
            Replica.parse(name)

    def test_every_split_and_seed_has_a_stream_of_its_own(self):
        every = [Replica(split, seed) for split in range(100) for seed in range(10)]
        assert len({replica.stream_seed for replica in every}) == len(every)


def test_a_record_says_what_the_outcome_was_and_survives_json():
    settings = make_settings(epochs=3)
    (outcome,) = train(make_task(), settings, replicas((1, 4)))
    record = Record.of(outcome, Job(settings, small_data(), "abc", []), "accuracy", torch.device("cpu"))
    assert record.fingerprint == settings.fingerprint("abc")
    assert (record.data_hash, record.metric) == ("abc", "accuracy")
    assert (record.split, record.seed) == (1, 4)
    assert (record.val, record.test) == (outcome.val, outcome.test)
    assert (record.best_epoch, record.epochs, record.seconds) == (outcome.best_epoch, 3, outcome.seconds)
    assert record.settings == settings.to_dict()
    assert record.machine["device"].startswith("cpu (")
    assert (record.machine["torch"], record.machine["gumbel_mpnn"]) == (torch.__version__, gm.__version__)
    assert Record(**json.loads(json.dumps(record.to_dict()))) == record


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two settings: two splits with two seeds each, and one run of another experiment."""
    runs = tmp_path_factory.mktemp("runs")
    wide = {**TABLES, "model": {"hidden_channels": 16}}
    return quick(runs=runs, seeds=2), quick(runs=runs, settings=wide, splits=[0], experiment="tune")


@pytest.fixture
def runs(trained, tmp_path):
    return shutil.copytree(trained[0].folder.path.parents[3], tmp_path / "runs")


class TestLists:
    def test_a_row_for_each_run(self, runs, trained):
        table, (gcn, trial) = gm.runs(runs), trained
        assert len(table) == 5
        mine = table.query("experiment == 'train'")
        assert list(zip(mine.split, mine.seed, strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert list(mine.test) == [record.test for record in gcn.records]
        assert set(mine["model.hidden_channels"]) == {8}
        assert table.query("`model.hidden_channels` == 16").val.tolist() == [trial.val.mean]
        for name in ("folder", "dataset", "model", "metric", "best_epoch", "epochs", "seconds", "device", "train.lr"):
            assert table[name].notna().all(), name

    def test_a_row_for_each_setting(self, runs, trained):
        table, (gcn, _) = gm.runs(runs, by="setting"), trained
        (row,) = table.query("experiment == 'train'").to_dict("records")
        assert (row["n"], row["folder"]) == (4, str(runs / "train/own/gcn" / gcn.records[0].fingerprint))
        assert (row["test"], row["std"], row["stderr"]) == pytest.approx((gcn.test.mean, gcn.test.std, gcn.test.stderr))
        assert (row["val"], row["seconds"]) == pytest.approx((gcn.val.mean, gcn.seconds))

    def test_test_results_of_trials_are_shown_on_request(self, runs, trained):
        for by in ("run", "setting"):
            assert np.isnan(gm.runs(runs, by).query("experiment == 'tune'").test.item())
        assert gm.runs(runs, tests_of_trials=True).query("experiment == 'tune'").test.item() == trained[1].test.mean

    def test_a_damaged_record_hides_no_other(self, runs):
        next((runs / "train").rglob("split0-seed1/record.json")).write_text("{")
        with pytest.warns(DataWarning, match=r"a run is left out: cannot read the run record .*split0-seed1"):
            assert len(gm.runs(runs)) == 4

    def test_no_runs(self, tmp_path):
        for by in ("run", "setting"):
            assert gm.runs(tmp_path / "none", by).empty

    def test_they_need_no_torch(self, runs):
        code = f"import sys, gumbel_mpnn as gm; print(len(gm.runs({str(runs)!r})), 'torch' in sys.modules)"
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "5 False\n"


def test_a_setting_by_its_fingerprint(runs, trained):
    first, second = (run.records[0].fingerprint for run in trained)
    path = runs / "train/own/gcn" / first
    assert find_setting(first[:6], runs) == find_setting(path) == path
    shutil.copytree(runs / "train", runs / "again")
    with pytest.raises(UserError, match="ambiguous"):
        find_setting(first, runs)
    with pytest.raises(UserError, match=r"there is no finished run 'gcn' in .*--runs, in Python runs="):
        find_setting("gcn", runs)
    assert second != first


class TestNamesOfFolders:
    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/tmp", ".hid", "a\nb", "a\0b"])
    def test_experiments_that_would_not_be_found_are_refused(self, tmp_path, name):
        with pytest.raises(UserError, match="experiment must"):
            quick(runs=tmp_path / "runs", experiment=name)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("experiment", "dataset", "folder"),
        [
            *[
                (name, "own", "runs")
                for name in ("a.b", "ä ö", "-", FINGERPRINT[:15], FINGERPRINT + "0", "split0-seed0")
            ],
            *[("train", name, "runs") for name in (FINGERPRINT, ".hid", "..", "a/b", f".{FINGERPRINT}")],
            *[("train", "own", name) for name in (FINGERPRINT, ".hid")],
        ],
    )
    def test_others_are_found(self, tmp_path, experiment, dataset, folder):
        data, root = changed(small_data(), name=dataset), tmp_path / folder
        run = quick(data, runs=root, splits=[0], experiment=experiment)
        (row,) = gm.runs(root, by="setting").to_dict("records")
        assert (row["folder"], row["experiment"]) == (str(run.folder.path), experiment)
        assert row["n"] == len(list(find_records(root))) == 1
        assert gm.load_run(row["fingerprint"], runs=root, data=data).records == run.records
        assert len(gm.runs(run.folder.path)) == 1
