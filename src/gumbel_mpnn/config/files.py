"""Settings of the user: TOML files and overrides such as `table.name=value`."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.errors import UserError, reason
from gumbel_mpnn._util.files import suffix_of
from gumbel_mpnn.config.settings import SHARED_OPTIONS

ABOUT_THE_FILE: Mapping[str, tuple[type, str]] = {
    "source": (str, "text"),
    "tried": (int, "a whole number"),
    "like": (str, "text"),
    "tuning": (dict, "a table"),
}
"""Entries about the file itself and their types: source of its values, number of settings that were tried, preset it is
based on, and what `tune` found out about them."""


def is_settings_file(preset: str | Path | None) -> bool:
    """Whether `preset` is a TOML file of the user and not the name of a family of presets."""
    return isinstance(preset, Path) or (preset is not None and suffix_of(preset) == ".toml")


def read_settings_file(path: Path) -> dict[str, Any]:
    """Read the tables of a settings file of the user."""
    if not path.is_file():
        raise UserError(f"there is no settings file {path}")
    return parse_settings(path)[1]


def parse_settings(file: Traversable) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the entries of a settings file about the file itself, and its tables of settings."""
    tables = parse_toml(file)
    about = {name: tables.pop(name) for name in ABOUT_THE_FILE if name in tables}
    for name, value in about.items():
        kind, wanted = ABOUT_THE_FILE[name]
        if type(value) is not kind:
            raise UserError(f"{name!r} in {file} must be {wanted}, but is {value!r}")
    return about, tables


def parse_toml(file: Traversable) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, too many digits or brackets
        raise UserError(f"cannot read the settings file {file}: {reason(error)}") from None


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """Convert `["model.dropout=0.7", ...]` to nested tables; a value that is not valid TOML is a string.

    True and False may be written as in TOML or as in Python.

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


def to_toml(content: Mapping[str, Any]) -> str:
    """Write single values and tables of single values as TOML; values that are None are left out."""
    lines = []
    for name, value in sorted(content.items(), key=lambda item: isinstance(item[1], Mapping)):  # tables come last
        if isinstance(value, Mapping):
            lines += ["", f"[{name}]", *(_line(key, each) for key, each in value.items() if each is not None)]
        else:
            lines.append(_line(name, value))
    return "\n".join(lines) + "\n"


def _line(name: str, value: str | float | bool) -> str:
    key = name if re.fullmatch(r"[\w-]+", name, re.ASCII) else _quoted(name)
    return f"{key} = {_quoted(value) if isinstance(value, str) else str(value).lower()}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge nested tables; later layers override earlier ones.

    If a later layer chooses another component (`regularizer`), the options of the earlier one (`regularizer.margin`)
    are dropped. In a file, options may also be in a table `options`: `[rewiring.options]` with
    `regularizer.margin = 0.5`.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        if layer is not None and not isinstance(layer, Mapping):
            raise UserError(f"settings must be tables, such as {{'train': {{'lr': 0.01}}}}, not {layer!r}")
        for section, values in (layer or {}).items():
            if not isinstance(values, Mapping):
                raise UserError(f"setting {section!r} must be a table, but is {values!r}")
            below, above = merged.get(section, {}), _flat(values)
            replaced = tuple(f"{name}." for name, value in above.items() if name in below and below[name] != value)
            merged[section] = {k: v for k, v in below.items() if not k.startswith(replaced)} | above
    return merged


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Write the sub-table `options` of a table as dotted names, and an option that has a setting as that setting."""
    options = values.get("options")
    flat = dict(values)
    if isinstance(options, Mapping):
        del flat["options"]
        for component, of in options.items():
            if isinstance(of, Mapping):
                flat |= {f"{component}.{name}": value for name, value in of.items()}
            elif "." in component:
                flat[component] = of
            else:
                raise UserError(
                    f"options of {component!r} must be a table, but are {of!r}: write {component}.NAME = VALUE"
                )
    return {SHARED_OPTIONS.get(name, name): value for name, value in flat.items()}


def _value(text: str, name: str) -> Any:
    if text in ("True", "False"):  # as in Python
        return text == "True"
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError) as error:  # too many digits or brackets
        raise UserError(f"cannot read the value of {name}: {reason(error)}") from None
