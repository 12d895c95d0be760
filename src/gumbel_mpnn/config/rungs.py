"""Rungs of the model `auto`: one settings file each in `presets/auto`, from the plainest to the freest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gumbel_mpnn.config.files import ABOUT_THE_FILE, merge, parse_toml
from gumbel_mpnn.config.presets import AUTO

RANK, ABOUT = "rank", "about"


@dataclass(frozen=True)
class Rung:
    """A model with settings that `auto` tries."""

    name: str
    rank: int
    """Place among the rungs, the plainest first."""
    about: str
    """What the rung does, in a few words."""
    model: str
    tables: Mapping[str, Any]


def read_rungs() -> list[Rung]:
    """All rungs, the plainest first."""
    names = [Path(file.name).stem for file in _folder().iterdir() if file.name.endswith(".toml")]
    return sorted(map(_read, names), key=lambda rung: rung.rank)


def _read(name: str) -> Rung:
    content = parse_toml(_folder() / f"{name}.toml")
    tables = _tables(content)
    return Rung(name, content[RANK], content[ABOUT], tables["model"].pop("name"), tables)


def _tables(content: Mapping[str, Any]) -> dict[str, Any]:
    """Tables of a rung over those of the rung that it is `like`."""
    own = {name: table for name, table in content.items() if name not in (*ABOUT_THE_FILE, RANK, ABOUT)}
    if "like" not in content:
        return merge(own)
    return merge(_tables(parse_toml(_folder() / f"{content['like']}.toml")), own)


def _folder() -> Traversable:
    return resources.files("gumbel_mpnn.config.presets") / AUTO
