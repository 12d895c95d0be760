"""`gm.runs(folder)`: the table of finished runs, and settings found by their fingerprint."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

import gumbel_mpnn as gm
from gumbel_mpnn.runs import find_setting
from gumbel_mpnn.util.errors import DataWarning, UserError
from quick_fit import TABLES, quick

pytestmark = pytest.mark.filterwarnings("ignore::gumbel_mpnn.util.errors.DataWarning")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two settings: two splits with two seeds each, and one run of another experiment."""
    runs = tmp_path_factory.mktemp("runs")
    wide = {**TABLES, "model": {"hidden_channels": 16}}
    return quick(runs=runs, seeds=2), quick(runs=runs, settings=wide, splits=[0], experiment="tune")


@pytest.fixture
def runs(trained, tmp_path):
    return shutil.copytree(trained[0].folder.path.parents[3], tmp_path / "runs")


def test_a_row_for_each_run(runs, trained):
    table, (gcn, trial) = gm.runs(runs), trained
    assert len(table) == 5
    mine = table.query("experiment == 'train'")
    assert list(zip(mine.split, mine.seed, strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert list(mine.test) == [record.test for record in gcn.records]
    assert set(mine["model.hidden_channels"]) == {8}
    assert table.query("`model.hidden_channels` == 16").val.tolist() == [trial.val.mean]
    for name in ("folder", "dataset", "model", "metric", "best_epoch", "epochs", "seconds", "device", "train.lr"):
        assert table[name].notna().all(), name


def test_a_row_for_each_setting(runs, trained):
    table, (gcn, _) = gm.runs(runs, by="setting"), trained
    (row,) = table.query("experiment == 'train'").to_dict("records")
    assert (row["n"], row["folder"]) == (4, str(runs / "train/own/gcn" / gcn.records[0].fingerprint))
    assert (row["test"], row["std"], row["stderr"]) == pytest.approx((gcn.test.mean, gcn.test.std, gcn.test.stderr))
    assert (row["val"], row["seconds"]) == pytest.approx((gcn.val.mean, gcn.seconds))


def test_test_results_of_trials_are_shown_on_request(runs, trained):
    for by in ("run", "setting"):
        assert np.isnan(gm.runs(runs, by).query("experiment == 'tune'").test.item())
    assert gm.runs(runs, tests_of_trials=True).query("experiment == 'tune'").test.item() == trained[1].test.mean


def test_a_damaged_record_hides_no_other(runs):
    next((runs / "train").rglob("split0-seed1/record.json")).write_text("{")
    with pytest.warns(DataWarning, match=r"a run is left out: cannot read the run record .*split0-seed1"):
        assert len(gm.runs(runs)) == 4


def test_a_copy_is_listed_once(runs, trained):
    setting = runs / trained[0].folder.path.relative_to(trained[0].folder.path.parents[3])
    shutil.copytree(setting, setting.with_name("copy"))
    with pytest.warns(DataWarning, match="is a copy of"):
        assert len(gm.runs(runs)) == 5


def test_no_runs(tmp_path):
    for by in ("run", "setting"):
        assert gm.runs(tmp_path / "none", by).empty


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


def test_a_list_needs_no_torch(runs):
    code = f"import sys, gumbel_mpnn as gm; print(len(gm.runs({str(runs)!r})), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "5 False\n"
