import errno
import os
from pathlib import Path

import pytest

from gumbel_mpnn._util.files import write_atomically


@pytest.fixture
def path(tmp_path):
    return tmp_path / "group" / "graph.npz"


def test_write_atomically_makes_folders_and_replaces(path):
    write_atomically(path, b"one")
    assert path.read_bytes() == b"one"
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_files_follow_the_umask(path):
    write_atomically(path, b"")
    plain = path.with_name("plain")
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["full", "interrupted"])
@pytest.mark.parametrize("before", [b"old", None], ids=["replaces", "new"])
@pytest.mark.parametrize("place", [(os, "fsync"), (Path, "replace")], ids=["writing", "moving"])
def test_a_failed_write_leaves_what_was_there(path, monkeypatch, place, before, error):
    if before is not None:
        write_atomically(path, before)

    def fail(*args):
        raise error

    monkeypatch.setattr(*place, fail)
    with pytest.raises(type(error)):
        write_atomically(path, b"new")
    assert [file.read_bytes() for file in path.parent.iterdir()] == ([before] if before else [])


def test_a_disk_that_is_full_names_the_file_that_was_wanted(path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    check_error(path, OSError, errno.ENOSPC)


@pytest.mark.parametrize("method", ["open", "replace"])
def test_a_folder_that_may_not_be_written_to_names_the_file_that_was_wanted(path, monkeypatch, method):
    def refuse(self, target):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(self), None, str(target))

    path.parent.mkdir()
    monkeypatch.setattr(Path, method, refuse)
    check_error(path, PermissionError, errno.EACCES)


def check_error(path, kind, number):
    with pytest.raises(kind) as caught:
        write_atomically(path, b"new")
    assert str(caught.value) == f"[Errno {number}] {os.strerror(number)}: {str(path)!r}"
    assert (caught.value.errno, caught.value.filename) == (number, str(path))
