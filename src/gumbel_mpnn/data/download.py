"""Downloads that either end with complete, verified files or leave nothing behind."""

from __future__ import annotations

import lzma
import time
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from gumbel_mpnn._util.errors import DataError, reason
from gumbel_mpnn._util.files import naming
from gumbel_mpnn._util.scratch import ScratchFolder
from gumbel_mpnn.data.spec import File

Progress = Callable[[int, int | None], None]

MOST_BYTES = 2 * 2**30
"""Largest size of a download, and of a file in an archive."""
MOST_SECONDS = 3600.0
"""Longest time of a download, however slowly its bytes come."""
_CHUNK = 1 << 20
_TIMEOUT_SECONDS = 30
_PREFIX = ".download-"


def download(files: Sequence[File], folder: Path, progress: Progress | None = None) -> None:
    """Download the public original of each file to its path under `folder`; network errors are `OSError`s.

    A file without a checksum is only downloaded by https.
    """
    archives: dict[str, list[File]] = {}
    for file in files:
        if file.url is None:
            raise ValueError(f"{file.path} has no public original")
        _check_secure(file.url, [file])
        archives.setdefault(file.url, []).append(file)
    for url, members in archives.items():
        with _downloaded(url, members, folder, progress) as part:
            unpacked = _unpack(part, url, members) if members[0].member is not None else [part]
            for content, file in zip(unpacked, members, strict=True):
                _check(content, file)
            for content, file in zip(unpacked, members, strict=True):
                _move(content, folder / file.path)


def _check_secure(url: str, files: Sequence[File]) -> None:
    """Raise a `DataError` if a file could be altered on its way without being noticed."""
    unknown = next((file for file in files if file.sha256 is None), None)
    if unknown is not None and not url.lower().startswith("https://"):
        raise DataError(f"{unknown.path} has no known checksum, so it is not downloaded from {url}, which is not https")


@contextmanager
def _downloaded(url: str, files: Sequence[File], folder: Path, progress: Progress | None) -> Iterator[Path]:
    """Download `url` to a temporary folder in `folder`, which is deleted on exit."""
    deadline = time.monotonic() + MOST_SECONDS
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:
        _check_secure(getattr(response, "url", url), files)  # after redirections
        total = _length(response.headers, url)
        with naming(folder):
            folder.mkdir(parents=True, exist_ok=True)
            scratch = ScratchFolder(_PREFIX, folder)
        with scratch:
            part, done = scratch.path / "download", 0
            with part.open("wb") as out:
                while chunk := response.read1(_CHUNK):
                    out.write(chunk)
                    done += len(chunk)
                    if done > MOST_BYTES:
                        raise DataError(f"{url} is larger than {MOST_BYTES} bytes, so it is not the published file")
                    if time.monotonic() > deadline:
                        raise OSError(f"{url} took longer than {MOST_SECONDS:.0f} seconds")
                    if progress is not None:
                        progress(done, total)
            if total is not None and done != total:  # read() does not report a closed connection
                raise OSError(f"{url} broke off after {done} of {total} bytes")
            yield part


def _length(headers: Any, url: str) -> int | None:
    """Return the size that a server promises; None if it does not."""
    encoding = headers.get("Content-Encoding")
    if encoding not in (None, "", "identity"):
        raise DataError(f"{url} is sent in the unknown encoding {encoding!r}: try again later")
    length = headers.get("Content-Length")
    if not length:
        return None
    if not (length.isascii() and length.isdecimal() and len(length) < 20):
        raise DataError(f"{url} is sent with the odd Content-Length {length[:40]!r}: try again later")
    if int(length) > MOST_BYTES:
        raise DataError(f"{url} has {length} bytes, more than {MOST_BYTES}, so it is not the published file")
    return int(length)


def _unpack(archive: Path, url: str, files: Sequence[File]) -> list[Path]:
    """Unpack members of an archive next to it.

    Members are looked up by known names, so the names in the archive never decide where files are written.
    """
    unpacked = []
    try:
        with zipfile.ZipFile(archive) as contents:
            for number, file in enumerate(files):
                unpacked.append(archive.with_name(str(number)))
                with contents.open(file.member or "") as member, unpacked[-1].open("wb") as out:
                    _copy(member, out, f"{file.member} in {url}")
    except (KeyError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError) as error:
        raise DataError(f"{url} did not return the expected zip archive ({reason(error)}): try again later") from error
    return unpacked


def _copy(member: IO[bytes], out: IO[bytes], what: str) -> None:
    left = MOST_BYTES
    while chunk := member.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise DataError(f"{what} is larger than {MOST_BYTES} bytes, so it is not the published file")
        out.write(chunk)


def _check(part: Path, file: File) -> None:
    if not file.matches(part):
        raise DataError(f"{file.url} did not return the published {file.path} (its sha256 differs): try again later")


def _move(part: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with naming(target):
        part.replace(target)
