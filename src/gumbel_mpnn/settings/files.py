"""Settings of the user: TOML files and overrides such as `table.name=value`."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gumbel_mpnn.settings.settings import flat_options
from gumbel_mpnn.util.errors import UserError, reason
from gumbel_mpnn.util.files import suffix_of

TABLES = ("data", "model", "train", "rewiring")
"""Names of the tables of settings."""
WORDS = ("source", "tried", "like", "tuning")
"""Entries of a file besides settings: where its values come from, how many settings were tried, the preset that it is
based on, and what `tune` found out about them."""


def is_settings_file(preset: str | Path | None) -> bool:
    """Whether `preset` is a TOML file of the user and not the name of a family of presets."""
    return isinstance(preset, Path) or (preset is not None and suffix_of(preset) == ".toml")


def read_settings_file(path: Path) -> dict[str, Any]:
    """Read the tables of a settings file of the user."""
    if not path.is_file():
        raise UserError(f"there is no settings file {path}")
    return {name: value for name, value in parse_toml(path).items() if name not in WORDS}


def tuned_model(path: Path) -> str:
    """The model of a settings file that `tune` wrote; empty for other files."""
    about = parse_toml(path).get("tuning")
    return str(about.get("model", "")) if isinstance(about, Mapping) else ""


def parse_toml(file: Traversable) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, too many digits or brackets
        raise UserError(f"cannot read the settings file {file}: {reason(error)}") from None


def to_toml(content: Mapping[str, Any], above: str = "") -> str:
    """Write nested tables as TOML; values that are None are left out."""
    tables = {above + _key(name): value for name, value in content.items() if isinstance(value, Mapping)}
    lines = [
        f"{_key(name)} = {_quoted(value) if isinstance(value, str) else str(value).lower()}\n"
        for name, value in content.items()
        if not isinstance(value, Mapping) and value is not None
    ]
    return "".join(lines) + "".join(f"\n[{name}]\n{to_toml(table, f'{name}.')}" for name, table in tables.items())


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """Convert `["model.dropout=0.7", ...]` to nested tables; a value that is not valid TOML is a string.

    The table ends at the first dot: `rewiring.regularizer.margin=0.5` sets `regularizer.margin` of `rewiring`.
    """
    tables: dict[str, Any] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        section, dot, name = key.strip().partition(".")
        if not (equals and dot and name):
            raise UserError(f"cannot read the setting {override!r}: write it as table.name=value")
        tables.setdefault(section, {})[name] = _value(text.strip(), key.strip())
    return tables


def _value(text: str, name: str) -> Any:
    if text in ("True", "False"):  # as in Python
        return text == "True"
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError) as error:  # too many digits or brackets
        raise UserError(f"cannot read the value of {name}: {reason(error)}") from None


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge nested tables; later layers override earlier ones.

    If a later layer chooses another component (`regularizer`), the options of the earlier one (`regularizer.margin`)
    are dropped.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        if layer is not None and not isinstance(layer, Mapping):
            raise UserError(f"settings must be tables, such as {{'train': {{'lr': 0.01}}}}, not {layer!r}")
        for section, values in (layer or {}).items():
            if not isinstance(values, Mapping):
                raise UserError(f"setting {section!r} must be a table, but is {values!r}")
            below, above = merged.get(section, {}), flat_options(values) if section == "rewiring" else dict(values)
            replaced = tuple(f"{name}." for name, value in above.items() if name in below and below[name] != value)
            merged[section] = {k: v for k, v in below.items() if not k.startswith(replaced)} | above
    return merged
