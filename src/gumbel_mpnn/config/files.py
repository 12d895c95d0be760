"""Tables of settings as a user writes them: TOML files and `table.name=value`, one laid over the other."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.files import suffix_of
from gumbel_mpnn.config.settings import SHARED_OPTIONS

ABOUT_THE_FILE = ("source", "tried", "like")
"""What a settings file says of itself: the source of its values, how many settings were tried, what it is based on."""


def is_settings_file(preset: str | Path | None) -> bool:
    """Whether a preset is a TOML file of the user's, and not the name of a family."""
    return isinstance(preset, Path) or (preset is not None and suffix_of(preset) == ".toml")


def read_settings_file(path: Path) -> dict[str, Any]:
    """Tables of a TOML file of the user's."""
    if not path.is_file():
        raise UserError(f"there is no settings file {path}")
    return {name: table for name, table in parse_toml(path).items() if name not in ABOUT_THE_FILE}


def parse_toml(file: Traversable) -> dict[str, Any]:
    """Content of a TOML file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the settings file {file}: {error}") from None


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """`["model.dropout=0.7", ...]` as nested tables; a value is read as TOML, otherwise as a bare string.

    What follows the first point is the name: `rewiring.regularizer.margin=0.5` sets `regularizer.margin`.
    """
    tables: dict[str, Any] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        section, dot, name = key.strip().partition(".")
        if not (equals and dot and name):
            raise UserError(f"cannot read the setting {override!r}: write it as table.name=value")
        tables.setdefault(section, {})[name] = _value(text.strip())
    return tables


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Nested tables, each laid over those before it.

    Options of a component (`regularizer.margin`) go where a later layer names another component (`regularizer`). In a
    file they may stand in a table `options`: `[rewiring.options]` with `regularizer.margin = 0.5`.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        for section, values in (layer or {}).items():
            if not isinstance(values, Mapping):
                raise UserError(f"setting {section!r} must be a table, but is {values!r}")
            below, above = merged.get(section, {}), _flat(values)
            replaced = tuple(f"{name}." for name, value in above.items() if name in below and below[name] != value)
            merged[section] = {k: v for k, v in below.items() if not k.startswith(replaced)} | above
    return merged


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """A table whose sub-table `options` is written as dotted names, and options as the setting that they have."""
    options = values.get("options")
    flat = dict(values)
    if isinstance(options, Mapping):
        del flat["options"]
        for component, of in options.items():
            if not isinstance(of, Mapping):
                raise UserError(f"options of {component!r} must be a table, but are {of!r}")
            flat |= {f"{component}.{name}": value for name, value in of.items()}
    return {SHARED_OPTIONS.get(name, name): value for name, value in flat.items()}


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
