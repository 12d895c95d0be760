"""Checksums in stored files, so that damage is noticed when they are read.

Every function that reads raises a `ValueError` if the checksum is wrong. A file without one, of an older version, is
accepted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from gumbel_mpnn._util import json_text

KEY = "checksum"
"""Name of the checksum in a JSON object, in the last line of a file of lines, in an npz file and in metadata."""


def digest(parts: Iterable[tuple[str, bytes | memoryview]]) -> str:
    """Checksum of named contents, in this order."""
    found = hashlib.sha256()
    for name, content in parts:
        found.update(f"{name}\n".encode())
        found.update(content)
    return found.hexdigest()


def check(found: object, expected: str) -> None:
    """Raise a `ValueError` if there is a checksum, and it is not the expected one."""
    if found is not None and found != expected:
        raise ValueError("its checksum is wrong, so it is damaged or was edited")


def to_json(values: Mapping[str, Any]) -> bytes:
    """Write a JSON object, with its checksum in the last line."""
    plain = json.loads(json_text.to_json(values))
    return json.dumps({**plain, KEY: _of_json(plain)}, indent=1).encode()


def from_json(content: bytes) -> dict[str, Any]:
    """Read what `to_json` wrote."""
    return checked(parse_json(content))


def checked(values: Any) -> dict[str, Any]:
    """Return a parsed JSON object without its checksum, which is compared."""
    if not isinstance(values, dict):
        raise ValueError("it is not a JSON object")
    found = values.pop(KEY, None)
    if found is not None:
        check(found, _of_json(values))
    return values


def to_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Write JSON objects, one in each line, with a checksum in the last line."""
    content = "".join(json_text.to_json(row) + "\n" for row in rows).encode()
    return content + json.dumps({KEY: digest([("lines", content)])}).encode() + b"\n"


def from_lines(content: bytes) -> list[dict[str, Any]]:
    """Read what `to_lines` wrote."""
    rows = [parse_json(line) for line in content.splitlines()]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("a line is not a JSON object")
    if rows and rows[-1].keys() == {KEY}:
        before, _, _ = content.rstrip(b"\n").rpartition(b"\n")
        check(rows.pop()[KEY], digest([("lines", before + b"\n" if before else b"")]))
    return rows


def parse_json(content: bytes) -> Any:
    """Read JSON; every fault of its form is a `ValueError`."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def _of_json(values: Mapping[str, Any]) -> str:
    return digest([("json", json.dumps(values, sort_keys=True).encode())])
