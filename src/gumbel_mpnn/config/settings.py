"""Settings of a run: each is declared once, with its default, allowed values, help and value in older runs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from gumbel_mpnn._util.errors import UserError, did_you_mean
from gumbel_mpnn.config.registry import checked_like

SCHEMA = 3
"""Increased when the same settings give other numbers than before, so that older runs are not reused."""

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
NOTHING = object()


def setting(
    default: T, help: str, rule: Rule | None = None, *, assumed: Any = NOTHING, option: str = "", space: Any = None
) -> T:
    """Declare a setting of the type of its default.

    Args:
        default: Default value.
        help: One sentence for the user.
        rule: Condition on values, besides their type.
        assumed: Value of the setting in runs that were made before the setting existed. It is left out of fingerprints,
            so that these runs are still found. Every new setting needs it, and it stays if the default changes.
        option: Name of the component option that the setting stands for, such as `candidates.per_node`.
        space: Values that `tune` searches by default, a list or a range as in a space file; None for none.
    """
    about = {"help": help, "rule": rule, "assumed": assumed, "option": option, "space": space}
    return field(default=default, metadata=about)


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
    attack: str = setting(
        "",
        "Name of an attack on the edges, for data sets that come with attacks; empty for the clean graph.",
        assumed="",
    )
    metric: str = setting(
        "",
        "Metric of the runs, which also picks the epoch: `accuracy`, `balanced_accuracy`, `macro_f1`, `roc_auc` or"
        " `average_precision`; empty for that of the data, which is accuracy unless the data names another.",
        assumed="",
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
    tf32: bool = setting(
        True, "Whether a GPU may multiply matrices in TF32, several times faster than float32; no effect on a CPU."
    )
    bfloat16: bool = setting(
        False,
        "Whether to store activations in 16 bits if a layer supports it, with sums and parameters in 32; this saves"
        " memory and time on a GPU, most of all for a GCN.",
        assumed=False,
    )
    select: str = setting(
        "validation",
        "Epoch whose model is kept: that of the best `validation` value, or the `last`, for which patience is 0 and"
        " need not be set.",
        one_of("validation", "last"),
        assumed="validation",
    )
    select_from: int = setting(
        0,
        "First epoch whose model may be kept, and from which patience counts, the last epoch at the latest: for losses"
        " that grow over the first epochs, such as `rewiring.agreement_ramp`.",
        AT_LEAST_0,
        assumed=0,
    )
    class_weights: str = setting(
        "none",
        "`none`, or `balanced`: in the classification loss, nodes weigh inversely to the frequency of their class among"
        " the training nodes of the split.",
        one_of("none", "balanced"),
        assumed="none",
    )
    partitions: int = setting(
        1,
        "Number of parts of the graph that are trained on one after the other in each epoch, so that memory is bounded"
        " by the largest part; 1 for the whole graph at once.",
        AT_LEAST_1,
        assumed=1,
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
        assumed="local",
        space=["none", "two_hop", "local", "global"],
    )
    per_node: int = setting(
        5,
        "Number of candidates per node, for strategies that count by node.",
        AT_LEAST_0,
        assumed=5,
        option="candidates.per_node",
    )
    pairs: int = setting(
        0,
        "Total number of candidates, for strategies that count pairs; 0 for twice the number of edges.",
        AT_LEAST_0,
        assumed=0,
        option="candidates.pairs",
    )
    similarity: str = setting(
        "cosine",
        "`cosine` or `dot` (as in the paper), for strategies that compare features.",
        one_of("cosine", "dot"),
        assumed="cosine",
        option="candidates.similarity",
    )
    scorer: str = setting(
        "class-space",
        "The edge model: how a pair of nodes is scored.",
        assumed="bilinear",
        space=["bilinear", "class-space", "mixed"],
    )
    channels: int = setting(
        64, "Width of the features that a scorer compares.", AT_LEAST_1, assumed=64, option="scorer.channels"
    )
    beliefs: str = setting(
        "features",
        "Source of the class probabilities of a scorer: `features` (a head that sees no edges), `graph` (the model on"
        " the given edges) or `rewired` (the model on the graph that the probabilities of the head give).",
        one_of("features", "graph", "rewired"),
        assumed="features",
    )
    origin: str = setting(
        "fixed",
        "Whether given edges start likely and candidates unlikely: `fixed`, `learned` (a trainable bias), or `none`.",
        one_of("fixed", "learned", "none"),
        assumed="fixed",
    )
    keep: float = setting(
        0.95, "Initial probability of a given edge.", PROBABILITY, assumed=0.95, space={"low": 0.5, "high": 0.99}
    )
    add: float = setting(0.05, "Initial probability of a candidate.", PROBABILITY, assumed=0.05)
    symmetric: bool = setting(
        True,
        "Whether a pair of an undirected graph is scored and drawn once for both directions; otherwise i → j and j → i"
        " are two pairs, as in the paper, and the rewired graph is directed.",
        assumed=True,
    )
    sigmoids: int = setting(
        1,
        "Number of sigmoids between a score and the probability of an edge; with 2, as printed in the paper,"
        " probabilities lie between .5 and .73.",
        one_of(1, 2),
        assumed=1,
    )
    tau: float = setting(
        1.0,
        "Temperature at the first epoch, and at all epochs if it is set without `tau_end`; the paper uses 0.1.",
        ABOVE_0,
        assumed=1.0,
    )
    tau_end: float = setting(0.5, "Temperature at the last epoch, reached geometrically.", ABOVE_0, assumed=0.5)
    hard: bool = setting(
        True, "Weights 0 and 1 with a straight-through gradient; otherwise relaxed weights.", assumed=True
    )
    samples: int = setting(1, "Number of graphs drawn in each step.", UP_TO_1000, assumed=1)
    evaluation: str = setting(
        "expected",
        "The graph of evaluation: `threshold` (pairs of probability ½ or more), `expected` or `mean_of_samples`.",
        one_of("threshold", "expected", "mean_of_samples"),
        assumed="expected",
    )
    evaluation_samples: int = setting(8, "Number of graphs of `mean_of_samples`.", UP_TO_1000, assumed=8)
    regularizer: str = setting("none", "Name of the regularizer, or `none`.", assumed="none")
    regularizer_weight: float = setting(
        0.0, "Weight of the regularizer in the loss.", AT_LEAST_0, assumed=0.0, option="regularizer.weight"
    )
    target_degree: float = setting(
        5.0,
        "Target degree of the regularizer `degree` (`dc`); 0 for 5 above the mean degree of the given graph.",
        AT_LEAST_0,
        assumed=5.0,
        option="regularizer.target",
    )
    prior: float = setting(
        1.0,
        "Weight of the prior, which pulls the probabilities of pairs towards their initial values.",
        AT_LEAST_0,
        assumed=0.0,
        space=[0.0, 1.0, 10.0],
    )
    pair_loss: float = setting(
        0.0,
        "Weight of a loss of the scorer: whether the two nodes of a pair have the same class, over pairs of training"
        " nodes.",
        AT_LEAST_0,
        assumed=0.0,
    )
    agreement: float = setting(
        0.0,
        "Weight of the agreement between predictions on several drawn graphs; needs `samples` of 2 or more.",
        AT_LEAST_0,
        assumed=0.0,
    )
    agreement_ramp: float = setting(
        0.0, "Share of the epochs over which the weight of the agreement grows from 0.", SHARE, assumed=0.0
    )
    lr: float = setting(0.01, "Learning rate of the scorer and of the bias by origin.", ABOVE_0, assumed=0.01)
    weight_decay: float = setting(0.0, "Weight decay of the scorer and of the bias by origin.", AT_LEAST_0, assumed=0.0)
    decoys: float = setting(
        0.0,
        "Random pairs shown to the scorer as if they were given edges, up to this many for each edge; with several"
        " samples, the first has none.",
        AT_LEAST_0,
        assumed=0.0,
    )
    decoy_weight: float = setting(1.0, "Weight of the decoy loss.", AT_LEAST_0, assumed=1.0)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of components that differ from their default, such as `regularizer.margin`."""

    def options_of(self, component: str, known: Collection[str]) -> dict[str, Any]:
        """Options of a component (`candidates`, `scorer` or `regularizer`), as far as it knows them."""
        shared = {option: getattr(self, name) for option, name in SHARED_OPTIONS.items()}
        every = _of(component, shared) | self.own_options(component)
        return {name: value for name, value in every.items() if name in known}

    def own_options(self, component: str) -> dict[str, Any]:
        """Options of a component that are not settings themselves."""
        return _of(component, self.options)


def _of(component: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of one component, without its name as a prefix."""
    return {key.partition(".")[2]: value for key, value in options.items() if key.startswith(f"{component}.")}


COMPONENTS = ("candidates", "scorer", "regularizer")
"""Rewiring settings that choose a component, which may have options."""
SHARED_OPTIONS = {
    item.metadata["option"]: item.name for item in dataclasses.fields(RewiringSettings) if item.metadata.get("option")
}
"""Options of components that are settings themselves: `candidates.per_node` → `per_node`."""


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
        """Read settings that `to_dict` wrote, possibly before some of them existed.

        Raises a `UserError` for settings that only a newer version knows.
        """
        for table in ("model", "data", "train"):
            if not isinstance(values.get(table), Mapping):
                raise UserError(f"the settings of a run have no table {table!r}: its record was changed")
        values = {table: {**ASSUMED[table], **of} if table in TABLES else of for table, of in values.items()}
        for table, of in values.items():
            if table not in ("dataset", "model"):
                _check_known(table, of)
        options = dict(values["model"])
        rewiring = None
        if "rewiring" in values:
            plain = {name: value for name, value in values["rewiring"].items() if "." not in name}
            dotted = {name: value for name, value in values["rewiring"].items() if "." in name}
            rewiring = RewiringSettings(**plain, options=dotted)
        return cls(
            dataset=values["dataset"],
            model=options.pop("name"),
            options=options,
            data=DataSettings(**values["data"]),
            train=TrainSettings(**values["train"]),
            rewiring=rewiring,
        )

    def fingerprint(self, data_hash: str) -> str:
        """Identify these settings on this data by 16 hex digits; values in `ASSUMED` are left out."""
        values = self.to_dict()
        for table in ASSUMED.keys() & values.keys():
            assumed = ASSUMED[table]
            values[table] = {
                name: value for name, value in values[table].items() if name not in assumed or value != assumed[name]
            }
        text = json.dumps([SCHEMA, values, data_hash], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check_known(table: str, values: Mapping[str, Any]) -> None:
    """Raise a `UserError` that names the first setting of a table that this version does not know."""
    known = {item.name for item in dataclasses.fields(TABLES[table])} if table in TABLES else set[str]()
    for name in values:
        if name not in known and not (table == "rewiring" and "." in name):
            raise UserError(
                f"this version does not know the setting '{table}.{name}' of a run: install the version of gumbel-mpnn"
                " that trained it, as its record names it"
            )


def _assumed(table: type) -> dict[str, Any]:
    declared = {item.name: item.metadata.get("assumed", NOTHING) for item in dataclasses.fields(table)}
    return {name: value for name, value in declared.items() if value is not NOTHING}


TABLES: Mapping[str, Any] = {"data": DataSettings, "train": TrainSettings, "rewiring": RewiringSettings}
ASSUMED: Mapping[str, Mapping[str, Any]] = {
    "model": {"shortcut": "linear", "samples": 1, "agreement": 0.0, "agreement_ramp": 0.0},
    **{name: _assumed(table) for name, table in TABLES.items()},
}
"""Values of settings that are missing in fingerprints and older records, by table; those of `model` are of options that
were added to models later."""


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
    known = ("data", "model", "train", *(["rewiring"] if rewires else []))
    for name in tables:
        if name == "rewiring" and not rewires:
            raise UserError(
                f"model {model!r} does not rewire the graph: leave out the settings of the table 'rewiring'"
            )
        if name not in known:
            raise UserError(f"there is no setting {name!r}: {did_you_mean(name, known)}")
    train: TrainSettings = _fill(TrainSettings(), "train", without_patience(tables.get("train", {})))
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
    """Make rewiring settings from the values that differ from the defaults.

    Raises a `UserError` for settings without effect: a regularizer needs a weight (which may be 0), a weight needs a
    regularizer, and agreement needs several samples.
    """
    values = constant_temperature(values)
    options = {name: value for name, value in values.items() if name.startswith(tuple(f"{c}." for c in COMPONENTS))}
    plain = {name: value for name, value in values.items() if name not in options}
    settings: RewiringSettings = dataclasses.replace(_fill(RewiringSettings(), "rewiring", plain), options=options)
    if settings.regularizer != "none" and "regularizer_weight" not in values:
        raise UserError(f"the regularizer {settings.regularizer!r} needs a weight: set rewiring.regularizer_weight")
    if settings.regularizer_weight and "regularizer" not in values:
        raise UserError("rewiring.regularizer_weight is set without a regularizer: set rewiring.regularizer")
    if settings.agreement and settings.samples < 2:
        raise UserError("rewiring.agreement compares several drawn graphs: set rewiring.samples to 2 or more")
    return settings


def constant_temperature(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set `tau_end` to `tau` if only `tau` is given."""
    return {"tau_end": values["tau"], **values} if "tau" in values else values


def without_patience(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set `patience` to 0 if it is not given and the last epoch is selected, which must then be reached."""
    return {"patience": 0, **values} if values.get("select") == "last" else values


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
