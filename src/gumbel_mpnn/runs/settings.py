"""Complete settings: a preset, and what is laid over it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.config import Settings, constant_temperature, resolve
from gumbel_mpnn.data import get_spec
from gumbel_mpnn.errors import UserError
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.presets import read_preset
from gumbel_mpnn.rewiring import OnBackbone
from gumbel_mpnn.settings_tables import merge, parse_overrides, read_settings_file
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
    name = get_spec(dataset).name if isinstance(dataset, str) else _folder_name(dataset.get("name"))
    model = models.canonical(model)
    changes = merge(settings, parse_overrides(overrides))
    if "rewiring" in changes:  # else the preset's tau_end would go with a tau that is laid over it
        changes["rewiring"] = constant_temperature(changes["rewiring"])
    base: Mapping[str, Any] | None = None
    if isinstance(preset, Path) or (preset or "").endswith(".toml"):
        base = read_settings_file(Path(preset or ""))
    elif preset is not None:
        base = _read_preset(str(preset), name, model, changes)
    return resolve(name, model, merge(base, changes), models.complete, rewires=models[model].rewires)


def _read_preset(family: str, dataset: str, model: str, changes: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The preset of a model; a backbone on another graph that has none of its own takes the backbone's."""
    tables, kind = read_preset(family, dataset, model), models[model]
    if tables is None and issubclass(kind, OnBackbone):
        backbone = changes.get("model", {}).get("backbone", kind.default_backbone)
        tables = read_preset(family, dataset, backbones.canonical(str(backbone)))
    return tables


def _folder_name(name: object) -> str:
    """The name of a person's graph as it may stand in a path."""
    return re.sub(r"[^\w.-]+", "-", str(name or "")).strip(".-") or "own"
