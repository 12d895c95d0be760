"""The base class of models that `fit` can train, the plain models, and the base class of models around one of them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any, ClassVar, cast

from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn.convs import ChannelConv, Conv, DenseConv, GATConv, GCNConv, SAGEConv
from gumbel_mpnn.nn.features import Features, model_input
from gumbel_mpnn.nn.layers import Linear, ReplicaModule, activate, cross_entropy, dropout, dropout_features, make_norm
from gumbel_mpnn.nn.replica import ReplicaRNG, replica_seeds
from gumbel_mpnn.settings import Registry, RewiringSettings, Settings
from gumbel_mpnn.util.errors import UserError, check_at_least, check_between, check_whole, did_you_mean, unknown_name

SHORTCUTS = ("linear", "identity", "inner")
NEEDED, OF_REPLICAS = ("in_channels", "out_channels"), ("replicas", "seeds")
"""Arguments of every backbone besides its options."""
Report = Callable[[int, int], None]
"""Called with the number of steps done and the total number of steps."""


class TrainableModel(ReplicaModule, ABC):
    """A model with R replicas that `fit` can train by name.

    Register a subclass with `@models.register("my-model")`. Its constructor takes the keyword arguments `in_channels`,
    `out_channels`, `replicas` and `seeds`; its other arguments with a default are the options of the model.
    """

    rewires: ClassVar[bool] = False
    """Whether the constructor takes the settings of the table `rewiring` as the argument `rewiring`."""
    presets_of: ClassVar[tuple[str, ...]] = ()
    """Models whose preset is used if the model has none of its own, the first that has one. A backbone stands for the
    backbone that the user asks for."""
    space: ClassVar[Mapping[str, Any]] = {}
    """Options that `tune` searches by default, besides those of the base classes and of the backbone: a list of values
    or a range such as `{"low": 0.1, "high": 0.9}` for each. Learning rate and weight decay are searched anyway."""
    samples: int = 1
    """Number of graphs on which a training step computes predictions, which take as much memory."""

    @property
    @abstractmethod
    def rng(self) -> ReplicaRNG:
        """Random streams of training, one per replica."""

    @abstractmethod
    def training_loss(
        self,
        x: Features,
        graph: PairGraph,
        y: Tensor,
        train_mask: Tensor,
        progress: Tensor,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Loss of every replica, [R].

        Args:
            x: Features [N, in], or [R, N, in] if they differ by replica.
            graph: Graph to train on.
            y: Labels, [N].
            train_mask: Training nodes of every replica, [R, N].
            progress: Share of the epochs done, a scalar.
            weight: Weight of every node in the classification loss, [R, N]; None for 1.
        """

    @classmethod
    def settle(cls, rewiring: RewiringSettings) -> RewiringSettings:
        """Rewiring settings that the model uses when asked for `rewiring`: the same by default."""
        return rewiring

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """Prepare the graph once before training; returns `data` by default."""
        return data

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """Groups of parameters with learning rates and weight decays, in the format of torch's optimizers."""
        train = settings.train
        return [{"params": list(self.parameters()), "lr": train.lr, "weight_decay": train.weight_decay}]

    def pair_probability(self, x: Features, graph: PairGraph) -> Tensor | None:
        """Probability of every pair to be an edge, [R, P]; None for a model that does not learn a graph."""
        return None


models: Registry[TrainableModel] = Registry("model", reserved=(*NEEDED, *OF_REPLICAS, "rewiring"))


class Backbone(TrainableModel):
    """`num_layers` blocks of layer → norm → ReLU → dropout, followed by a linear head.

    All arguments but the first are keyword-only: PyG's models have arguments of the same names in a different order.

    Args:
        in_channels: Number of features per node.
        out_channels: Number of classes.
        hidden_channels: Width of every layer.
        num_layers: Number of layers before the head.
        dropout: Dropout probability after every layer.
        norm: `layer`, `batch` or `none`.
        residual: Add a layer's input to its output, as `shortcut` says.
        shortcut: What a residual adds: `linear` for a linear map of the input, before norm and ReLU; `identity` for the
            input itself, after norm, ReLU and dropout; `inner` for the input itself, before norm and ReLU. A first
            layer whose input are the features, which have another width, adds a linear map of them.
        input_layer: Start with a linear map to `hidden_channels` and dropout.
        input_dropout: Dropout probability of the features.
        replicas: Number of models R trained together, with output [R, N, out]; None for one model with output [N, out].
        seeds: One seed per replica; drawn from torch's global generator by default.
    """

    layer: ClassVar[type[Conv]]
    space: ClassVar[Mapping[str, Any]] = {
        "hidden_channels": [64, 128, 256, 512],
        "num_layers": {"low": 1, "high": 5},
        "dropout": {"low": 0.0, "high": 0.8, "step": 0.1},
        "norm": ["none", "layer", "batch"],
        "residual": [False, True],
    }

    def __init__(
        self,
        in_channels: int,
        *,
        out_channels: int,
        hidden_channels: int = 256,
        num_layers: int = 2,
        dropout: float = 0.5,
        norm: str = "none",
        residual: bool = False,
        shortcut: str = "linear",
        input_layer: bool = False,
        input_dropout: float = 0.0,
        replicas: int | None = None,
        seeds: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        count = 1 if replicas is None else replicas
        check_at_least(0, in_channels=in_channels)
        check_at_least(1, out_channels=out_channels)
        check_whole(num_layers=num_layers, hidden_channels=hidden_channels, replicas=count)
        check_between(1, 2**20, num_layers=num_layers, hidden_channels=hidden_channels, replicas=count)
        check_between(0, 1, dropout=dropout, input_dropout=input_dropout)
        if shortcut not in SHORTCUTS:
            raise unknown_name("shortcut", shortcut, SHORTCUTS)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.replicas, self.dropout, self.input_dropout = replicas, dropout, input_dropout
        self.seeds = replica_seeds(seeds, count)
        self.shortcut = shortcut if residual else None
        width = hidden_channels if input_layer else in_channels
        widths = [width] + [hidden_channels] * num_layers
        mapped = num_layers if self.shortcut == "linear" else int(self.shortcut is not None and not input_layer)
        self.input = Linear(count, in_channels, hidden_channels) if input_layer else None
        self.convs = nn.ModuleList(self.make_conv(count, *pair) for pair in pairwise(widths))
        self.shortcuts = nn.ModuleList(Linear(count, i, hidden_channels) for i in widths[:mapped])
        self.norms = nn.ModuleList(make_norm(norm, count, hidden_channels) for _ in range(num_layers))
        self.head = Linear(count, hidden_channels, out_channels)
        self._rng: ReplicaRNG | None = None
        self.reset_parameters()

    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> Conv:
        """Create one layer of this model, by default of the class `layer`."""
        return self.layer(replicas, in_channels, out_channels)

    def reset_parameters(self) -> None:
        """Initialize all parameters from the seeds of the replicas."""
        self.init_parameters(ReplicaRNG(self.seeds, "init"))

    @property
    def rng(self) -> ReplicaRNG:
        """Random streams of training, one per replica, on the device of the model."""
        if self._rng is None or self._rng.device != self.head.weight.device:
            self._rng = ReplicaRNG(self.seeds, "train", self.head.weight.device)
        return self._rng

    def forward(
        self, x: Features | Data, edge_index: PairGraph | Tensor | None = None, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Logits of every node, [N, out] or [R, N, out].

        Args:
            x: Features [N, in] (dense or sparse), or a `Data`.
            edge_index: Edges [2, E], which are treated as undirected, or a `PairGraph`; taken from the `Data` by
                default.
            edge_weight: With edges, a weight for each edge, [E]; duplicates and opposite directions are averaged. With
                a `PairGraph` or a `Data`, pair weights [R, P] or [P]. None for 1.
        """
        x, graph, weight = model_input(
            x, edge_index, edge_weight, in_channels=self.in_channels, dtype=self.head.weight.dtype
        )
        logits = self.compute(x, WeightedGraph.of(graph, weight, x.dtype))
        return logits if self.replicas is not None else logits.squeeze(0)

    def training_loss(
        self,
        x: Features,
        graph: PairGraph,
        y: Tensor,
        train_mask: Tensor,
        progress: Tensor,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Training loss of each replica, [R]; `progress` is the share of training done."""
        return cross_entropy(self.compute(x, WeightedGraph.of(graph, None, x.dtype)), y, train_mask, weight)

    def compute(self, x: Features, graph: WeightedGraph | Sequence[WeightedGraph]) -> Tensor:
        """Logits [R, N, out], on one graph or on a graph per layer."""
        graphs = [graph] * len(self.convs) if isinstance(graph, WeightedGraph) else graph
        if self.training:
            x = dropout_features(x, self.input_dropout, self.rng)
        hidden = x if self.input is None else dropout(self.input(x), self.dropout * self.training, self.rng)
        layers: Any = zip_longest(self.convs, self.norms, self.shortcuts, graphs)
        for conv, norm, mapped, weighted in layers:
            hidden = self._layer(hidden, conv, norm, mapped, weighted)
        logits: Tensor = self.head(hidden)
        return logits

    def _layer(self, x: Features, conv: Conv, norm: nn.Module, mapped: Linear | None, graph: WeightedGraph) -> Tensor:
        """One layer with norm, ReLU, dropout and residual; `mapped` is the linear map of a residual, if it has one."""
        inner = None if self.shortcut == "identity" else mapped
        out = conv.sums(x, graph, None if inner is None else inner.weight)
        bias = conv.offset if inner is None or inner.bias is None else conv.offset + inner.bias
        if self.shortcut == "inner" and mapped is None:
            out = out + cast(Tensor, x)
        hidden = activate(out, bias, norm, self.dropout, self.rng)
        if self.shortcut == "identity":
            hidden = hidden + (cast(Tensor, x) if mapped is None else mapped(x))
        return hidden

    def __repr__(self) -> str:
        width, classes = self.head.weight.shape[1:]
        many = "" if self.replicas is None else f", replicas={self.replicas}"
        return f"{type(self).__name__}({width} wide, {len(self.convs)} layers, {classes} classes{many})"


backbones: Registry[Backbone] = Registry("model", reserved=("replicas", "seeds"), parent=models)


@backbones.register("mlp")
class MLP(Backbone):
    """A multi-layer perceptron, which ignores the graph."""

    layer = DenseConv


@backbones.register("gcn")
class GCN(Backbone):
    """The graph convolutional network of Kipf and Welling."""

    layer = GCNConv


@backbones.register("sage", "graphsage")
class GraphSAGE(Backbone):
    """GraphSAGE with mean aggregation."""

    layer = SAGEConv


@backbones.register("sage-channels")
class ChannelSAGE(Backbone):
    """GraphSAGE with separate weights for the messages along given and along added edges."""

    layer = ChannelConv


@backbones.register("gat")
class GAT(Backbone):
    """The graph attention network.

    Args:
        in_channels: Number of features per node.
        heads: Number of attention heads, which share `hidden_channels`.
        **options: Other options of a backbone.
    """

    space: ClassVar[Mapping[str, Any]] = {"heads": [1, 4, 8]}

    def __init__(self, in_channels: int, *, heads: int = 1, **options: Any) -> None:
        check_whole(heads=heads)
        self.heads = heads
        super().__init__(in_channels, **options)

    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> Conv:
        """Create a graph attention layer."""
        return GATConv(replicas, in_channels, out_channels, self.heads)


@backbones.register("appnp")
class APPNP(MLP):
    """An MLP whose logits z spread along the edges: h ← (1 - α) Â h + α z, several times.

    Predictions depend on more distant nodes than those of a GCN with as many parameters. By Gasteiger, Bojchevski and
    Günnemann, "Predict then Propagate" (ICLR 2019). Other arguments are those of `gm.MLP`.

    Args:
        in_channels: Number of features per node.
        steps: How often logits are sent along the edges.
        teleport: Share α of a node's own logits in every step, between 0 and 1.
        **options: Options of the MLP, such as `hidden_channels`.
    """

    space: ClassVar[Mapping[str, Any]] = {"steps": {"low": 2, "high": 20}, "teleport": {"low": 0.05, "high": 0.5}}

    def __init__(self, in_channels: int, *, steps: int = 10, teleport: float = 0.1, **options: Any) -> None:
        check_whole(steps=steps)
        check_between(1, 1000, steps=steps)
        check_between(0, 1, teleport=teleport)
        self.steps, self.teleport = steps, teleport
        super().__init__(in_channels, **options)

    def compute(self, x: Features, graph: WeightedGraph | Sequence[WeightedGraph]) -> Tensor:
        """Logits [R, N, out], on one graph or on the last of several."""
        own = super().compute(x, graph)
        graph = graph if isinstance(graph, WeightedGraph) else graph[-1]
        logits = own
        for _ in range(self.steps):
            logits = (1 - self.teleport) * graph.symmetric(logits) + self.teleport * own
        return logits


class BackboneModel(TrainableModel):
    """Base class of models around a backbone, such as `DropEdge(gm.GCN(...))` or `DropEdge("gcn", in_channels=...)`.

    Args:
        backbone: A backbone, such as `gm.GCN(...)`, or the name of one: `gcn`, `sage`, `sage-channels`, `gat`, `appnp`
            or `mlp`.
        **options: With a name, the arguments of the backbone: `in_channels`, `out_channels`, and if wanted `replicas`,
            `seeds` and options such as `hidden_channels=64`.
    """

    presets_of: ClassVar[tuple[str, ...]] = ("gcn",)
    more_options: ClassVar[tuple[str, ...]] = ()
    """Options that are not arguments of the constructor, for suggestions in error messages."""

    def __init__(self, backbone: Backbone | str = "gcn", **options: Any) -> None:
        super().__init__()
        self.backbone = self._made(backbone, options)
        self.replicas = self.backbone.replicas

    def _made(self, backbone: Backbone | str, options: Mapping[str, Any]) -> Backbone:
        """The given backbone, or a new one with the options."""
        owner = type(self).__name__
        of_backbone = backbones.defaults(backbone) if isinstance(backbone, str) else backbones.all_defaults()
        known = {*NEEDED, *OF_REPLICAS, *of_backbone}
        for option in options:
            if option not in known:
                near = did_you_mean(option, {*known, *inspect.signature(type(self)).parameters, *self.more_options})
                raise UserError(f"{owner} has no option {option!r}: {near}")
        if isinstance(backbone, str):
            if missing := [name for name in NEEDED if name not in options]:
                raise UserError(f"{owner}({backbone!r}) also needs {' and '.join(missing)}")
            return backbones[backbone](**options)
        if not isinstance(backbone, Backbone):
            raise UserError(
                f"{owner} takes a backbone, such as gm.GCN(...), or the name of one, not {backbone!r}: to rewire the"
                " graph of another model, use gm.Rewired"
            )
        if options:
            raise UserError(f"{', '.join(options)} cannot be set beside a finished backbone: set it in {backbone}")
        return backbone

    def reset_parameters(self) -> None:
        """Initialize all parameters from the seeds of the replicas."""
        self.backbone.reset_parameters()

    @property
    def rng(self) -> ReplicaRNG:
        """Random streams of training, one per replica."""
        return self.backbone.rng

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Logits of every node, [N, out] or [R, N, out]; takes the arguments of the backbone."""
        return self.backbone(*args, **kwargs)

    def training_loss(self, *args: Any, **kwargs: Any) -> Tensor:
        """Loss of every replica, [R]; takes the arguments of the backbone."""
        return self.backbone.training_loss(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backbone})"
