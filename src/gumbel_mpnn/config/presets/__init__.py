"""Presets, the settings that come with the package: `<family>/<data set>/<model>.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.errors import unknown_name
from gumbel_mpnn.config.files import ABOUT_THE_FILE, merge, parse_toml


@dataclass(frozen=True)
class Preset:
    """Settings that come with the package."""

    model: str
    """Model that the preset was made for; models without a preset use that of their backbone."""
    tables: Mapping[str, Any]
    source: str = ""
    """Origin of the values, as stated in the file."""
    tried: int | None = None
    """Number of settings that were tried, if it is the same for all models of the data set."""


def read_preset(family: str, dataset: str, model: str, backbone: str | None = None) -> Preset | None:
    """Read the preset `<family>/<dataset>/<model>.toml`; returns None if there is no such file.

    A preset may be `like` that of a backbone on the same data set, given as `family/backbone`: its values then override
    those of that preset. If `backbone` is given and has a preset, it takes the place of this backbone.
    """
    if family not in preset_families():
        raise unknown_name("family of presets", family, preset_families())
    file = _file(family, dataset, model)
    if not file.is_file():
        return None
    content = parse_toml(file)
    tables = {name: table for name, table in content.items() if name not in ABOUT_THE_FILE}
    if "like" in content:
        base_family, _, base_model = content["like"].partition("/")
        if backbone is not None and _file(base_family, dataset, backbone).is_file():
            base_model = backbone
        base = read_preset(base_family, dataset, base_model)
        tables = merge(base.tables if base is not None else None, tables)
    return Preset(model, tables, content.get("source", ""), content.get("tried"))


def preset_families() -> list[str]:
    """Names of all families of presets."""
    return sorted(entry.name for entry in _folder().iterdir() if entry.is_dir() and entry.name != "__pycache__")


def list_presets() -> list[tuple[str, str, str]]:
    """(family, data set, model) of every preset."""
    root = _folder()
    return [
        (family, dataset.name, Path(file.name).stem)
        for family in preset_families()
        for dataset in sorted((root / family).iterdir(), key=lambda entry: entry.name)
        for file in sorted(dataset.iterdir(), key=lambda entry: entry.name)
    ]


def _folder() -> Traversable:
    return resources.files(__name__)


def _file(family: str, dataset: str, model: str) -> Traversable:
    return _folder() / family / dataset / f"{model}.toml"
