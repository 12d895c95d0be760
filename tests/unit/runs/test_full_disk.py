"""A disk that is full or may not be written to: one sentence, and nothing that was finished is lost."""

import errno
import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from gumbel_mpnn.runs.record import find_records
from gumbel_mpnn.util.errors import UserError
from quick_fit import figures, quick, stored

FOUR = {"splits": [0, 1], "seeds": 2}


def sentence(error):
    text = str(error.value)
    assert "\n" not in text
    assert "finished runs are safe: solve the problem and repeat the command to continue" in text
    return text


@pytest.fixture
def full_after(monkeypatch):
    """While it lasts, a disk on which so many files can be written, and no more."""

    @contextmanager
    def fill(count):
        fsync, written = os.fsync, []

        def write(handle):
            if len(written) == count:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written.append(handle)
            fsync(handle)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", write)
            yield

    return fill


@pytest.mark.parametrize("files", range(0, 14, 2))
def test_a_full_disk_whenever_it_happens(tmp_path, full_after, files):
    """A plan, facts of the data, and then model, history and record of four runs: fourteen files."""
    whole = quick(**FOUR)
    with full_after(files), pytest.raises(UserError) as error:
        quick(**FOUR, runs=tmp_path)
    assert f"cannot write the runs in {tmp_path}" in sentence(error)
    assert "No space left on device" in str(error.value)
    finished = list(find_records(tmp_path))
    assert len(finished) == max(0, files - 2) // 3
    ended = quick(**FOUR, runs=tmp_path)
    assert (figures(ended), stored(ended)) == (figures(whole), stored(whole))
    assert ended.records[: len(finished)] == tuple(finished)
    setting = ended.folder.path
    folders = [Path(folder).name for folder in ended.folders]
    assert sorted(path.name for path in setting.iterdir()) == ["data.json", *sorted(folders)]


def test_no_room_for_a_checkpoint(tmp_path, every_epoch, full_after):
    with full_after(4), pytest.raises(UserError, match="No space left on device"):
        quick(**FOUR, runs=tmp_path)
    assert len(list(tmp_path.rglob("checkpoint-*.safetensors"))) == 1


def test_a_folder_that_may_not_be_written_to(tmp_path, monkeypatch):
    def refuse(self, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    first = quick(**FOUR, runs=tmp_path)
    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(UserError) as error:
        quick(splits=[0, 1], seeds=3, runs=tmp_path)
    assert "Permission denied" in sentence(error)
    assert len(list(find_records(tmp_path))) == 4
    assert quick(**FOUR, runs=tmp_path).records == first.records


def test_a_file_where_a_folder_should_be(tmp_path):
    (tmp_path / "train").touch()
    with pytest.raises(UserError) as error:
        quick(**FOUR, runs=tmp_path)
    assert str(tmp_path / "train") in sentence(error)
