"""Descriptions of runs: a model on a data set, all settings with their origins, splits and seeds; and their data."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from gumbel_mpnn.candidates import candidates
from gumbel_mpnn.candidates.strategies import DATA, NONE
from gumbel_mpnn.data import add_splits, check, check_masks, get_spec, load, specs, with_all_masks
from gumbel_mpnn.data.check import (
    IDENTITY,
    as_graph,
    check_kind,
    warn_of_empty_classes,
    warn_of_ignored,
    with_identity_features,
)
from gumbel_mpnn.data.splits import MASKS, by_split
from gumbel_mpnn.graph import check_candidates, without_candidates
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.rewiring.regularizers import regularizers
from gumbel_mpnn.rewiring.scorers import scorers
from gumbel_mpnn.settings import DataSettings, Replica, RewiringSettings, Settings, resolve, with_what_follows
from gumbel_mpnn.settings.files import TABLES, is_settings_file, merge, parse_overrides, read_settings_file
from gumbel_mpnn.settings.presets import OVER, Preset, Rung, packaged_families, read_preset
from gumbel_mpnn.settings.registry import load_plugins
from gumbel_mpnn.training import data_hash
from gumbel_mpnn.training.metrics import check_name
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError, did_you_mean, whole_numbers

Tables = Mapping[str, Mapping[str, Any]]
Transform = Callable[[Data], Data]

OWN_PROTOCOL = "random-60-20-20"
"""Split protocol of graphs without masks."""
MOST_SEEDS = 100_000
OF_A_RUNG = "rung"
"""First word of the origin of settings that come from a rung of `auto`."""
REGISTRIES: Mapping[str, Any] = {"candidates": candidates, "scorer": scorers, "regularizer": regularizers}
"""Components that rewiring settings choose."""
NO_COMPONENT = {"candidates": (NONE, DATA), "regularizer": (NONE,), "scorer": ()}
"""Values of these settings that choose none."""


@dataclass(frozen=True)
class Job:
    """Runs of one setting on one graph: what the folders of these runs follow from."""

    settings: Settings
    data: Data
    data_hash: str
    replicas: list[Replica]

    @property
    def title(self) -> str:
        """What is trained, in a few words."""
        return f"{self.settings.model} on {self.settings.dataset}"


class DataReader:
    """Reads data and keeps the last, since many settings are tried on one data set.

    A graph of the user is kept as well: do not change it between two calls.
    """

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._found: tuple[Data, str]

    def read(
        self, dataset: str | Data, settings: DataSettings, root: str | Path | None, transform: Transform | None
    ) -> tuple[Data, str]:
        """Read and transform the data; returns it with its hash. Do not change it in place."""
        key = (dataset, settings.protocol, settings.undirected, root, transform)
        if key != self._key:
            data = read_data(dataset, settings, root)
            data = data if transform is None else transform(data)
            self._key, self._found = key, (data, data_hash(data))
        return self._found


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
    """Preset that was found in the family or the file that was asked for."""
    transform: Transform | None = None
    root: str | Path | None = None
    given: Tables = field(default_factory=dict)
    """Settings of the user, which override the preset."""
    asked_preset: str | Path | None = None
    """Argument `preset`: a family of presets, a file, or None."""

    @classmethod
    def of(
        cls,
        dataset: str | Data,
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
        """Describe the runs of `fit` with the same arguments; a rung of `auto` takes the place of a preset."""
        check_kind(dataset)
        load_plugins()
        if isinstance(seeds, Integral) and int(seeds) > MOST_SEEDS:
            raise UserError(f"{seeds} seeds are too many to list their runs: give at most {MOST_SEEDS}")
        if not isinstance(model, str):
            raise UserError(f"model must be a name, such as 'gcn', not {model!r}: {did_you_mean('', models)}")
        name, model = _dataset_name(dataset), models.canonical(model)
        given = with_what_follows(merge(settings, parse_overrides(overrides)))
        found, below, origin = None, {} if rung is None else rung.tables, f"{OF_A_RUNG} {rung and rung.name}"
        if preset is not None and rung is None:
            found = find_preset(preset, name, model, given.get("model", {}).get("backbone"))
            below = {} if found is None else found.tables
            origin = str(preset) if is_settings_file(preset) else f"preset {preset}"
        layers: dict[str, Tables] = {origin: with_what_follows(merge(below)), "given": given}
        resolved = resolve(name, model, merge(*layers.values()), models.complete, rewires=models[model].rewires)
        if resolved.data.metric:
            check_name(resolved.data.metric)
        if resolved.rewiring is not None:
            asked, rewiring = resolved.rewiring, models[model].settle(resolved.rewiring)
            resolved = replace(resolved, rewiring=_with_all_options(rewiring))
            by_model = {key: value for key, value in asdict(rewiring).items() if getattr(asked, key) != value}
            layers[f"model {model}"] = {"rewiring": {key: by_model[key] for key in by_model if key != "options"}}
        return cls(
            dataset=dataset,
            settings=resolved,
            origins=_origins(resolved, layers),
            splits=None if splits is None else tuple(whole_numbers("splits", splits)),
            seeds=tuple(range(int(seeds)) if isinstance(seeds, Integral) else whole_numbers("seeds", seeds)),
            preset=found,
            transform=transform,
            root=root,
            given=given,
            asked_preset=preset,
        )

    def laid_over(self, tables: Tables) -> RunSpec:
        """Copy this spec with settings overridden by `tables`."""
        settings = merge(self.given, with_what_follows(merge(tables)))
        return self._copy(self.settings.model, self.asked_preset, settings)

    def with_model(self, model: str) -> RunSpec:
        """Copy this spec for another model, with the settings that this model has."""
        if self.asked_preset is None or not is_settings_file(self.asked_preset):
            return self._copy(model, self.asked_preset, of_model(self.given, model))
        found = find_preset(self.asked_preset, self.settings.dataset, model)
        below = {} if found is None else found.tables
        return self._copy(model, None, of_model(merge(below, self.given), model))

    def _copy(self, model: str, preset: str | Path | None, settings: Tables) -> RunSpec:
        same: dict[str, Any] = {"splits": self.splits, "seeds": self.seeds, "transform": self.transform}
        return RunSpec.of(self.dataset, model, preset=preset, settings=settings, root=self.root, **same)

    def read(self, reader: DataReader | None = None) -> Job:
        """Read the data; returns it with its hash, the settings and all replicas."""
        read, digest = (reader or DataReader()).read(self.dataset, self.settings.data, self.root, self.transform)
        data, settings = self._agreeing_about_candidates(read)
        digest = digest if data is read else data_hash(data)
        job = Job(settings, data, digest, self._replicas(data))
        if settings.train.select != "last" and (without := splits_without_validation(job)):
            raise DataError(
                f"the validation mask of split {without[0]} is empty, so that no epoch can be chosen"
                ": add nodes to it, or set train.select=last and train.epochs"
            )
        if settings.data.features == "standardized" and (data.get(IDENTITY) or data.x.layout is not torch.strided):
            raise DataError("an identity matrix or sparse features cannot be standardized: leave out data.features")
        return job

    def _agreeing_about_candidates(self, data: Data) -> tuple[Data, Settings]:
        """Data and settings that agree about candidates.

        Candidates of the data are used instead of those of a preset, of a rung or of the default. They are removed if
        the user asked for others or for none, and for a rung that has none.
        """
        rewiring = self.settings.rewiring
        if rewiring is None or data.get("candidate_index") is None:
            return data, self.settings
        ours = {"default", *(f"preset {family}" for family in packaged_families())}
        origins = {origin for name, origin in self.origins.items() if name.startswith("rewiring.candidates")} - ours
        if all(origin.startswith(OF_A_RUNG) for origin in origins) and not (origins and rewiring.candidates == NONE):
            options = {name: value for name, value in rewiring.options.items() if not name.startswith("candidates.")}
            return data, replace(self.settings, rewiring=replace(rewiring, candidates=DATA, options=options))
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


def read_data(dataset: str | Data, settings: DataSettings, root: str | Path | None) -> Data:
    """Read the data and add masks by a random split protocol if it has none.

    A graph with a `val_mask` or `test_mask` but no `train_mask` is refused, unless the settings name a protocol.
    Edges of a data set are directed only if it has directions and the settings ask for them.
    """
    protocol = settings.protocol
    if isinstance(dataset, str):
        directed = not settings.undirected and get_spec(dataset).has_directions
        return load(dataset, protocol=protocol or None, root=root, directed=directed)
    data = as_graph(dataset)
    if data.get("y") is None:
        raise DataError("this graph has no labels: give it data.y")
    if isinstance(data.x, torch.Tensor) and data.x.layout != torch.strided:
        data = copy.copy(data)
        data.x = data.x.to_dense()
    if protocol or all(data.get(name) is None for name in MASKS):
        data = copy.copy(data).update(dict.fromkeys(MASKS))
        facts = check(data)
        data = add_splits(data, protocol or OWN_PROTOCOL)
        check_masks(data)
    else:
        facts = check(data)
        data = with_all_masks(data)
    if facts.num_classes == 1:
        raise DataError("all labelled nodes are of one class: classification needs two or more")
    if facts.num_classes == facts.num_nodes - facts.num_unlabelled:
        raise DataError(
            f"there are as many classes as labelled nodes, {facts.num_classes}, so no class has nodes both to train"
            " and to test on: are these labels ids?"
        )
    warn_of_empty_classes(data)
    warn_of_ignored(data, settings.undirected)
    if data.get("candidate_index") is not None:
        check_candidates(data.candidate_index, facts.num_nodes)
    if data.get("x") is not None:
        return data
    if not facts.num_edges:
        raise DataError("this graph has neither features nor edges to learn from: give it one of them")
    warnings.warn(
        "this graph has no features, so each node gets one of its own (the identity matrix), which says nothing about"
        " the others: a model can learn from the edges only, so that mlp, which has none, can only guess, and no model"
        " can be applied to other graphs; with data.features=structure, nodes have positions among communities instead",
        DataWarning,
        stacklevel=3,
    )
    return with_identity_features(data)


def find_preset(family: str | Path, dataset: str, model: str, backbone: str | None = None) -> Preset | None:
    """Find the preset of a model, or that of the model that `presets_of` names if it has none.

    Presets that are like that of a backbone lie over `backbone` if it is given. In place of a family, there may be a
    settings file.
    """
    asked = None if backbone is None else backbones.canonical(str(backbone))
    if is_settings_file(family):
        for name in read_settings_file(Path(family)):
            if name not in (*TABLES, OVER) and name not in models and name not in specs:
                raise UserError(f"there is no setting {name!r} in {family}: {did_you_mean(name, TABLES)}")
        return read_preset(family, dataset, models.canonical(model), asked)
    for owner in (models.canonical(model), *models[model].presets_of):
        found = read_preset(family, dataset, asked if asked and owner in backbones else owner, asked)
        if found is not None:
            return found
    return None


def asks_for_undirected(preset: str | Path | None, overrides: Iterable[str]) -> bool:
    """Whether these arguments of `RunSpec.of` ask for undirected edges, for those who read the edges before."""
    file = read_settings_file(Path(preset)) if preset is not None and is_settings_file(preset) else {}
    tables = merge({"data": file["data"]} if "data" in file else {}, parse_overrides(overrides))
    return bool(tables.get("data", {}).get("undirected", True))


def of_model(tables: Tables, model: str, below: Tables | None = None) -> dict[str, Any]:
    """Settings that a model has, of those that `tables` set over `below`.

    Rewiring settings and model options that it does not know are left out. The tables may be those of a search space.
    """
    options = merge(below, tables).get("model", {})
    known = models.defaults(model, {name: value for name, value in options.items() if isinstance(value, str)})
    kept = {table: dict(values) for table, values in tables.items() if table != "rewiring" or models[model].rewires}
    if "model" in kept:
        kept["model"] = {name: value for name, value in kept["model"].items() if name in known}
    return kept


def splits_without_validation(job: Job) -> list[int]:
    """Splits of the replicas of a job that have no validation nodes."""
    has_some = by_split(job.data.val_mask).any(0).tolist()
    return [replica.split for replica in job.replicas if not has_some[replica.split]]


def _dataset_name(dataset: object) -> str:
    """Name of the folder of a data set; that of a graph of the user is made valid."""
    if isinstance(dataset, str):
        return get_spec(dataset).name
    if not isinstance(dataset, Data):
        raise UserError(f"dataset must be a name or a Data, not {dataset!r}")
    return re.sub(r"[^\w.-]+", "-", str(dataset.get("name") or "")).strip(".-") or "own"


def _with_all_options(rewiring: RewiringSettings) -> RewiringSettings:
    """Check the options of all components, and add the defaults of the others."""
    options: dict[str, Any] = {}
    for component, registry in REGISTRIES.items():
        name, given = getattr(rewiring, component), rewiring.options_of(component)
        none = name in NO_COMPONENT[component]
        if none and given:
            raise UserError(f"rewiring.{component} is {name!r}, which has no option {next(iter(given))!r}")
        of_component = {} if none else registry.complete(name, given)
        options |= {f"{component}.{option}": value for option, value in of_component.items()}
    return replace(rewiring, options=options)


def _origins(settings: Settings, layers: Mapping[str, Tables]) -> dict[str, str]:
    """Origin of each setting by `table.name`."""
    names = {f"{table}.{name}" for table, values in settings.to_dict().items() if table != "dataset" for name in values}
    origins = dict.fromkeys(sorted(names - {"model.name"}), "default")
    for origin, tables in layers.items():
        of_layer = {f"{table}.{name}" for table, values in tables.items() for name in values}
        origins |= dict.fromkeys(of_layer & origins.keys(), origin)
    return origins
