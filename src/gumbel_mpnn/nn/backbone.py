"""The plain models: MLP, GCN, GraphSAGE and GAT, which differ only in their layers."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any, ClassVar

from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError, check_at_least, check_between, check_whole, did_you_mean, unknown_name
from gumbel_mpnn.config import Registry
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn.activation import activate, dropout, dropout_features
from gumbel_mpnn.nn.convs import ChannelConv, Conv, DenseConv, GATConv, GCNConv, SAGEConv
from gumbel_mpnn.nn.features import SparseFeatures
from gumbel_mpnn.nn.inputs import model_input
from gumbel_mpnn.nn.model import COPIES_OF_A_LAYER, FUSED_ON_CPU, Sizes, TrainableModel, Work, models, work_of_products
from gumbel_mpnn.nn.modules import LayerNorm, Linear, cross_entropy, make_norm
from gumbel_mpnn.nn.replica_rng import ReplicaRNG, replica_seeds
from gumbel_mpnn.nn.room import build_in_room

SHORTCUTS = ("linear", "identity", "inner")


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

    arc_copies: ClassVar[int] = 6
    """Arrays with a number for every arc that a step makes, however many layers there are."""
    more_copies: ClassVar[int] = 0
    """Arrays of a layer's size that a layer of this kind keeps beside those of all kinds."""
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
        check_between(1, 1000, num_layers=num_layers)
        check_between(1, 2**20, hidden_channels=hidden_channels, replicas=count)
        check_between(0, 1, dropout=dropout, input_dropout=input_dropout)
        if shortcut not in SHORTCUTS:
            raise unknown_name("shortcut", shortcut, SHORTCUTS)
        self.in_channels = in_channels
        self.replicas, self.dropout, self.input_dropout = replicas, dropout, input_dropout
        self.seeds = replica_seeds(seeds, count)
        self.shortcut = shortcut if residual else None
        width = hidden_channels if input_layer else in_channels
        widths = [width] + [hidden_channels] * num_layers
        mapped = num_layers if self.shortcut == "linear" else int(self.shortcut is not None and not input_layer)

        def add_layers() -> None:
            self.input = Linear(count, in_channels, hidden_channels) if input_layer else None
            self.convs = nn.ModuleList(self.make_conv(count, *pair) for pair in pairwise(widths))
            self.shortcuts = nn.ModuleList(Linear(count, i, hidden_channels) for i in widths[:mapped])
            self.norms = nn.ModuleList(make_norm(norm, count, hidden_channels) for _ in range(num_layers))
            self.head = Linear(count, hidden_channels, out_channels)

        build_in_room(self, add_layers)
        self._rng: ReplicaRNG | None = None
        self.reset_parameters()

    @abstractmethod
    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> Conv:
        """Create one layer of this model."""

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
        self,
        x: Tensor | SparseFeatures | Data,
        edge_index: PairGraph | Tensor | None = None,
        edge_weight: Tensor | None = None,
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
        x: Tensor | SparseFeatures,
        graph: PairGraph,
        y: Tensor,
        train_mask: Tensor,
        progress: Tensor,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Training loss of each replica, [R]; `progress` is the share of training done."""
        return cross_entropy(self.compute(x, WeightedGraph.of(graph, None, x.dtype)), y, train_mask, weight)

    def compute(self, x: Tensor | SparseFeatures, graph: WeightedGraph | Sequence[WeightedGraph]) -> Tensor:
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

    def _layer(
        self, x: Tensor | SparseFeatures, conv: Conv, norm: nn.Module, mapped: Linear | None, graph: WeightedGraph
    ) -> Tensor:
        """One layer with norm, ReLU, dropout and residual; `mapped` is the linear map of a residual, if it has one."""
        inner = None if self.shortcut == "identity" else mapped
        out = conv.sums(x, graph, None if inner is None else inner.weight)
        bias = conv.offset if inner is None or inner.bias is None else conv.offset + inner.bias
        if self.shortcut == "inner" and mapped is None:
            out = out + _hidden(x)
        hidden = activate(out, bias, norm, self.dropout, self.rng)
        if self.shortcut == "identity":
            hidden = hidden + (_hidden(x) if mapped is None else mapped(x))
        return hidden

    @property
    def width(self) -> int:
        """Channels of every layer."""
        return int(self.head.weight.shape[1])

    def step_numbers(self, sizes: Sizes, samples: int = 1, weighs_arcs: bool = False) -> int:
        """How many numbers one replica holds at the peak of a training step on `samples` graphs.

        `weighs_arcs` says that weights of arcs have a gradient: then every layer keeps some of them.
        """
        width, classes, layers = self.width, int(self.head.weight.shape[2]), len(self.convs)
        copies = (
            COPIES_OF_A_LAYER + (self.shortcut is not None) + self.more_copies + isinstance(self.norms[0], LayerNorm)
        )
        copies -= FUSED_ON_CPU * (self.dropout > 0 and not sizes.on_gpu)
        numbers = sizes.nodes * (
            width * (layers + (self.input is not None)) * copies + (8 if sizes.on_gpu else 7) * classes
        )
        # What is dropped of the features, and on a GPU the features in 16 bits, are every replica's own.
        numbers += sizes.inputs * (4 * bool(self.input_dropout) + (sizes.in_16_bits and sizes.on_gpu))
        per_arc = self.arc_copies + self.numbers_per_arc(samples)
        if weighs_arcs:
            per_arc += 4 * len(self.message_widths(width)) * samples
        elif sizes.on_gpu and not self.numbers_per_arc(samples):
            per_arc = min(per_arc, 1)
        return samples * numbers + sizes.arcs * per_arc

    def step_work(self, sizes: Sizes, in_channels: int, weighs_arcs: bool = False) -> Work:
        """What one replica does in a training step: messages along the arcs, and products.

        Messages are fetched forward and backward, and once more for the gradient of the weights if `weighs_arcs`.
        """
        widths = self.message_widths(in_channels)
        sent = sizes.arcs * sum(widths)
        along_arcs = Work((2 + weighs_arcs) * sizes.arcs * len(widths), 2 * sent, weighs_arcs * sent, 0)
        return along_arcs + work_of_products(self, sizes, in_channels)

    def message_widths(self, in_channels: int) -> list[int]:
        """Channels of the messages, each time that they are sent: the narrower width of every layer."""
        first = min(in_channels if self.input is None else self.width, self.width)
        return [first] + [self.width] * (len(self.convs) - 1)

    def numbers_per_arc(self, samples: int) -> int:
        """Numbers that the layers keep of every arc, beside its weight."""
        return 0

    def __repr__(self) -> str:
        width, classes = self.head.weight.shape[1:]
        many = "" if self.replicas is None else f", replicas={self.replicas}"
        return f"{type(self).__name__}({width} wide, {len(self.convs)} layers, {classes} classes{many})"


def _hidden(x: Tensor | SparseFeatures) -> Tensor:
    """The output of a layer, which is never sparse."""
    assert isinstance(x, Tensor)
    return x


backbones: Registry[Backbone] = Registry("model", reserved=("replicas", "seeds"), parent=models)


def make_backbone(
    owner: nn.Module,
    name: str,
    in_channels: int,
    options: Mapping[str, Any],
    *,
    out_channels: int,
    replicas: int | None,
    seeds: Sequence[int] | None,
    also: Iterable[str] = (),
) -> Backbone:
    """Create the backbone called `name` for a model that forwards its options.

    Options of other backbones are ignored. An option of no backbone raises a `UserError` that suggests the closest name
    among the options of the backbones, the keywords of `owner` and `also`.
    """
    known, of_all = backbones.defaults(name), backbones.all_defaults()
    for option in options:
        if option not in of_all:
            near = did_you_mean(option, {*of_all, *_keywords(type(owner)), *also})
            raise UserError(f"{type(owner).__name__} has no option {option!r}: {near}")
    mine = {option: value for option, value in options.items() if option in known}
    return backbones[name](in_channels, out_channels=out_channels, replicas=replicas, seeds=seeds, **mine)


def _keywords(model: type[nn.Module]) -> set[str]:
    """Keyword-only arguments of a model and its base classes."""
    signatures = (inspect.signature(cls) for cls in model.__mro__[:-1])
    return {p.name for signature in signatures for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}


@backbones.register("mlp")
class MLP(Backbone):
    """A multi-layer perceptron, which ignores the graph."""

    arc_copies: ClassVar[int] = 0

    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> Conv:
        """Create a linear layer."""
        return DenseConv(replicas, in_channels, out_channels)

    def message_widths(self, in_channels: int) -> list[int]:
        """There are no messages."""
        return []


@backbones.register("gcn")
class GCN(Backbone):
    """The graph convolutional network of Kipf and Welling."""

    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> Conv:
        """Create a graph convolution."""
        return GCNConv(replicas, in_channels, out_channels)


@backbones.register("sage", "graphsage")
class GraphSAGE(Backbone):
    """GraphSAGE with mean aggregation."""

    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> Conv:
        """Create a GraphSAGE layer."""
        return SAGEConv(replicas, in_channels, out_channels)


@backbones.register("sage-channels")
class ChannelSAGE(Backbone):
    """GraphSAGE with separate weights for the messages along given and along added edges."""

    arc_copies: ClassVar[int] = 12
    more_copies: ClassVar[int] = 1

    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> Conv:
        """Create a GraphSAGE layer with two channels."""
        return ChannelConv(replicas, in_channels, out_channels)


@backbones.register("gat")
class GAT(Backbone):
    """The graph attention network; `hidden_channels` is the total width of all `heads`."""

    more_copies: ClassVar[int] = 1
    space: ClassVar[Mapping[str, Any]] = {"heads": [1, 4, 8]}

    def __init__(self, in_channels: int, *, heads: int = 1, **options: Any) -> None:
        check_whole(heads=heads)
        self.heads = heads
        super().__init__(in_channels, **options)

    def numbers_per_arc(self, samples: int) -> int:
        """Scores and shares of every arc in every layer for each head, and their own tiled indices."""
        return self.heads * (8 * len(self.convs) * samples + 8)

    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> Conv:
        """Create a graph attention layer."""
        return GATConv(replicas, in_channels, out_channels, self.heads)
