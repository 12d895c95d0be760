"""Tables of settings as a person writes them: TOML files and `a.b=v`, laid over each other."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.files import suffix_of

OF_THE_FILE = ("source", "tried")
"""What a settings file says of itself: where its values come from, and of how many settings they were chosen."""


def is_settings_file(preset: str | Path | None) -> bool:
    """Whether a preset is a person's own TOML file, and not the name of a family."""
    return isinstance(preset, Path) or (preset is not None and suffix_of(preset) == ".toml")


def read_settings_file(path: Path) -> dict[str, Any]:
    """Tables of a person's own TOML file."""
    if not path.is_file():
        raise UserError(f"there is no settings file {path}")
    return parse_settings(path)


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """`["model.dropout=0.7", ...]` as nested tables; a value is read as TOML, else as a bare string."""
    tables: dict[str, Any] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        section, dot, name = key.strip().partition(".")
        if not (equals and dot and name):
            raise UserError(f"cannot read the setting {override!r}: write it as table.name=value")
        tables.setdefault(section, {})[name] = _value(text.strip())
    return tables


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Nested tables laid over each other; later ones win."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for section, values in (layer or {}).items():
            if not isinstance(values, Mapping):
                raise UserError(f"setting {section!r} must be a table, but is {values!r}")
            merged[section] = {**merged.get(section, {}), **values}
    return merged


def parse_settings(file: Traversable) -> dict[str, Any]:
    """Tables of a settings file, without what it says of itself."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the settings file {file}: {error}") from None
    return {name: table for name, table in tables.items() if name not in OF_THE_FILE}


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
