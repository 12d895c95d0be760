"""Files of the user: plain or compressed, read from a disk or from a pipe, which can be read only once."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from gumbel_mpnn._util.errors import DataError, UserError, reason, unopened

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class InputFile:
    """A file of the user, which may be compressed or a pipe; messages show it as the user wrote it."""

    def __init__(self, path: str | Path) -> None:
        if _ADDRESS.match(str(path)):
            raise DataError(f"{path} is an address, not a file: download it first and give the path of the file")
        if "\0" in str(path):
            raise DataError(f"{str(path)!r} is not the path of a file: it has a null character")
        self.path = Path(path)

    @classmethod
    def of(cls, path: str | Path | InputFile) -> InputFile:
        """Return `path` itself if it is an input file, so that a pipe is not read again."""
        return path if isinstance(path, InputFile) else cls(path)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_stream(self) -> bool:
        """Whether it is a pipe or device, as `<(...)` of a shell, which has no name of its own and is read once."""
        return self.path.exists() and not self.path.is_file() and not self.path.is_dir()

    def open(self) -> BinaryIO:
        """Open the content, decompressed, at its beginning; every fault of the file is a `DataError`."""
        if self._unpack is None and self.path.is_file():
            try:
                return self.path.open("rb")
            except OSError as error:
                raise self._unopened(error) from error
        return io.BytesIO(self._content)

    @cached_property
    def _content(self) -> bytes:
        try:
            packed = self.path.read_bytes()
        except OSError as error:
            raise self._unopened(error) from error
        if self._unpack is None:
            return packed
        try:
            return self._unpack(packed)
        except UserError as error:
            raise DataError(f"cannot read {self}: {error}") from error
        except _FAULTS as error:
            raise DataError(f"cannot decompress {self} ({reason(error)}): it is truncated or damaged") from error

    @property
    def _unpack(self) -> Callable[[bytes], bytes] | None:
        name = self.path.name.lower()
        return next((unpack for suffix, unpack in _UNPACK.items() if name.endswith(suffix)), None)

    def _unopened(self, error: OSError) -> DataError:
        if isinstance(error, FileNotFoundError):
            return DataError(f"there is no file {self}: check the path")
        if isinstance(error, IsADirectoryError):
            return DataError(f"{self} is a folder: give the path of a file")
        return unopened(str(self), error)


def _unzip(packed: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        return archive.read(_only(names))


def _untar(packed: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:") as archive:
        files = {member.name: member for member in archive.getmembers() if member.isfile()}
        content = archive.extractfile(files[_only(list(files))])
        return b"" if content is None else content.read()


def _only(names: list[str]) -> str:
    if len(names) != 1:
        raise UserError(f"it holds {len(names)} files: give an archive of one file, or the file itself")
    return names[0]


def _unzstd(packed: bytes) -> bytes:
    try:
        zstandard = import_module("zstandard")
    except ImportError:
        raise UserError("this needs the package zstandard: pip install zstandard, or decompress it first") from None
    content = b""
    while packed:  # one frame after the other
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            content += frame.decompress(packed)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from error
        if not frame.eof:
            raise EOFError("the last frame is not complete")
        packed = frame.unused_data
    return content


_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".tar": _untar,
    # tarfile alone would not read to the end, where the checksum is
    ".tar.gz": lambda packed: _untar(gzip.decompress(packed)),
    ".tar.bz2": lambda packed: _untar(bz2.decompress(packed)),
    ".tar.xz": lambda packed: _untar(lzma.decompress(packed)),
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zip": _unzip,
    ".zst": _unzstd,
}
"""How files are decompressed, by the end of their names."""
_FAULTS = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
)
"""What the decompressors of the standard library raise for files that are truncated, damaged or encrypted."""
