"""Presets: settings of a model on a data set, in one TOML file for each family, and the rungs of the model `auto`.

A family has entries from the general to the special; what comes later overrides what comes before:

    train.epochs = 1000      # of all its presets
    [cora]                   # of all models on a data set
    train.patience = 50
    [gcn]                    # of a model on all data sets
    model.norm = "layer"
    [cora.gcn]               # the preset itself
    source = "best of 16 settings on validation"
    model.dropout = 0.7

Besides tables of settings, an entry may have `source` (where its values come from), `tried` (how many settings were
tried) and `like`, another model on the same data set: the preset then lies over that of this model, or over that of the
backbone that is asked for. A family that is `over` another lies over the presets of that family, and has all of them.
The user's own families, which `tune --name` writes, are files in the folder `presets` of their configuration folder. A
settings file that the user names has the same form; it need not have an entry of the data set and the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from filelock import FileLock

from gumbel_mpnn.settings.files import TABLES, WORDS, is_settings_file, merge, parse_toml, to_toml
from gumbel_mpnn.util.errors import UserError, unknown_name
from gumbel_mpnn.util.files import config_root, write_atomically

AUTO = "auto"
"""File of the rungs of the model `auto`, which is not a family of presets."""
OVER = "over"
"""Entry of a family: the family that it lies over."""


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


@dataclass(frozen=True)
class Rung:
    """A model with settings that `auto` tries."""

    name: str
    about: str
    """What the rung does, in a few words."""
    model: str
    tables: Mapping[str, Any]
    needs: str = ""
    """`features` for rungs that have nothing to learn from without them, `no features` for those that stand in for
    such rungs; empty for rungs that are tried on every graph."""

    def suits(self, has_features: bool) -> bool:
        """Whether the rung is tried on graphs with, or without, features."""
        return self.needs in ("", "features" if has_features else "no features")


def read_preset(
    family: str | Path, dataset: str, model: str, backbone: str | None = None, *, above: tuple[str, ...] = ()
) -> Preset | None:
    """Read the preset of a model on a data set from a family or a settings file; None if the family has none.

    If `backbone` is given and has a preset there, it takes the place of the model that the preset is `like`. `above`
    are the names of presets that lie over this one.
    """
    family = str(family)
    name = f"{family}/{dataset}/{model}"
    if name in above:
        raise UserError(f"the preset {name} lies over itself: change `like` or `over` in its family")
    content = _content(family)
    over, of_dataset = content.get(OVER), _entry(content, dataset, family)
    lower = None if over is None else read_preset(str(over), dataset, model, backbone, above=(*above, name))
    if model not in of_dataset and not is_settings_file(family):
        return lower
    entries = [content, of_dataset, _entry(content, model, family), _entry(of_dataset, model, family)]
    about: dict[str, Any] = {word: entry[word] for entry in entries for word in WORDS if word in entry}
    alike = None
    if "like" in about:
        like = backbone if backbone in of_dataset else str(about["like"])
        alike = read_preset(family, dataset, like, above=(*above, name))
        if alike is None:
            raise UserError(f"the preset {name} is like {like!r}, which has no preset there")
    layers: list[Mapping[str, Any] | None] = [{t: entry[t] for t in TABLES if t in entry} for entry in entries]
    layers.insert(2, None if alike is None else alike.tables)
    tables = merge(None if lower is None else lower.tables, *layers)
    return Preset(model, tables, about.get("source", ""), about.get("tried"))


def read_rungs() -> list[Rung]:
    """All rungs of the model `auto`, the plainest first; each may be `like` an earlier one."""
    rungs: dict[str, Rung] = {}
    for name, entry in _packaged(AUTO).items():
        below = rungs[entry["like"]] if "like" in entry else None
        own = {table: entry[table] for table in TABLES if table in entry}
        tables = merge(None if below is None else below.tables, own)
        model = tables["model"].pop("name", below.model if below else "")
        rungs[name] = Rung(name, entry["about"], model, tables, entry.get("needs", ""))
    return list(rungs.values())


def preset_families() -> list[str]:
    """Names of all families of presets, those that come with the package first."""
    own = own_folder().glob("*.toml")
    return [*packaged_families(), *sorted(path.stem for path in own if path.stem not in packaged_families())]


def packaged_families() -> list[str]:
    """Names of the families that come with the package."""
    names = (Path(file.name) for file in resources.files(__name__).iterdir())
    return sorted(name.stem for name in names if name.suffix == ".toml" and name.stem != AUTO)


def own_folder() -> Path:
    """Folder of the user's own families."""
    return config_root() / "presets"


def save_preset(family: str, dataset: str, model: str, entry: Mapping[str, Any]) -> Path:
    """Write a preset to a family of the user's own; returns its file."""
    check_own_name(family)
    path = own_folder() / f"{family}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        content = parse_toml(path) if path.is_file() else {}
        content[dataset] = {**_entry(content, dataset, family), model: entry}
        write_atomically(path, to_toml(content).encode())
    return path


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
        (family, dataset, model)
        for family in preset_families()
        for dataset, entry in _content(family).items()
        if isinstance(entry, Mapping) and dataset not in TABLES
        for model in entry
        if model not in (*TABLES, *WORDS)
    ]


def _content(family: str) -> dict[str, Any]:
    """Content of the file of a family."""
    if family in packaged_families():
        return _packaged(family)
    path = Path(family) if is_settings_file(family) else own_folder() / f"{family}.toml"
    if path.is_file():
        return parse_toml(path)
    if is_settings_file(family):
        raise UserError(f"there is no settings file {family}")
    raise unknown_name("family of presets", family, preset_families())


@cache
def _packaged(name: str) -> dict[str, Any]:
    return parse_toml(resources.files(__name__) / f"{name}.toml")


def _entry(content: Mapping[str, Any], name: str, family: str) -> dict[str, Any]:
    entry = content.get(name, {})
    if not isinstance(entry, Mapping):
        raise UserError(f"{name!r} in the family of presets {family} must be a table, but is {entry!r}")
    return dict(entry)
