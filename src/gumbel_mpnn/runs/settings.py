"""Complete settings: a preset, and what is laid over it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError, did_you_mean
from gumbel_mpnn.baselines import BackboneModel
from gumbel_mpnn.config import Settings, constant_temperature, resolve
from gumbel_mpnn.config.files import is_settings_file, merge, parse_overrides, read_settings_file
from gumbel_mpnn.config.presets import preset_origin, read_preset
from gumbel_mpnn.data import get_spec
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.training import models


def make_settings(
    dataset: str | Data,
    model: str,
    *,
    preset: str | Path | None = "tuned",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Iterable[str] = (),
) -> Settings:
    """Complete settings from a preset and what is laid over it."""
    if not isinstance(dataset, str | Data):
        raise UserError(f"a data set is a name or a Data, not {dataset!r}")
    name = get_spec(dataset).name if isinstance(dataset, str) else folder_name(dataset.get("name"))
    if not isinstance(model, str):
        raise UserError(f"a model to fit is a name, as 'gcn', not {model!r}: {did_you_mean('', models)}")
    model = models.canonical(model)
    changes = merge(settings, parse_overrides(overrides))
    if "rewiring" in changes:  # else the preset's tau_end would go with a tau that is laid over it
        changes["rewiring"] = constant_temperature(changes["rewiring"])
    base: Mapping[str, Any] | None = None
    if is_settings_file(preset):
        base = read_settings_file(Path(preset or ""))
    elif preset is not None:
        found = find_preset(str(preset), name, model, changes.get("model", {}).get("backbone"))
        base = found.tables if found is not None else None
    return resolve(name, model, merge(base, changes), models.complete, rewires=models[model].rewires)


@dataclass(frozen=True)
class Preset:
    """Settings that come with the package."""

    model: str
    """Whose they are: those of the model that was asked for, or of the backbone that it borrows them from."""
    tables: Mapping[str, Any]
    source: str
    """Where the values come from, in the preset's own words."""
    tried: int | None
    """Of how many settings they were chosen, where all models of the data set tried as many."""


def find_preset(family: str, dataset: str, model: str, backbone: str | None = None) -> Preset | None:
    """The preset that a model takes: its own or, for a backbone on another graph that has none, the backbone's.

    `backbone` is the one that the model is put on, where it is not the model's default: what is laid over the preset of
    a backbone is then laid over that one's.
    """
    kind, owners = models[model], [models.canonical(model)]
    asked = None if backbone is None else backbones.canonical(str(backbone))
    if issubclass(kind, BackboneModel):
        owners.append(asked or kind.default_backbone)
    for owner in owners:
        tables = read_preset(family, dataset, owner, asked)
        if tables is not None:
            return Preset(owner, tables, *preset_origin(family, dataset, owner))
    return None


def folder_name(name: object) -> str:
    """The name of a person's graph as it may stand in a path."""
    return re.sub(r"[^\w.-]+", "-", str(name or "")).strip(".-") or "own"
