"""Settings of a run, each declared once with default, allowed values, help and what `tune` searches; and replicas."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from gumbel_mpnn.settings.registry import checked_like
from gumbel_mpnn.util.errors import UserError, did_you_mean

T = TypeVar("T")


class Rule(NamedTuple):
    """Condition on a value, and how a message describes allowed values."""

    holds: Callable[[Any], bool]
    wanted: str


def one_of(*values: str | int) -> Rule:
    """Rule that a value is one of these."""
    return Rule(lambda value: value in values, " or ".join(map(repr, values)))


ABOVE_0 = Rule(lambda value: value > 0, "above 0")
AT_LEAST_0 = Rule(lambda value: value >= 0, "0 or more")
AT_LEAST_1 = Rule(lambda value: value >= 1, "1 or more")
UP_TO_1000 = Rule(lambda value: 1 <= value <= 1000, "between 1 and 1,000")
SHARE = Rule(lambda value: 0 <= value <= 1, "between 0 and 1")
PROBABILITY = Rule(lambda value: 0 < value < 1, "between 0 and 1, neither included")


def setting(default: T, help: str, rule: Rule | None = None, *, space: Any = None) -> T:
    """Declare a setting of the type of its default; `space` is what `tune` searches by default, as in a space file."""
    return field(default=default, metadata={"help": help, "rule": rule, "space": space})


@dataclass(frozen=True, order=True)
class Replica:
    """One run of a setting: a split and a seed. Replicas of a setting train together."""

    split: int
    seed: int

    def __str__(self) -> str:
        return f"split{self.split}-seed{self.seed}"

    @classmethod
    def parse(cls, name: str) -> Replica:
        """Replica with a name that was returned by `str`; also the name of its folder."""
        match = re.fullmatch(r"split(\d+)-seed(-?\d+)", name)
        if match is None:
            raise ValueError(f"{name!r} is not the name of a replica")
        return cls(int(match[1]), int(match[2]))

    @property
    def stream_seed(self) -> int:
        """Seed of the random stream, which differs between splits as well."""
        return self.seed * 1_000_003 + self.split


@dataclass(frozen=True)
class DataSettings:
    """Settings of the data: how it is read and split."""

    protocol: str = setting("", "Name of the split protocol; empty for the data set's own.")
    features: str = setting(
        "raw",
        "`raw`; `row-normalized`: each node's features divided by the sum of their absolute values; `standardized`:"
        " each column minus its mean, divided by its standard deviation, over the training nodes of the split;"
        " `structure`: positions of the nodes among the communities of the given edges, in place of features; or"
        " `with-structure`: the raw features and such positions beside them, for graphs whose edges may be poisoned.",
        one_of("raw", "row-normalized", "standardized", "structure", "with-structure"),
        space=["raw", "row-normalized"],
    )
    undirected: bool = setting(True, "Whether edges are undirected.")
    metric: str = setting(
        "",
        "Metric of the runs, which also picks the epoch: `accuracy`, `balanced_accuracy`, `macro_f1`, `roc_auc` or"
        " `average_precision`; empty for that of the data, which is accuracy unless the data names another.",
    )


@dataclass(frozen=True)
class TrainSettings:
    """Settings of training."""

    lr: float = setting(1e-3, "Learning rate of Adam.", ABOVE_0, space={"low": 1e-3, "high": 0.03, "log": True})
    weight_decay: float = setting(0.0, "Weight decay of Adam.", AT_LEAST_0, space=[0.0, 5e-5, 5e-4, 5e-3])
    epochs: int = setting(500, "Largest number of epochs.", AT_LEAST_1)
    patience: int = setting(
        100, "Epochs without a better validation value after which a replica stops; 0 for never.", AT_LEAST_0
    )
    eval_every: int = setting(1, "Epochs between two evaluations.", AT_LEAST_1)
    bfloat16: bool = setting(
        False,
        "Whether to store activations in 16 bits if a layer supports it, with sums and parameters in 32; this saves"
        " memory and time on a GPU, most of all for a GCN.",
    )
    select: str = setting(
        "validation",
        "Epoch whose model is kept: that of the best `validation` value, or the `last`, for which patience is 0 and"
        " need not be set.",
        one_of("validation", "last"),
    )
    select_from: int = setting(
        0,
        "First epoch whose model may be kept, and from which patience counts, the last epoch at the latest: for losses"
        " that grow over the first epochs, such as `rewiring.agreement_ramp`.",
        AT_LEAST_0,
    )
    class_weights: str = setting(
        "none",
        "`none`, or `balanced`: in the classification loss, nodes weigh inversely to the frequency of their class among"
        " the training nodes of the split.",
        one_of("none", "balanced"),
    )
    partitions: int = setting(
        1,
        "Number of parts of the graph that are trained on one after the other in each epoch, so that memory is bounded"
        " by the largest part; 1 for the whole graph at once.",
        AT_LEAST_1,
    )

    @property
    def first_kept(self) -> int:
        """First epoch whose model may be kept: `select_from`, or the last epoch if this comes first."""
        return min(self.select_from, self.epochs)


@dataclass(frozen=True)
class RewiringSettings:
    """Settings of rewiring."""

    candidates: str = setting(
        "local",
        "Pairs that may become edges: the name of a candidate strategy, `none` for the given edges only, or `data` for"
        " the candidates of the data, which is the default if the data has candidates and no strategy is set.",
        space=["none", "two_hop", "local", "global"],
    )
    scorer: str = setting(
        "class-space",
        "How a pair of nodes is scored.",
        space=["bilinear", "class-space", "mixed"],
    )
    beliefs: str = setting(
        "features",
        "Source of the class probabilities of a scorer: `features` (a head that sees no edges), `graph` (the model on"
        " the given edges) or `rewired` (the model on the graph that the probabilities of the head give).",
        one_of("features", "graph", "rewired"),
    )
    origin: str = setting(
        "fixed",
        "Whether given edges start likely and candidates unlikely: `fixed`, `learned` (a trainable bias), or `none`.",
        one_of("fixed", "learned", "none"),
    )
    keep: float = setting(0.95, "Initial probability of a given edge.", PROBABILITY, space={"low": 0.5, "high": 0.99})
    add: float = setting(0.05, "Initial probability of a candidate.", PROBABILITY)
    symmetric: bool = setting(
        True,
        "Whether a pair of an undirected graph is scored and drawn once for both directions; otherwise i → j and j → i"
        " are two pairs, as in the paper, and the rewired graph is directed.",
    )
    tau: float = setting(
        1.0,
        "Temperature at the first epoch, and at all epochs if it is set without `tau_end`; the paper uses 0.1.",
        ABOVE_0,
    )
    tau_end: float = setting(0.5, "Temperature at the last epoch, reached geometrically.", ABOVE_0)
    hard: bool = setting(True, "Weights 0 and 1 with a straight-through gradient; otherwise relaxed weights.")
    samples: int = setting(1, "Number of graphs drawn in each step.", UP_TO_1000)
    evaluation: str = setting(
        "expected",
        "The graph of evaluation: `threshold` (pairs of probability ½ or more), `expected` (all pairs, weighted by"
        " their probability) or `mean_of_samples` (the mean prediction on eight graphs).",
        one_of("threshold", "expected", "mean_of_samples"),
    )
    regularizer: str = setting("none", "Name of the regularizer, or `none`.")
    prior: float = setting(
        1.0,
        "Weight of the prior, which pulls the probabilities of pairs towards their initial values.",
        AT_LEAST_0,
        space=[0.0, 1.0, 10.0],
    )
    agreement: float = setting(
        0.0,
        "Weight of the agreement between predictions on several drawn graphs; needs `samples` of 2 or more.",
        AT_LEAST_0,
    )
    agreement_ramp: float = setting(
        0.0, "Share of the epochs over which the weight of the agreement grows from 0.", SHARE
    )
    lr: float = setting(0.01, "Learning rate of the scorer and of the bias by origin.", ABOVE_0)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of components, such as `regularizer.margin`."""

    def options_of(self, component: str) -> dict[str, Any]:
        """Options of a component (`candidates`, `scorer` or `regularizer`)."""
        prefix = f"{component}."
        return {key.removeprefix(prefix): value for key, value in self.options.items() if key.startswith(prefix)}


COMPONENTS = ("candidates", "scorer", "regularizer")
"""Rewiring settings that choose a component, which may have options."""


@dataclass(frozen=True)
class Settings:
    """All settings that the results of a run depend on, apart from the data, the split and the seed."""

    dataset: str
    model: str
    options: Mapping[str, Any]
    """All options of the model."""
    data: DataSettings = field(default_factory=DataSettings)
    train: TrainSettings = field(default_factory=TrainSettings)
    rewiring: RewiringSettings | None = None
    """None for models that do not rewire the graph."""

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values."""
        values = {
            "dataset": self.dataset,
            "model": {"name": self.model, **self.options},
            "data": dataclasses.asdict(self.data),
            "train": dataclasses.asdict(self.train),
        }
        if self.rewiring is not None:
            rewiring = dataclasses.asdict(self.rewiring)
            options = rewiring.pop("options")
            values["rewiring"] = {**rewiring, **options}
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Read settings that `to_dict` wrote."""
        try:
            options, rewiring = dict(values["model"]), values.get("rewiring")
            return cls(
                dataset=values["dataset"],
                model=options.pop("name"),
                options=options,
                data=DataSettings(**values["data"]),
                train=TrainSettings(**values["train"]),
                rewiring=None if rewiring is None else RewiringSettings(**_options_apart(rewiring)),
            )
        except (TypeError, KeyError) as error:
            raise UserError(f"the settings of a run are not those of this version of gumbel-mpnn: {error}") from None

    def fingerprint(self, data_hash: str) -> str:
        """Identify these settings on this data by 16 hex digits."""
        text = json.dumps([self.to_dict(), data_hash], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _options_apart(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of rewiring settings with the options of components, which have a dot in their name, as `options`."""
    options = {name: value for name, value in values.items() if "." in name}
    return {name: value for name, value in values.items() if name not in options} | {"options": options}


TABLES: Mapping[str, Any] = {"data": DataSettings, "train": TrainSettings, "rewiring": RewiringSettings}
"""Classes of settings by the name of their table."""


def resolve(
    dataset: str,
    model: str,
    tables: Mapping[str, Any],
    complete: Callable[[str, Mapping[str, Any]], Mapping[str, Any]],
    rewires: bool = False,
) -> Settings:
    """Make settings from the tables `data`, `model` and `train`, and `rewiring` for a model that rewires the graph.

    `complete` checks the options of the model and adds the defaults of the others.
    """
    for name in tables:
        if name not in ("model", *TABLES):
            raise UserError(f"there is no setting {name!r}: {did_you_mean(name, ('model', *TABLES))}")
    if "rewiring" in tables and not rewires:
        raise UserError(f"model {model!r} does not rewire the graph: leave out the settings of the table 'rewiring'")
    train: TrainSettings = _fill(TrainSettings(), "train", with_what_follows(tables).get("train", {}))
    if train.select == "last" and train.patience:
        raise UserError("train.select=last keeps the model of the last epoch: set train.patience to 0")
    return Settings(
        dataset=dataset,
        model=model,
        options=complete(model, tables.get("model", {})),
        data=_fill(DataSettings(), "data", tables.get("data", {})),
        train=train,
        rewiring=rewiring_settings(tables.get("rewiring", {})) if rewires else None,
    )


def rewiring_settings(values: Mapping[str, Any]) -> RewiringSettings:
    """Make rewiring settings from the values that differ from the defaults, which may include options of components.

    Raises a `UserError` for agreement without effect, since it needs several samples.
    """
    values = _options_apart(with_what_follows({"rewiring": flat_options(values)})["rewiring"])
    options = values.pop("options")
    for name in options:
        if name.partition(".")[0] not in COMPONENTS:
            raise UserError(
                f"there is no setting 'rewiring.{name}': {did_you_mean(name.partition('.')[0], COMPONENTS)}"
            )
    settings: RewiringSettings = dataclasses.replace(_fill(RewiringSettings(), "rewiring", values), options=options)
    if settings.agreement and settings.samples < 2:
        raise UserError("rewiring.agreement compares several drawn graphs: set rewiring.samples to 2 or more")
    return settings


def flat_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Write components with their options as single settings.

    `candidates = {name = "two_hop", per_node = 3}` in a file sets `candidates` and `candidates.per_node`, and so does
    such a dictionary in Python.
    """
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if name in COMPONENTS and isinstance(value, Mapping):
            flat |= {name if option == "name" else f"{name}.{option}": each for option, each in value.items()}
        else:
            flat[name] = value
    return flat


def with_what_follows(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Add settings that follow from those given, so that they are not combined with others of a preset.

    If only `tau` is given, `tau_end` is the same. If the last epoch is selected, there is no patience.
    """
    complete: dict[str, Any] = dict(tables)
    if "tau" in tables.get("rewiring", {}):
        complete["rewiring"] = {"tau_end": tables["rewiring"]["tau"], **tables["rewiring"]}
    if tables.get("train", {}).get("select") == "last":
        complete["train"] = {"patience": 0, **tables["train"]}
    return complete


def _fill(defaults: Any, table: str, values: Mapping[str, Any]) -> Any:
    """Replace values of `defaults`, each checked against its declaration."""
    declared = {item.name: item for item in dataclasses.fields(defaults) if "help" in item.metadata}
    changes = {}
    for name, value in values.items():
        if name not in declared:
            raise UserError(f"there is no setting '{table}.{name}': {did_you_mean(name, declared)}")
        what = f"setting '{table}.{name}'"
        changes[name] = checked_like(getattr(defaults, name), value, what)
        rule = declared[name].metadata["rule"]
        if rule is not None and not rule.holds(changes[name]):
            raise UserError(f"{what} must be {rule.wanted}, but is {changes[name]!r}")
    return dataclasses.replace(defaults, **changes)
