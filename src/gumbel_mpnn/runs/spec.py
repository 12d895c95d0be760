"""Descriptions of runs: a model on a data set, all settings with their origins, splits and seeds."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError, did_you_mean, whole_numbers
from gumbel_mpnn.candidates import candidates
from gumbel_mpnn.candidates.chosen import DATA, NONE
from gumbel_mpnn.config import Replica, RewiringSettings, Settings, constant_temperature, resolve, without_patience
from gumbel_mpnn.config.files import is_settings_file, merge, parse_overrides, read_settings_file
from gumbel_mpnn.config.plugins import load_plugins
from gumbel_mpnn.config.presets import Preset, packaged_families, read_preset
from gumbel_mpnn.config.registry import normal_name
from gumbel_mpnn.config.rungs import Rung
from gumbel_mpnn.data import get_spec
from gumbel_mpnn.data.given import check_kind
from gumbel_mpnn.data.identity import MARK
from gumbel_mpnn.data.splits import by_split, too_small
from gumbel_mpnn.graph import without_candidates
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.rewiring.edge_models import scorers
from gumbel_mpnn.rewiring.regularizers import regularizers
from gumbel_mpnn.runs.choice import LADDERS
from gumbel_mpnn.runs.query import FINGERPRINT
from gumbel_mpnn.runs.reader import DataReader, Transform
from gumbel_mpnn.training import data_hash
from gumbel_mpnn.training.metrics import check_name

Tables = Mapping[str, Mapping[str, Any]]

OF_A_RUNG = "rung"
"""First word of the origin of settings that come from a rung of `auto`."""
OF_CANDIDATES = ("rewiring.candidates", "rewiring.per_node", "rewiring.pairs", "rewiring.similarity")
"""Prefixes of the settings that choose candidates."""


@dataclass(frozen=True)
class RunSpec:
    """Description of the runs that `fit` trains, with settings that are read and checked.

    Create it with `RunSpec.of`, which takes the arguments of `fit`.
    """

    dataset: str | Data
    """Name of a data set, or a graph of the user."""
    settings: Settings
    """All settings, including defaults."""
    origins: Mapping[str, str]
    """Origin of each setting by `table.name`: `default`, `preset …`, a file, `given`, or the model that sets it."""
    splits: tuple[int, ...] | None
    """Splits to train on; None for all."""
    seeds: tuple[int, ...]
    preset: Preset | None = None
    """Preset of the family that was asked for, if there is one."""
    transform: Transform | None = None
    root: str | Path | None = None
    given: Tables = field(default_factory=dict)
    """Settings of the user, which override the preset."""
    asked_preset: str | Path | None = None
    """Argument `preset`: a family of presets, a file, or None."""

    @classmethod
    def of(
        cls,
        dataset: str | Data | Callable[[bool], str | Data],
        model: str,
        *,
        splits: Iterable[int] | None = None,
        seeds: int | Iterable[int] = 1,
        preset: str | Path | None = "tuned",
        settings: Tables | None = None,
        overrides: Iterable[str] = (),
        transform: Transform | None = None,
        root: str | Path | None = None,
        rung: Rung | None = None,
    ) -> RunSpec:
        """Describe the runs of `fit` with the same arguments.

        `dataset` may also be a function that reads the graph; its argument is whether edges are undirected. A rung of
        `auto` takes the place of a preset.
        """
        check_kind(dataset)
        load_plugins()
        given = _with_what_follows(merge(settings, parse_overrides(overrides)))
        found, origin, below = None, f"preset {preset}", dict[str, Any]()
        if rung is not None:
            origin, below = f"{OF_A_RUNG} {rung.name}", merge(rung.tables)
        if is_settings_file(preset):
            origin, below = str(preset), merge(read_settings_file(Path(preset or "")))
        if callable(dataset) and not isinstance(dataset, Data):
            dataset = dataset(bool(merge(below, given).get("data", {}).get("undirected", True)))
        name, model = _dataset_name(dataset), one_model(model)
        if preset is not None and rung is None and not is_settings_file(preset):
            found = find_preset(str(preset), name, model, given.get("model", {}).get("backbone"))
            below = merge(None if found is None else found.tables)
        resolved = resolve(name, model, merge(below, given), models.complete, rewires=models[model].rewires)
        if resolved.data.metric:
            check_name(resolved.data.metric)
        settled = dict[str, Any]()
        if resolved.rewiring is not None:
            rewiring = models[model].settle(resolved.rewiring)
            settled = _changes(resolved.rewiring, rewiring)
            resolved = dataclasses.replace(resolved, rewiring=_with_checked_options(rewiring))
        return cls(
            dataset=dataset,
            settings=resolved,
            origins=_origins(resolved, {origin: below, "given": given, f"model {model}": {"rewiring": settled}}),
            splits=None if splits is None else tuple(whole_numbers("splits", splits)),
            seeds=_seeds(seeds),
            preset=found,
            transform=transform,
            root=root,
            given=given,
            asked_preset=preset,
        )

    def laid_over(self, tables: Tables) -> RunSpec:
        """Copy this spec with settings overridden by `tables`."""
        settings = merge(self.given, _with_what_follows(merge(tables)))
        return self._copy(self.settings.model, self.asked_preset, settings)

    def with_model(self, model: str) -> RunSpec:
        """Copy this spec for another model, with the settings that this model has."""
        file = self.asked_preset if is_settings_file(self.asked_preset) else None
        below = {} if file is None else of_model(merge(read_settings_file(Path(file))), model)
        return self._copy(model, None if file else self.asked_preset, merge(below, of_model(self.given, model)))

    def _copy(self, model: str, preset: str | Path | None, settings: Tables) -> RunSpec:
        same: dict[str, Any] = {"splits": self.splits, "seeds": self.seeds, "transform": self.transform}
        return RunSpec.of(self.dataset, model, preset=preset, settings=settings, root=self.root, **same)

    def read(self, reader: DataReader | None = None) -> Workload:
        """Read the data; returns it with its hash, the settings and all replicas."""
        reader = reader or DataReader()
        read, digest = reader.read(self.dataset, self.settings.data, self.root, self.transform)
        data, settings = self._settle_candidates(read)
        replicas = self._replicas(data)
        _check_validation(data, settings, replicas)
        if settings.data.features == "standardized" and (data.get(MARK) or data.x.layout is not torch.strided):
            raise DataError("an identity matrix or sparse features cannot be standardized: leave out data.features")
        return Workload(settings, data, digest if data is read else data_hash(data), replicas)

    def _settle_candidates(self, data: Data) -> tuple[Data, Settings]:
        """Make data and settings agree about candidates.

        Candidates of the data are used instead of those of a preset, of a rung or of the default. They are removed if
        the user asked for others or for none, and for a rung that has none.
        """
        rewiring = self.settings.rewiring
        if rewiring is None or data.get("candidate_index") is None:
            return data, self.settings
        ours = ("default", *(f"preset {family}" for family in packaged_families()))
        chosen = [
            name
            for name, origin in self.origins.items()
            if name.startswith(OF_CANDIDATES) and origin not in ours and not origin.startswith(OF_A_RUNG)
        ]
        without = rewiring.candidates == NONE and self.origins["rewiring.candidates"].startswith(OF_A_RUNG)
        if not chosen and not without:
            return data, dataclasses.replace(self.settings, rewiring=dataclasses.replace(rewiring, candidates=DATA))
        return data if rewiring.candidates == DATA else without_candidates(data), self.settings

    def _replicas(self, data: Data) -> list[Replica]:
        num_splits = by_split(data.train_mask).shape[1]
        splits = range(num_splits) if self.splits is None else self.splits
        for split in splits:
            if not 0 <= split < num_splits:
                raise UserError(f"there is no split {split}: this data set has splits 0 to {num_splits - 1}")
        if not splits or not self.seeds:
            raise UserError("there is nothing to train: give at least one split and one seed")
        return [Replica(split, seed) for split in dict.fromkeys(splits) for seed in dict.fromkeys(self.seeds)]


MOST_SEEDS = 100_000
"""Number of seeds whose runs can be listed in moments."""


def _seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """The seeds that are asked for by their number or one by one."""
    if not isinstance(seeds, Integral):
        return tuple(whole_numbers("seeds", seeds))
    count = int(seeds)
    if count > MOST_SEEDS:
        raise UserError(f"{count} seeds are too many to list their runs: give at most {MOST_SEEDS}")
    return tuple(range(count))


@dataclass(frozen=True)
class Workload:
    """Data, settings and replicas of a spec, from which the folders of its runs follow."""

    settings: Settings
    data: Data
    data_hash: str
    replicas: list[Replica]


def find_preset(family: str, dataset: str, model: str, backbone: str | None = None) -> Preset | None:
    """Find the preset of a model, or that of the model that `presets_of` names if it has none.

    Presets that are based on that of a backbone are based on `backbone` if it is given.
    """
    asked = None if backbone is None else backbones.canonical(str(backbone))
    for owner in (models.canonical(model), *models[model].presets_of):
        found = read_preset(family, dataset, asked if asked and owner in backbones else owner, asked)
        if found is not None:
            return found
    return None


def of_model(tables: Tables, model: str) -> dict[str, Any]:
    """Settings that a model has: all but rewiring settings and model options that it does not know."""
    known = models.defaults(model)
    kept = {table: dict(values) for table, values in tables.items() if table != "rewiring" or models[model].rewires}
    if "model" in kept:
        kept["model"] = {name: value for name, value in kept["model"].items() if name in known}
    return kept


def folder_name(name: object) -> str:
    """Turn the name of a graph of the user into a valid folder name, which is not that of a setting."""
    folder = re.sub(r"[^\w.-]+", "-", str(name or "")).strip(".-") or "own"
    return f"own-{folder}" if FINGERPRINT.fullmatch(folder) else folder


def _check_validation(data: Data, settings: Settings, replicas: Iterable[Replica]) -> None:
    """Raise a `DataError` if the epoch is to be chosen on validation and a split has no validation nodes."""
    without = [] if settings.train.select == "last" else splits_without_validation(data, replicas)
    if without:
        raise DataError(
            f"the validation mask of split {without[0]} is empty, so that no epoch can be chosen"
            f"{too_small(data)}: add nodes to it, or set train.select=last and train.epochs"
        )


def splits_without_validation(data: Data, replicas: Iterable[Replica]) -> list[int]:
    """Splits of these replicas that have no validation nodes."""
    has_some = by_split(data.val_mask).any(0).tolist()
    return [replica.split for replica in replicas if not has_some[replica.split]]


def _dataset_name(dataset: object) -> str:
    if not isinstance(dataset, str | Data):
        raise UserError(f"dataset must be a name or a Data, not {dataset!r}")
    return get_spec(dataset).name if isinstance(dataset, str) else folder_name(dataset.get("name"))


def one_model(model: object) -> str:
    """Registered name of a model; `auto`, which trains several, is refused."""
    if not isinstance(model, str):
        raise UserError(f"model must be a name, such as 'gcn', not {model!r}: {did_you_mean('', models)}")
    if normal_name(model) in LADDERS:
        raise UserError(
            f"{model!r} trains several models and chooses one, but one is needed here: name one, such as 'gumbel-mpnn'"
            " (`gumbel-mpnn presets show --model auto` lists them)"
        )
    return models.canonical(model)


def _with_what_follows(tables: Tables) -> Tables:
    """Add settings that follow from those given, so that they are not combined with others of a preset.

    If only `tau` is given, `tau_end` is the same. If the last epoch is selected, there is no patience.
    """
    follow = {"rewiring": constant_temperature, "train": without_patience}
    return {name: follow[name](values) if name in follow else values for name, values in tables.items()}


def _with_checked_options(rewiring: RewiringSettings) -> RewiringSettings:
    """Check the options of all components, and remove those with their default value."""
    registries: dict[str, Any] = {"candidates": candidates, "scorer": scorers, "regularizer": regularizers}
    checked: dict[str, Any] = {}
    for component, registry in registries.items():
        name, given = getattr(rewiring, component), rewiring.own_options(component)
        if given and name not in registry:
            raise UserError(f"rewiring.{component} is {name!r}, which has no option {next(iter(given))!r}")
        changed = registry.changed(name, given) if given else {}
        checked |= {f"{component}.{option}": value for option, value in changed.items()}
    return dataclasses.replace(rewiring, options=checked)


def _changes(before: RewiringSettings, after: RewiringSettings) -> dict[str, Any]:
    """Settings that have another value in `after`."""
    values = dataclasses.asdict(after)
    return {name: value for name, value in values.items() if name != "options" and getattr(before, name) != value}


def _origins(settings: Settings, layers: Mapping[str, Tables]) -> dict[str, str]:
    """Origin of each setting by `table.name`."""
    names = {f"{table}.{name}" for table, values in settings.to_dict().items() if table != "dataset" for name in values}
    origins = dict.fromkeys(sorted(names - {"model.name"}), "default")
    for origin, tables in layers.items():
        for table, values in tables.items():
            origins |= {f"{table}.{name}": origin for name in values}
    return origins
