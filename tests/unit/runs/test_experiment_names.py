"""Names of experiments and of data sets, which are folders among the runs: found everywhere, or refused."""

import pytest

from gumbel_mpnn.runs import load_run
from gumbel_mpnn.runs.query.index import RunIndex
from gumbel_mpnn.runs.record import find_records
from gumbel_mpnn.util.errors import UserError
from helpers import small_data
from quick_fit import quick

FINGERPRINT = "0123456789abcdef"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/tmp", ".hid", FINGERPRINT, "a\nb", "a\0b"])
def test_experiments_that_would_not_be_found_are_refused(tmp_path, name):
    with pytest.raises(UserError, match="experiment must"):
        quick(runs=tmp_path / "runs", experiment=name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.b", "tune", "ä ö", "-", FINGERPRINT[:15], FINGERPRINT + "0", "split0-seed0"])
def test_other_experiments_are_found(tmp_path, name):
    run = quick(runs=tmp_path, splits=[0], experiment=name)
    check_found(tmp_path, run)
    assert RunIndex(tmp_path).settings()[0].experiment == name


@pytest.mark.parametrize("name", [FINGERPRINT, ".hid", "..", "a/b", f".{FINGERPRINT}"])
def test_every_name_of_a_data_set_is_found(tmp_path, name):
    data = small_data()
    data.name = name
    check_found(tmp_path, quick(data, runs=tmp_path, splits=[0]))


@pytest.mark.parametrize("name", [FINGERPRINT, ".hid"])
def test_every_name_of_the_folder_of_runs_is_found(tmp_path, name):
    check_found(tmp_path / name, quick(runs=tmp_path / name, splits=[0]))


def check_found(root, run):
    (row,) = RunIndex(root).settings()
    assert row.path == run.folder.path
    assert row.n == len(list(find_records(root))) == 1
    assert load_run(row.fingerprint, runs=root, data=small_data()).records == run.records
    assert [each.n for each in RunIndex(run.folder.path).settings()] == [1]
