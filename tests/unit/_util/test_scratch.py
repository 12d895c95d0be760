"""Temporary folders that other processes may sweep before they are locked."""

import os
from pathlib import Path

import pytest

from gumbel_mpnn._util import locks
from gumbel_mpnn._util.scratch import ScratchFolder

pytestmark = pytest.mark.skipif(locks.fcntl is None, reason="files cannot be locked here")


@pytest.mark.parametrize("is_open", [False, True])
def test_a_folder_that_was_swept_is_made_again(is_open, tmp_path, monkeypatch):
    """Another process sweeps it just before or just after it is opened to be locked."""
    swept, open_ = [], os.open

    def sweep_first(path, *arguments, **options):
        handle = open_(path, *arguments, **options) if is_open or swept else None
        if not swept:
            swept.append(path)
            Path(path).rmdir()
        return open_(path, *arguments, **options) if handle is None else handle

    monkeypatch.setattr(os, "open", sweep_first)
    with ScratchFolder(folder=tmp_path) as name:
        assert list(tmp_path.iterdir()) == [Path(name)]
        assert name != swept[0]
    assert list(tmp_path.iterdir()) == []
