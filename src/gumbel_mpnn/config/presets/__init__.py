"""Presets, `<family>/<data set>/<model>.toml`: those that come with the package, and families of the user's own.

The user's own families are in the folder `presets` of their configuration folder, where `tune --name` puts them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.errors import UserError, unknown_name
from gumbel_mpnn._util.files import config_root
from gumbel_mpnn.config.files import merge, parse_settings

FAMILY = "family.toml"
"""File about a family of presets, in its folder, with the settings that its presets share."""
DATASETS = "datasets"
"""Table of this file with the settings that the presets of a data set share, such as `[datasets.cora.train]`."""
AUTO = "auto"
"""Folder of the rungs of the model `auto`, which is not a family of presets."""


@dataclass(frozen=True)
class Preset:
    """Settings of a model on a data set."""

    model: str
    """Model that the preset was made for; a model without a preset may use that of another."""
    tables: Mapping[str, Any]
    source: str = ""
    """Origin of the values, as stated in the file."""
    tried: int | None = None
    """Number of settings that were tried, if it is the same for all models of the data set."""


def read_preset(family: str, dataset: str, model: str, backbone: str | None = None) -> Preset | None:
    """Read the preset `<family>/<dataset>/<model>.toml`; returns None if there is no such file.

    A preset may be `like` that of a backbone on the same data set, given as `family/backbone`: its values then override
    those of that preset. If `backbone` is given and has a preset, it takes the place of this backbone. It may also be
    like that of the same model in another family. A whole family may be like another (see `family_base`).

    Settings that all presets of a family or of one of its data sets share are in its `family.toml`.
    """
    return _read(family, dataset, model, backbone, ())


def _read(family: str, dataset: str, model: str, backbone: str | None, above: tuple[str, ...]) -> Preset | None:
    """Read a preset; `above` are the presets that are like it."""
    name = f"{family}/{model}"
    if name in above:
        raise UserError(f"the preset {name} on {dataset} is like itself: change `like` in its file or in {FAMILY}")
    if family not in preset_families():
        raise unknown_name("family of presets", family, preset_families())
    file = _file(family, dataset, model)
    if not file.is_file():
        other = family_base(family)
        return None if other is None else _read(other, dataset, model, backbone, (*above, name))
    about, tables = parse_settings(file)
    layers: list[Mapping[str, Any]] = [_shared(family, dataset), tables]
    if "like" in about:
        base_family, _, base_model = about["like"].partition("/")
        if base_model != model and backbone is not None and _file(base_family, dataset, backbone).is_file():
            base_model = backbone
        base = _read(base_family, dataset, base_model, backbone if base_model == model else None, (*above, name))
        if base is None:
            raise UserError(f"the preset {name} on {dataset} is like {about['like']!r}, which has no preset there")
        # What a family shares is below its own presets, and above those of other families.
        layers.insert(1 if base_family == family else 0, base.tables)
    return Preset(model, merge(*layers), about.get("source", ""), about.get("tried"))


def family_base(family: str) -> str | None:
    """Family whose presets are used where `family` has none: what its `family.toml`, if there is one, is `like`."""
    base: str | None = _about(family)[0].get("like")
    return base


def preset_families() -> list[str]:
    """Names of all families of presets, those that come with the package first."""
    return [*packaged_families(), *own_families()]


def packaged_families() -> list[str]:
    """Names of the families that come with the package."""
    others = (AUTO, "__pycache__")
    return sorted(entry.name for entry in _folder().iterdir() if entry.is_dir() and entry.name not in others)


def own_families() -> list[str]:
    """Names of the user's own families."""
    folder = own_folder()
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(entry.name for entry in found if entry.is_dir() and entry.name not in packaged_families())


def own_folder() -> Path:
    """Folder of the user's own families."""
    return config_root() / "presets"


def own_preset(family: str, dataset: str, model: str) -> Path:
    """File of a preset of the user's own."""
    return own_folder() / family / dataset / f"{model}.toml"


def check_own_name(name: str) -> None:
    """Raise a `UserError` if a family of the user's own cannot have this name."""
    if name in (*packaged_families(), AUTO, "none"):
        raise UserError(f"{name!r} is the name of presets that come with the package: give another name")
    if not re.fullmatch(r"\w[\w.-]*", name) or name.endswith(".toml"):
        raise UserError(
            f"the name of a preset has letters, digits, '.', '_' and '-', and does not end in .toml, not {name!r}"
        )


def list_presets() -> list[tuple[str, str, str]]:
    """(family, data set, model) of every preset, without those that a family takes from another."""
    return [
        (family, dataset.name, Path(file.name).stem)
        for family in preset_families()
        for dataset in sorted(_folder_of(family).iterdir(), key=lambda entry: entry.name)
        if dataset.is_dir()
        for file in sorted(dataset.iterdir(), key=lambda entry: entry.name)
        if file.name.endswith(".toml")
    ]


def _shared(family: str, dataset: str) -> dict[str, Any]:
    """Settings of all presets of a family on a data set."""
    tables = _about(family)[1]
    of_datasets = tables.pop(DATASETS, {})
    if not isinstance(of_datasets, Mapping):
        file = _folder_of(family) / FAMILY
        raise UserError(f"{DATASETS!r} in {file} must be a table, such as [{DATASETS}.{dataset}.train]")
    return merge(tables, of_datasets.get(dataset))


def _about(family: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Entries of the `family.toml` of a family about itself, and its tables, if it has such a file."""
    file = _folder_of(family) / FAMILY
    return parse_settings(file) if file.is_file() else ({}, {})


def _folder() -> Traversable:
    return resources.files(__name__)


def _folder_of(family: str) -> Traversable:
    return _folder() / family if family in packaged_families() else own_folder() / family


def _file(family: str, dataset: str, model: str) -> Traversable:
    return _folder_of(family) / dataset / f"{model}.toml"
