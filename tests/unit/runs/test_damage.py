"""Damage to the files of runs is noticed, named, and never believed."""

import shutil

import pytest

from gumbel_mpnn.runs.run import load_run
from gumbel_mpnn.runs.store import find_records, read_curve, read_learned, read_record
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError
from helpers import small_data
from quick_fit import edit, quick


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a setting with the runs of two splits, each with a learned graph."""
    root = tmp_path_factory.mktemp("damage")
    rewiring = {"candidates": "local", "candidates.per_node": 2}
    settings = {"model": {"hidden_channels": 4}, "train": {"epochs": 2}, "rewiring": rewiring}
    return quick(model="gumbel-mpnn", settings=settings, runs=root, splits=[0, 1]).folder.path


@pytest.fixture
def folder(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "runs/train/own/gumbel-mpnn" / trained.name)


def flips(content, count):
    """The content with one bit flipped, at places spread over all of it."""
    for place in range(0, len(content), max(1, len(content) // count)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        yield place, bytes(flipped)


def read_model(folder):
    state = load_run(folder, data=small_data()).folder.state(read_record(folder / "split0-seed0/record.json").replica)
    return {name: value.tolist() for name, value in state.items()}


def read_graph(folder):
    learned = read_learned([folder / "split0-seed0/graph.safetensors"])
    return learned.graph.pair_index.tolist(), learned.probability.tolist()


READERS = {
    "split0-seed0/record.json": lambda folder: read_record(folder / "split0-seed0/record.json").to_dict(),
    "split0-seed0/history.jsonl": lambda folder: read_curve(folder / "split0-seed0/history.jsonl"),
    "split0-seed0/model.safetensors": read_model,
    "split0-seed0/graph.safetensors": read_graph,
    "data.json": lambda folder: load_run(folder, data=small_data()).trained_on.facts,
}
"""How each file of runs is read."""


@pytest.mark.parametrize("name", READERS)
@pytest.mark.filterwarnings("ignore::gumbel_mpnn.util.errors.DataWarning")
def test_a_flipped_bit_is_told_with_the_name_of_the_file(folder, name):
    """Or it is in the name of the checksum or in a gap of the file, and what is read is what was written."""
    path, read = folder / name, READERS[name]
    content, whole = path.read_bytes(), read(folder)
    told = 0
    for place, flipped in flips(content, 150):
        path.write_bytes(flipped)
        try:
            assert read(folder) == whole, place
        except DataError as error:
            assert str(path) in str(error)  # noqa: PT017
            told += 1
    assert told > 100


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"split": 1}, "it belongs into a folder .*/split1-seed0"),
        ({"seed": 3}, "it belongs into a folder .*/split0-seed3"),
        ({"fingerprint": "0123456789abcdef"}, "it belongs into a folder 0123456789abcdef/split0-seed0"),
    ],
    ids=str,
)
def test_a_record_that_does_not_fit_is_named_and_left_out(folder, entries, message):
    path = folder / "split0-seed0/record.json"
    edit(path, **entries)
    expected = rf"cannot read the run record {path}: {message}.*; delete its folder to do the run again$"
    with pytest.raises(DataError, match=expected):
        read_record(path)
    with pytest.warns(DataWarning, match=f"a run is left out: cannot read the run record {path}"):
        assert [record.split for record in find_records(folder)] == [1]


def test_json_that_is_nested_too_deeply(folder):
    path = folder / "split0-seed0/record.json"
    path.write_text("[" * 100_000)
    with pytest.raises(DataError, match=f"cannot read the run record {path}: its brackets are nested too deeply"):
        read_record(path)
    (folder / "data.json").write_text('{"a":' * 100_000)
    with pytest.raises(DataError, match="nested too deeply"):
        load_run(folder / "split1-seed0", data=small_data())


class TestCopies:
    """A record counts in the folder that it was written to."""

    @pytest.mark.parametrize("name", ["split0-seed0 (copy)", "backup/split0-seed0"])
    def test_of_a_run(self, folder, name):
        shutil.copytree(folder / "split0-seed0", folder / name)
        with pytest.warns(DataWarning, match="a run is left out: .* it belongs into a folder"):
            assert len(list(find_records(folder))) == 2

    def test_of_a_setting(self, folder):
        shutil.copytree(folder, folder.with_name(f"{folder.name}.bak"))
        with pytest.warns(DataWarning, match="a run is left out"):
            assert load_run(folder.parent, data=small_data()).n == 2

    def test_another_experiment_is_no_copy(self, folder):
        train = folder.parents[2]
        shutil.copytree(train, train.with_name("other"))
        assert len(list(find_records(train.parent))) == 4


@pytest.mark.parametrize(
    ("table", "change", "told"),
    [
        *[("train", {"warmup": 5}, ".*warmup"), ("rewiring", {"budget": 1}, ".*budget")],
        *[("data", {"noise": 0.5}, ".*noise"), ("data", None, "'data'"), ("train", None, "'train'")],
    ],
)
def test_settings_of_another_version_are_told(folder, table, change, told):
    """A setting that is not known, or a table that is missing."""
    for path in folder.glob("*/record.json"):
        settings = read_record(path).settings
        of_table = settings.pop(table)
        edit(path, settings=settings if change is None else {**settings, table: {**of_table, **change}})
    with pytest.raises(UserError, match=f"not those of this version of gumbel-mpnn: {told}"):
        load_run(folder, data=small_data())


@pytest.mark.parametrize("name", READERS)
def test_what_could_not_be_opened_is_not_called_damaged(folder, name):
    (folder / name).unlink()
    (folder / name).symlink_to("/proc/self/mem")  # cannot be read, even by root
    with pytest.raises(DataError) as caught:
        READERS[name](folder)
    assert "cannot open" in str(caught.value)
    assert "check its permissions" in str(caught.value)
    assert "delete" not in str(caught.value)
