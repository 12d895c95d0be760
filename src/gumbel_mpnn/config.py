"""A run's settings: frozen, from TOML presets and `a.b=v` overrides, to JSON and to a fingerprint."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gumbel_mpnn.errors import UserError, did_you_mean, unknown_name
from gumbel_mpnn.registry import like

SCHEMA = 1
"""Raised when the same settings no longer mean the same numbers, so that old runs are not taken for new ones."""


@dataclass(frozen=True)
class DataSettings:
    """How the data set is read and split."""

    protocol: str = ""
    """Name of the split protocol; empty for the data set's own."""
    features: str = "raw"
    """`raw` or `row-normalized` (each node's features divided by the sum of their absolute values)."""
    undirected: bool = True


@dataclass(frozen=True)
class TrainSettings:
    """How a model is trained."""

    lr: float = 1e-3
    weight_decay: float = 0.0
    epochs: int = 500
    patience: int = 0
    """Epochs without a better validation value after which a replica stops; 0 for never."""
    eval_every: int = 1
    tf32: bool = True
    """Whether a GPU may multiply matrices in TF32, several times faster than float32; no effect on a CPU."""


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers of a run, apart from the data's content, the split and the seed."""

    dataset: str
    model: str
    options: Mapping[str, Any]
    """Options of the model, complete."""
    data: DataSettings = field(default_factory=DataSettings)
    train: TrainSettings = field(default_factory=TrainSettings)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `from_dict` is the way back."""
        return {
            "dataset": self.dataset,
            "model": {"name": self.model, **self.options},
            "data": dataclasses.asdict(self.data),
            "train": dataclasses.asdict(self.train),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Settings as `to_dict` wrote them."""
        options = dict(values["model"])
        return cls(
            dataset=values["dataset"],
            model=options.pop("name"),
            options=options,
            data=DataSettings(**values["data"]),
            train=TrainSettings(**values["train"]),
        )

    def fingerprint(self, data_hash: str) -> str:
        """16 hex digits that identify these settings on this data."""
        text = json.dumps([SCHEMA, self.to_dict(), data_hash], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def resolve(
    dataset: str,
    model: str,
    sections: Mapping[str, Any],
    complete: Callable[[str, Mapping[str, Any]], Mapping[str, Any]],
) -> Settings:
    """Settings from the tables `data`, `model` and `train`; `complete` checks and fills the model's options."""
    for name in sections:
        if name not in ("data", "model", "train"):
            raise UserError(f"there is no setting {name!r}: {did_you_mean(name, ('data', 'model', 'train'))}")
    settings = Settings(
        dataset=dataset,
        model=model,
        options=complete(model, sections.get("model", {})),
        data=_fill(DataSettings(), "data", sections.get("data", {})),
        train=_fill(TrainSettings(), "train", sections.get("train", {})),
    )
    _check_values(settings)
    return settings


def read_preset(family: str, dataset: str, model: str) -> dict[str, Any] | None:
    """Tables of `presets/<family>/<dataset>/<model>.toml`, or None where there is no such file."""
    folder = resources.files("gumbel_mpnn") / "presets" / family
    if not folder.is_dir():
        raise unknown_name("family of presets", family, preset_families())
    file = folder / dataset / f"{model}.toml"
    return _parse(file) if file.is_file() else None


def preset_families() -> list[str]:
    """Names of the families of presets that come with the package."""
    return sorted(entry.name for entry in (resources.files("gumbel_mpnn") / "presets").iterdir() if entry.is_dir())


def list_presets() -> list[tuple[str, str, str]]:
    """(family, data set, model) of every preset that comes with the package."""
    root = resources.files("gumbel_mpnn") / "presets"
    return [
        (family, dataset.name, Path(file.name).stem)
        for family in preset_families()
        for dataset in sorted((root / family).iterdir(), key=lambda entry: entry.name)
        for file in sorted(dataset.iterdir(), key=lambda entry: entry.name)
    ]


def read_settings_file(path: Path) -> dict[str, Any]:
    """Tables of a person's own TOML file."""
    if not path.is_file():
        raise UserError(f"there is no settings file {path}")
    return _parse(path)


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """`["model.dropout=0.7", ...]` as nested tables; a value is read as TOML, else as a bare string."""
    tables: dict[str, Any] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        section, dot, name = key.strip().partition(".")
        if not (equals and dot and name):
            raise UserError(f"cannot read the setting {override!r}: write it as table.name=value")
        tables.setdefault(section, {})[name] = _value(text.strip())
    return tables


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Nested tables laid over each other; later ones win."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for section, values in (layer or {}).items():
            if not isinstance(values, Mapping):
                raise UserError(f"setting {section!r} must be a table, but is {values!r}")
            merged[section] = {**merged.get(section, {}), **values}
    return merged


def _parse(file: Traversable) -> dict[str, Any]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the settings file {file}: {error}") from None
    tables.pop("source", None)
    return tables


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _fill(defaults: Any, section: str, values: Mapping[str, Any]) -> Any:
    known = {item.name: getattr(defaults, item.name) for item in dataclasses.fields(defaults)}
    for key, value in values.items():
        if key not in known:
            raise UserError(f"there is no setting '{section}.{key}': {did_you_mean(key, known)}")
        known[key] = like(known[key], value, f"setting '{section}.{key}'")
    return dataclasses.replace(defaults, **known)


def _check_values(settings: Settings) -> None:
    train = settings.train
    for name, good, wanted in (
        ("data.features", settings.data.features in ("raw", "row-normalized"), "'raw' or 'row-normalized'"),
        ("train.lr", train.lr > 0, "above 0"),
        ("train.weight_decay", train.weight_decay >= 0, "0 or more"),
        ("train.epochs", train.epochs >= 1, "1 or more"),
        ("train.patience", train.patience >= 0, "0 or more"),
        ("train.eval_every", train.eval_every >= 1, "1 or more"),
    ):
        if not good:
            section, key = name.split(".")
            raise UserError(f"setting {name!r} must be {wanted}, but is {getattr(getattr(settings, section), key)!r}")
