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

RANK, ABOUT, NEEDS = "rank", "about", "needs"
FEATURES, NO_FEATURES = "features", "no features"
"""What a rung may need."""


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
    needs: str = ""
    """`features` for rungs that have nothing to learn from without them, `no features` for those that stand in for
    such rungs; empty for rungs that are tried on every graph."""

    def suits(self, has_features: bool) -> bool:
        """Whether the rung is tried on graphs with, or without, features."""
        return self.needs in ("", FEATURES if has_features else NO_FEATURES)


def read_rungs() -> list[Rung]:
    """All rungs, the plainest first."""
    names = [Path(file.name).stem for file in _folder().iterdir() if file.name.endswith(".toml")]
    return sorted(map(_read, names), key=lambda rung: rung.rank)


def _read(name: str) -> Rung:
    about, tables = _parts(name)
    return Rung(name, about[RANK], about[ABOUT], tables["model"].pop("name"), tables, about.get(NEEDS, ""))


def _parts(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Entries about a rung, and its tables over those of the rung that it is `like`."""
    of_file, own = parse_settings(_folder() / f"{name}.toml")
    about = {key: own.pop(key) for key in (RANK, ABOUT, NEEDS) if key in own}
    below = _parts(of_file["like"])[1] if "like" in of_file else None
    return about, merge(below, own)


def _folder() -> Traversable:
    return resources.files("gumbel_mpnn.config.presets") / AUTO
