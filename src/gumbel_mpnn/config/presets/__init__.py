"""The settings that come with the package: `<family>/<data set>/<model>.toml`."""

from __future__ import annotations

import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.errors import unknown_name
from gumbel_mpnn.config.files import merge, parse_settings


def read_preset(family: str, dataset: str, model: str, backbone: str | None = None) -> dict[str, Any] | None:
    """Tables of `presets/<family>/<dataset>/<model>.toml`, or None where there is no such file.

    A preset that is `like` that of a backbone on the same data set, named as `family/backbone`, is laid over it, or
    over that of `backbone` where there is one.
    """
    if family not in preset_families():
        raise unknown_name("family of presets", family, preset_families())
    file = _file(family, dataset, model)
    if not file.is_file():
        return None
    tables = parse_settings(file)
    base = tables.pop("like", None)
    if base is None:
        return tables
    base_family, _, base_model = base.partition("/")
    if backbone is not None and _file(base_family, dataset, backbone).is_file():
        base_model = backbone
    return merge(read_preset(base_family, dataset, base_model), tables)


def preset_origin(family: str, dataset: str, model: str) -> tuple[str, int | None]:
    """Where the values of a preset come from, in its own words, and of how many settings within one budget, if so."""
    said = tomllib.loads(_file(family, dataset, model).read_text(encoding="utf-8"))
    return said.get("source", ""), said.get("tried")


def preset_families() -> list[str]:
    """Names of the families of presets that come with the package."""
    return sorted(entry.name for entry in _folder().iterdir() if entry.is_dir() and entry.name != "__pycache__")


def list_presets() -> list[tuple[str, str, str]]:
    """(family, data set, model) of every preset that comes with the package."""
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
