"""A run's settings: frozen, from tables of values, to JSON and to a fingerprint."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gumbel_mpnn._util.errors import UserError, did_you_mean
from gumbel_mpnn.config.registry import checked_like

SCHEMA = 2
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
    bfloat16: bool = False
    """Whether activations are kept in 16 bits where a layer can, with sums and parameters in 32: less memory and time
    on a GPU, above all for a GCN."""


@dataclass(frozen=True)
class RewiringSettings:
    """How a graph is rewired while a model trains on it."""

    candidates: str = "local"
    """Which pairs may become edges: those of a candidate strategy, `none` for the given edges alone, or `data` for
    those that the data bring, which is what it is by itself where they bring any and nothing else is asked for."""
    per_node: int = 5
    """Candidates for each node, for strategies that count by node."""
    pairs: int = 0
    """Candidates in all, for strategies that count so; 0 for twice the number of edges."""
    similarity: str = "cosine"
    """`cosine` or `dot` (the paper's), for strategies that compare features."""
    scorer: str = "bilinear"
    channels: int = 64
    """Width of the features that a scorer compares."""
    beliefs: str = "features"
    """What a scorer takes for a node's class: `features` (a head that sees no edges) or `graph` (the model itself)."""
    origin: str = "fixed"
    """Whether given edges start likely and candidates unlikely: `fixed`, `learned` (may drift away), or `none`."""
    keep: float = 0.95
    """Probability of a given edge at the start."""
    add: float = 0.05
    """Probability of a candidate at the start."""
    tau: float = 1.0
    """Temperature at the first epoch, and throughout where no `tau_end` is given with it; the paper has 0.1."""
    tau_end: float = 0.5
    """Temperature at the last epoch, reached geometrically."""
    hard: bool = True
    """Weights 0 and 1 with a straight-through gradient; else relaxed weights."""
    samples: int = 1
    """Graphs drawn for each step."""
    evaluation: str = "expected"
    """The graph of evaluation: `threshold` (the pairs of probability ½ or more), `expected` or `mean_of_samples`."""
    evaluation_samples: int = 8
    regularizer: str = "none"
    regularizer_weight: float = 0.0
    target_degree: float = 5.0
    """The degree that the regularizer `degree` (`dc`) asks of every node; 0 for 5 above the given graph's mean."""
    prior: float = 0.0
    """Weight of the pull towards the starting graph."""
    agreement: float = 0.0
    """Weight of the agreement between the predictions on several drawn graphs; needs `samples` of 2 or more."""
    agreement_ramp: float = 0.0
    """Share of the epochs over which that weight grows from 0: agreeing too early is agreeing on one class."""
    lr: float = 0.01
    """Learning rate of the scorer and the bias by origin, apart from the model's."""
    weight_decay: float = 0.0
    """Weight decay of the same."""
    decoys: float = 0.0
    """Random pairs mixed in as if they were given, up to this many for each edge: the scorer learns to tell them."""
    decoy_weight: float = 1.0
    """Weight of that lesson."""


ASSUMED: Mapping[str, Mapping[str, Any]] = {
    "train": {"bfloat16": False},
    "rewiring": {
        "candidates": "local",
        "per_node": 5,
        "pairs": 0,
        "similarity": "cosine",
        "scorer": "bilinear",
        "channels": 64,
        "beliefs": "features",
        "origin": "fixed",
        "keep": 0.95,
        "add": 0.05,
        "tau": 1.0,
        "tau_end": 0.5,
        "hard": True,
        "samples": 1,
        "evaluation": "expected",
        "evaluation_samples": 8,
        "regularizer": "none",
        "regularizer_weight": 0.0,
        "target_degree": 5.0,
        "prior": 0.0,
        "agreement": 0.0,
        "agreement_ramp": 0.0,
        "lr": 0.01,
        "weight_decay": 0.0,
        "decoys": 0.0,
        "decoy_weight": 1.0,
    },
}
"""What a fingerprint or record that does not name a setting stands for, so that a new setting does not orphan the runs
made without it: whoever adds one adds here what those runs did. Never changed, even where a default is."""


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers of a run, apart from the data's content, the split and the seed."""

    dataset: str
    model: str
    options: Mapping[str, Any]
    """Options of the model, complete."""
    data: DataSettings = field(default_factory=DataSettings)
    train: TrainSettings = field(default_factory=TrainSettings)
    rewiring: RewiringSettings | None = None
    """None for models that take the graph as it is."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `from_dict` is the way back."""
        values = {
            "dataset": self.dataset,
            "model": {"name": self.model, **self.options},
            "data": dataclasses.asdict(self.data),
            "train": dataclasses.asdict(self.train),
        }
        if self.rewiring is not None:
            values["rewiring"] = dataclasses.asdict(self.rewiring)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Settings as `to_dict` wrote them, perhaps before some of them were there."""
        values = {table: {**ASSUMED[table], **of} if table in ASSUMED else of for table, of in values.items()}
        options = dict(values["model"])
        return cls(
            dataset=values["dataset"],
            model=options.pop("name"),
            options=options,
            data=DataSettings(**values["data"]),
            train=TrainSettings(**values["train"]),
            rewiring=RewiringSettings(**values["rewiring"]) if "rewiring" in values else None,
        )

    def fingerprint(self, data_hash: str) -> str:
        """16 hex digits that identify these settings on this data; values that are `ASSUMED` are left out."""
        values = self.to_dict()
        for table in ASSUMED.keys() & values.keys():
            assumed = ASSUMED[table]
            values[table] = {
                name: value for name, value in values[table].items() if name not in assumed or value != assumed[name]
            }
        text = json.dumps([SCHEMA, values, data_hash], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def resolve(
    dataset: str,
    model: str,
    sections: Mapping[str, Any],
    complete: Callable[[str, Mapping[str, Any]], Mapping[str, Any]],
    rewires: bool = False,
) -> Settings:
    """Settings from the tables `data`, `model`, `train` and, for a model that `rewires`, `rewiring`.

    `complete` checks and fills the model's options.
    """
    tables = ("data", "model", "train", *(["rewiring"] if rewires else []))
    for name in sections:
        if name == "rewiring" and not rewires:
            raise UserError(f"model {model!r} does not rewire the graph: it takes no setting of the table 'rewiring'")
        if name not in tables:
            raise UserError(f"there is no setting {name!r}: {did_you_mean(name, tables)}")
    settings = Settings(
        dataset=dataset,
        model=model,
        options=complete(model, sections.get("model", {})),
        data=_fill(DataSettings(), "data", sections.get("data", {})),
        train=_fill(TrainSettings(), "train", sections.get("train", {})),
        rewiring=rewiring_settings(sections.get("rewiring", {})) if rewires else None,
    )
    _check_values(settings)
    return settings


def rewiring_settings(values: Mapping[str, Any]) -> RewiringSettings:
    """Rewiring settings with some values changed; unknown names are answered with a suggestion.

    What would have no effect is refused: a regularizer and its weight belong together (0 switches it off), and an
    agreement needs several samples.
    """
    settings: RewiringSettings = _fill(RewiringSettings(), "rewiring", constant_temperature(values))
    _check(settings, "rewiring", _REWIRING_RULES)
    if settings.regularizer != "none" and "regularizer_weight" not in values:
        raise UserError(f"the regularizer {settings.regularizer!r} needs its weight: set rewiring.regularizer_weight")
    if settings.regularizer_weight and "regularizer" not in values:
        raise UserError("rewiring.regularizer_weight is the weight of no regularizer: set rewiring.regularizer")
    if settings.agreement and settings.samples < 2:
        raise UserError("rewiring.agreement compares several drawn graphs: set rewiring.samples to 2 or more")
    return settings


def constant_temperature(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rewiring settings in which `tau` without a `tau_end` stands for both."""
    return {"tau_end": values["tau"], **values} if "tau" in values else values


def _fill(defaults: Any, section: str, values: Mapping[str, Any]) -> Any:
    known = {item.name: getattr(defaults, item.name) for item in dataclasses.fields(defaults)}
    for key, value in values.items():
        if key not in known:
            raise UserError(f"there is no setting '{section}.{key}': {did_you_mean(key, known)}")
        known[key] = checked_like(known[key], value, f"setting '{section}.{key}'")
    return dataclasses.replace(defaults, **known)


def _check_values(settings: Settings) -> None:
    _check(settings.data, "data", {"features": _one_of("raw", "row-normalized")})
    _check(settings.train, "train", _TRAIN_RULES)


def _check(values: Any, section: str, rules: Mapping[str, tuple[Callable[[Any], bool], str]]) -> None:
    for key, (holds, wanted) in rules.items():
        value = getattr(values, key)
        if not holds(value):
            raise UserError(f"setting '{section}.{key}' must be {wanted}, but is {value!r}")


def _one_of(*names: str) -> tuple[Callable[[Any], bool], str]:
    return lambda value: value in names, " or ".join(map(repr, names))


_ABOVE_0: tuple[Callable[[Any], bool], str] = (lambda value: value > 0, "above 0")
_AT_LEAST_0: tuple[Callable[[Any], bool], str] = (lambda value: value >= 0, "0 or more")
_AT_LEAST_1: tuple[Callable[[Any], bool], str] = (lambda value: value >= 1, "1 or more")
_SHARE: tuple[Callable[[Any], bool], str] = (lambda value: 0 < value < 1, "between 0 and 1, neither included")
_TRAIN_RULES = {
    "lr": _ABOVE_0,
    "weight_decay": _AT_LEAST_0,
    "epochs": _AT_LEAST_1,
    "patience": _AT_LEAST_0,
    "eval_every": _AT_LEAST_1,
}
_REWIRING_RULES = {
    "per_node": _AT_LEAST_0,
    "pairs": _AT_LEAST_0,
    "similarity": _one_of("cosine", "dot"),
    "channels": _AT_LEAST_1,
    "beliefs": _one_of("features", "graph"),
    "origin": _one_of("fixed", "learned", "none"),
    "keep": _SHARE,
    "add": _SHARE,
    "tau": _ABOVE_0,
    "tau_end": _ABOVE_0,
    "samples": _AT_LEAST_1,
    "evaluation": _one_of("threshold", "expected", "mean_of_samples"),
    "evaluation_samples": _AT_LEAST_1,
    "regularizer_weight": _AT_LEAST_0,
    "target_degree": _AT_LEAST_0,
    "prior": _AT_LEAST_0,
    "agreement": _AT_LEAST_0,
    "agreement_ramp": (lambda value: 0 <= value <= 1, "between 0 and 1"),
    "lr": _ABOVE_0,
    "weight_decay": _AT_LEAST_0,
    "decoys": _AT_LEAST_0,
    "decoy_weight": _AT_LEAST_0,
}
