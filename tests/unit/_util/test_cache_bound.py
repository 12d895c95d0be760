"""Files that are being written count towards the bound of a cache folder, and those of killed processes are deleted."""

import fcntl

import numpy as np
import pytest

from gumbel_mpnn._util import content_cache


@pytest.fixture
def full(tmp_path, monkeypatch):
    """A cache folder whose bound is three files; two are there, and a third one, as large, is not finished."""
    arrays = {"a": np.zeros(1000)}
    for name in ("one", "two"):
        content_cache.write(tmp_path / f"{name}.npz", arrays)
    size = (tmp_path / "one.npz").stat().st_size
    monkeypatch.setattr(content_cache, "MOST_BYTES", 3 * size)
    unfinished = tmp_path / ".three.npz.1-0123abcd"
    unfinished.write_bytes(bytes(size))
    return tmp_path, unfinished, arrays


def test_a_file_that_is_being_written_counts(full):
    folder, unfinished, arrays = full
    with unfinished.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        content_cache.write(folder / "four.npz", arrays)
    assert sorted(path.name for path in folder.iterdir()) == [unfinished.name, "four.npz", "two.npz"]


def test_a_file_that_nobody_writes_is_deleted(full):
    folder, _, arrays = full
    content_cache.write(folder / "four.npz", arrays)
    assert sorted(path.name for path in folder.iterdir()) == ["four.npz", "one.npz", "two.npz"]
