"""Rungs of the model `auto`: one settings file each in `presets/auto`, from the plainest to the freest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gumbel_mpnn.config.files import merge, parse_settings
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
    rank, about, tables = _parts(name)
    return Rung(name, rank, about, tables["model"].pop("name"), tables)


def _parts(name: str) -> tuple[int, str, dict[str, Any]]:
    """Rank and description of a rung, and its tables over those of the rung that it is `like`."""
    of_file, own = parse_settings(_folder() / f"{name}.toml")
    rank, about = own.pop(RANK), own.pop(ABOUT)
    below = _parts(of_file["like"])[2] if "like" in of_file else None
    return rank, about, merge(below, own)


def _folder() -> Traversable:
    return resources.files("gumbel_mpnn.config.presets") / AUTO
