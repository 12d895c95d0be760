"""Files of data sets: found in the data folders, or downloaded, complete and verified or not at all."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import urllib.request
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gumbel_mpnn.util.errors import DataError, MissingDataError, UserError, reason
from gumbel_mpnn.util.files import cache_root

ENVIRONMENT_VARIABLE = "GUMBEL_MPNN_DATA"
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class File:
    """One file of a data set."""

    path: str
    """Path relative to a data folder, with forward slashes."""
    url: str | None = None
    """Address of the public original; None if it is not published in this form."""
    sha256: str | None = None
    """Checksum of the public original, if known."""
    member: str | None = None
    """Name of the file inside the zip archive at `url`; None if `url` is the file itself."""

    def matches(self, path: Path) -> bool:
        """Whether the file at `path` has the published checksum; true if no checksum is known."""
        if self.sha256 is None:
            return True
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == self.sha256


def search_roots(root: str | Path | None = None) -> list[Path]:
    """Return the folders to search, in order: `root`, the one named by GUMBEL_MPNN_DATA, the cache."""
    if root and not Path(root).expanduser().is_dir():
        raise UserError(f"there is no folder {root}, in which data files are searched: correct --data-root (root=)")
    named = (root, os.environ.get(ENVIRONMENT_VARIABLE))
    return [*(Path(folder).expanduser() for folder in named if folder), cache_root()]


def find(file: File, root: str | Path | None = None) -> Path | None:
    """Return the path of the file, or None if it was not found."""
    return next((folder / file.path for folder in search_roots(root) if (folder / file.path).is_file()), None)


def obtain(name: str, files: Sequence[File], root: str | Path | None = None) -> list[Path]:
    """Return the paths of the files of the data set `name`, after downloading missing ones and verifying checksums."""
    found = {file: find(file, root) for file in files}
    missing = [file for file, path in found.items() if path is None]
    why = ""
    if missing and all(file.url for file in missing):
        try:
            _download(missing, cache_root())
            missing, found = [], {file: find(file, root) for file in files}
        except (OSError, http.client.HTTPException) as error:
            why = f" and could not be downloaded ({error})"
    if missing:
        raise MissingDataError(
            f"data set {name!r} lacks {', '.join(file.path for file in missing)}, found under none of "
            f"{', '.join(map(str, search_roots(root)))}{why}: put {'it' if len(missing) == 1 else 'them'} "
            f"in {search_roots(root)[0]} under {'that name' if len(missing) == 1 else 'those names'}"
        )
    return [_verified(file, path) for file, path in found.items() if path is not None]


def _verified(file: File, path: Path) -> Path:
    try:
        genuine = file.matches(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check its permissions") from error
    if not genuine:
        raise DataError(
            f"{path} is not the published file (its sha256 differs), so it is truncated or altered: delete it"
        )
    return path


def _download(files: Sequence[File], folder: Path) -> None:
    """Download the public original of each file to its path under `folder`; network errors are `OSError`s."""
    for url in dict.fromkeys(str(file.url) for file in files):
        wanted = [file for file in files if file.url == url]
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix=".download-", dir=folder) as scratch:
                _store(response, url, wanted, Path(scratch) / "download", folder)


def _store(response: Any, url: str, wanted: Sequence[File], part: Path, folder: Path) -> None:
    """Store what a server sends in `part`, and move the wanted files to `folder` if all are genuine."""
    with part.open("wb") as out:
        shutil.copyfileobj(response, out)
        done, total = out.tell(), response.headers.get("Content-Length")
    if total and total != str(done):  # a connection that breaks off is no error of urllib
        raise OSError(f"{url} broke off after {done} of {total} bytes")
    contents = [part] if wanted[0].member is None else _unpacked(part, url, wanted)
    for content, file in zip(contents, wanted, strict=True):
        if not file.matches(content):
            raise DataError(f"{url} did not return the published {file.path} (its sha256 differs): try again later")
    for content, file in zip(contents, wanted, strict=True):
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        content.replace(target)


def _unpacked(archive: Path, url: str, files: Sequence[File]) -> list[Path]:
    """Unpack members of an archive next to it; names in the archive never decide where files are written."""
    unpacked = [archive.with_name(str(number)) for number in range(len(files))]
    try:
        with zipfile.ZipFile(archive) as contents:
            for file, path in zip(files, unpacked, strict=True):
                path.write_bytes(contents.read(file.member or ""))
    except Exception as error:  # zipfile and its decompressors raise many kinds for damaged archives
        raise DataError(f"{url} did not return the expected zip archive ({reason(error)}): try again later") from error
    return unpacked
