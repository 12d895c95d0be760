"""Downloads that either end with complete, verified files or leave nothing behind."""

from __future__ import annotations

import os
import shutil
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn._util.files import naming
from gumbel_mpnn.data.spec import File

Progress = Callable[[int, int | None], None]

_CHUNK = 1 << 20
_TIMEOUT_SECONDS = 30


def download(files: Sequence[File], folder: Path, progress: Progress | None = None) -> None:
    """Download the public original of each file to its path under `folder`; network errors are `OSError`s."""
    archives: dict[str, list[File]] = {}
    for file in files:
        if file.url is None:
            raise ValueError(f"{file.path} has no public original")
        if file.member is not None:
            archives.setdefault(file.url, []).append(file)
            continue
        with _downloaded(file.url, folder, progress) as part:
            _check(part, file)
            _move(part, folder / file.path)
    for url, members in archives.items():
        with _downloaded(url, folder, progress) as part, tempfile.TemporaryDirectory(dir=folder) as unpacked:
            _unpack(part, url, members, Path(unpacked), folder)


@contextmanager
def _downloaded(url: str, folder: Path, progress: Progress | None) -> Iterator[Path]:
    """Download `url` to a temporary file in `folder`, which is deleted on exit unless it was moved."""
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:
        with naming(folder):
            folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".download-", dir=folder)
        part, done = Path(name), 0
        try:
            length = response.headers.get("Content-Length")
            total = int(length) if length else None
            with os.fdopen(handle, "wb") as out:
                while chunk := response.read(_CHUNK):
                    out.write(chunk)
                    done += len(chunk)
                    if progress is not None:
                        progress(done, total)
            if total is not None and done != total:  # read() does not report a closed connection
                raise OSError(f"{url} broke off after {done} of {total} bytes")
            yield part
        finally:
            part.unlink(missing_ok=True)


def _unpack(archive: Path, url: str, files: Sequence[File], unpacked: Path, folder: Path) -> None:
    """Unpack and verify the members of an archive, then move all of them into place.

    Members are looked up by known names, so the names in the archive never decide where files are written.
    """
    try:
        with zipfile.ZipFile(archive) as contents:
            for number, file in enumerate(files):
                with contents.open(file.member or "") as member, (unpacked / str(number)).open("wb") as out:
                    shutil.copyfileobj(member, out)
                _check(unpacked / str(number), file)
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(f"{url} did not return the expected zip archive ({error}): try again later") from error
    for number, file in enumerate(files):
        _move(unpacked / str(number), folder / file.path)


def _check(part: Path, file: File) -> None:
    if not file.matches(part):
        raise DataError(f"{file.url} did not return the published {file.path} (its sha256 differs): try again later")


def _move(part: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with naming(target):
        part.replace(target)
