"""Temporary folders that are deleted even if their process was killed: by the next one that needs such a folder."""

from __future__ import annotations

import os
import shutil
import weakref
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from gumbel_mpnn._util.locks import can_lock, is_same_file, take_lock

PREFIX = ".gumbel-mpnn-scratch-"
"""Beginning of a name that nobody else gives to a folder, since folders of this name are deleted."""


class ScratchFolder(TemporaryDirectory[str]):
    """A temporary folder, which is locked while its process lives; those of killed processes are deleted first."""

    def __init__(self, prefix: str = PREFIX, folder: Path | None = None) -> None:
        folder = Path(gettempdir()) if folder is None else folder
        _sweep(folder, prefix)
        locked = False
        while not locked:
            super().__init__(prefix=prefix, dir=folder)
            locked = not can_lock() or self._lock()  # else another process swept it before it was locked

    @property
    def path(self) -> Path:
        """Path of the folder."""
        return Path(self.name)

    def _lock(self) -> bool:
        try:
            handle = os.open(self.name, os.O_RDONLY)
        except FileNotFoundError:
            return False
        weakref.finalize(self, os.close, handle)
        with suppress(OSError):  # of a file system without locks
            take_lock(handle, wait=True)
        return is_same_file(handle, self.path)


def _sweep(folder: Path, prefix: str) -> None:
    for left_over in folder.glob(f"{prefix}*"):
        with suppress(OSError):
            handle = os.open(left_over, os.O_RDONLY)
            try:
                if take_lock(handle, wait=False):
                    shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink()
            finally:
                os.close(handle)
