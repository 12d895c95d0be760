"""Fixtures of the experiments: finished runs, and small data sets in the place of the published ones."""

import pytest
from made_runs import SPLITS, fit

from gumbel_mpnn.data import specs
from helpers import generated, small_data


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """Runs of eight splits of a plain model."""
    return fit(small_data(splits=SPLITS), runs=tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="session")
def rewired(tmp_path_factory):
    """Runs of eight splits of Gumbel-MPNN."""
    return fit(small_data(splits=SPLITS), "gumbel-mpnn", runs=tmp_path_factory.mktemp("rewired"))


@pytest.fixture
def small(monkeypatch):
    """Puts a small graph in the place of each of these data sets."""

    def put(*names, make=small_data):
        for name in names:
            monkeypatch.setitem(specs, name, generated(name, make))

    return put


@pytest.fixture
def folder(no_data_sets, tmp_path, monkeypatch):
    """An empty working folder, where no data files are found."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
