"""The one writer of files, JSON and tensors with checksums, and the paths of files and folders."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumbel_mpnn.util.errors import UserError, unreadable

if TYPE_CHECKING:
    from torch import Tensor

CHECKSUM = "checksum"
"""Name of the checksum in a JSON object, in the last line of a file of lines, in an npz file and in metadata."""
ABOUT = "about"
"""The one entry of the metadata of a file of tensors: a note and a checksum over it and the tensors."""
STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically: it exists with all of its content or not at all, even after a power failure.

    A symbolic link leads to its target. Devices and pipes, and `-` for standard output, are written to. An existing
    file keeps its mode.
    """
    if is_standard_output(path):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    with naming(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file")
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if is_stream(path):
            with path.open("wb") as stream:
                stream.write(content)
            return
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content)


def _replace(target: Path, content: bytes) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make every `OSError` raised inside name `path`, which the user knows, and not a temporary file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def is_standard_output(path: Path | None) -> bool:
    """Whether `path` is `-` or another name of standard output."""
    return str(path) in STANDARD_OUTPUT


def is_stream(path: Path) -> bool:
    """Whether `path` is standard output, a device or a pipe, and not a file with a name of its own."""
    return is_standard_output(path) or (path.exists() and not path.is_file() and not path.is_dir())


def check_writable(folder: Path) -> None:
    """Raise a `UserError` if no file can be written in `folder`, or in the folder in which it would be created."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        raise UserError(f"nothing can be written to the folder {folder}: {existing} is a file")
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise UserError(
            f"nothing can be written to the folder {folder} ({error.strerror}): name another one, or change its"
            " permissions"
        ) from None


def suffix_of(path: str | Path) -> str:
    """Suffix of a path in lower case: `.npz` for `graph.NPZ`."""
    return Path(path).suffix.lower()


def config_root() -> Path:
    """Configuration folder of the user, which holds presets of their own."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "gumbel-mpnn"


def cache_root() -> Path:
    """Cache folder of the user, which holds downloads."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gumbel-mpnn"


def to_json(value: Any, indent: int | None = None) -> str:
    """Convert plain values to JSON, which has no NaN and no infinity: they become null."""
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {name: _finite(each) for name, each in value.items()}
        case list() | tuple():
            return list(map(_finite, value))
        case float():
            return value if math.isfinite(value) else None
    return value


def none_if_nan(value: float) -> float | None:
    """Return the value, or None for NaN, which JSON does not have."""
    return None if math.isnan(value) else value


def json_with_checksum(values: Mapping[str, Any]) -> bytes:
    """Convert an object to JSON, with its checksum in the last line."""
    plain = json.loads(to_json(values))
    return json.dumps({**plain, CHECKSUM: _digest_of_json(plain)}, indent=1).encode()


def read_json(content: bytes) -> dict[str, Any]:
    """Read what `json_with_checksum` wrote; raises a `ValueError` if it is damaged."""
    values = _parse(content)
    check_digest(values.pop(CHECKSUM, None), _digest_of_json(values))
    return values


def lines_with_checksum(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Convert objects to JSON, one in each line, with a checksum in the last line."""
    content = "".join(to_json(row) + "\n" for row in rows).encode()
    return content + json.dumps({CHECKSUM: digest([("lines", content)])}).encode() + b"\n"


def read_lines(content: bytes) -> list[dict[str, Any]]:
    """Read what `lines_with_checksum` wrote; raises a `ValueError` if it is damaged."""
    *lines, last = content.splitlines(keepends=True) or [b"{}"]
    check_digest(_parse(last).get(CHECKSUM), digest([("lines", b"".join(lines))]))
    return [_parse(line) for line in lines]


def digest(parts: Iterable[tuple[str, bytes | memoryview]]) -> str:
    """Checksum of named contents, in this order."""
    found = hashlib.sha256()
    for name, content in parts:
        found.update(f"{name}\n".encode())
        found.update(content)
    return found.hexdigest()


def check_digest(found: object, expected: str) -> None:
    """Raise a `ValueError` if a checksum is missing or wrong."""
    if found != expected:
        raise ValueError("its checksum is wrong, so it is damaged or was edited")


def _parse(content: bytes) -> dict[str, Any]:
    try:
        values = json.loads(content)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("it is not a JSON object")
    return values


def _digest_of_json(values: Mapping[str, Any]) -> str:
    return digest([("json", json.dumps(values, sort_keys=True).encode())])


def save_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, Any] | None = None) -> None:
    """Write tensors and a JSON note to a safetensors file; the same content gives the same bytes."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(note or {})
    # A single entry: safetensors writes several in any order.
    write_atomically(path, save(plain, {ABOUT: json.dumps([text, digest(_parts(plain, text))])}))


def load_tensors(
    path: Path, remedy: str = "delete it to train this run again"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file of `save_tensors`; `remedy` is the end of the error message if this fails."""
    from safetensors import SafetensorError, safe_open

    try:
        with path.open("rb"):  # safetensors does not tell a file that may not be opened from a damaged one
            pass
        with safe_open(path, "pt") as file:
            text, checksum = json.loads((file.metadata() or {}).get(ABOUT, "[]"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        check_digest(checksum, digest(_parts(tensors, text)))
        return tensors, json.loads(text)
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError, AttributeError) as error:
        raise unreadable(str(path), error, remedy) from None


def _parts(tensors: Mapping[str, Tensor], note: str) -> Iterator[tuple[str, bytes | memoryview]]:
    import torch

    yield "note", note.encode()
    for name in sorted(tensors):
        tensor = tensors[name]
        # numpy has no bfloat16
        yield f"{name} {tensor.dtype} {list(tensor.shape)}", tensor.flatten().view(torch.uint8).numpy().data
