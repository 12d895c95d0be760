"""`find`: what `fit` would give, if nothing of it is left to train."""

import pytest

from gumbel_mpnn.util.errors import MissingDataError
from helpers import changed, small_data
from quick_fit import figures, find, fit

QUICK = {"preset": None, "overrides": ["model.hidden_channels=4", "train.epochs=1"], "experiment": "here"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two splits with two seeds each."""
    folder = tmp_path_factory.mktemp("runs")
    return folder, fit(small_data(), "gcn", seeds=2, runs=folder, device="cpu", **QUICK)


def test_the_same_run(store):
    folder, run = store
    found = find(small_data(), "gcn", seeds=2, runs=folder, **QUICK)
    assert figures(found) == figures(run)
    assert (found.settings, found.metric, found.folders) == (run.settings, run.metric, run.folders)
    assert found.predict() == run.predict()


def test_some_of_it(store):
    folder, run = store
    assert figures(find(small_data(), "gcn", splits=[1], runs=folder, **QUICK)) == figures(run)[2:3]


def test_tables_of_settings(tmp_path):
    tables = {"model": {"hidden_channels": 4}, "train": {"epochs": 1}}
    run = fit(small_data(), "gcn", preset=None, settings=tables, runs=tmp_path, device="cpu")
    assert figures(find(small_data(), "gcn", preset=None, settings=tables, runs=tmp_path)) == figures(run)
    assert find(small_data(), "gcn", preset=None, runs=tmp_path) is None


@pytest.mark.parametrize(
    "change",
    [{"seeds": 3}, {"overrides": ["train.epochs=2"]}, {"experiment": "there"}],
    ids=lambda change: next(iter(change)),
)
def test_nothing_where_something_is_left_to_train(store, change):
    folder, _ = store
    assert find(small_data(), "gcn", runs=folder, **{"seeds": 2, **QUICK, **change}) is None


def test_other_data_are_other_runs(store):
    folder, _ = store
    assert find(small_data(seed=1), "gcn", runs=folder, **QUICK) is None
    assert find(small_data(), "gcn", runs=folder, transform=lambda data: changed(data, x=-data.x), **QUICK) is None


def test_nothing_is_written(tmp_path):
    assert find(small_data(), "gcn", runs=tmp_path / "none", **QUICK) is None
    assert list(tmp_path.iterdir()) == []


def test_missing_data(tmp_path, no_data_sets):
    (tmp_path / "data").mkdir()
    with pytest.raises(MissingDataError, match="cora"):
        find("cora", "gcn", runs=tmp_path / "runs", root=tmp_path / "data")
