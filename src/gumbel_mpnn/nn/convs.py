"""Message-passing layers with pair weights and a replica axis.

With all weights 1, each layer equals the PyG layer of the same name. An edge of weight 0 has no effect.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from gumbel_mpnn.graph import WeightedGraph
from gumbel_mpnn.nn.features import SparseFeatures
from gumbel_mpnn.nn.layers import Inputs, Linear, ReplicaModule, linear_sum, parameter
from gumbel_mpnn.nn.replica import add_bias
from gumbel_mpnn.nn.rng import ReplicaRNG
from gumbel_mpnn.util.errors import UserError


class Conv(ReplicaModule, ABC):
    """One layer: a sum of linear maps of a node's features and of messages from its neighbors, plus a bias."""

    bias: nn.Parameter
    numbers_per_arc: int = 8
    """Upper bound of the numbers that a training step keeps of every arc."""

    @abstractmethod
    def sums(self, x: Inputs, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """Output without the bias, [R, N, in] → [R, N, out], plus x times `shortcut` [R, in, out] if given."""

    @property
    def offset(self) -> Tensor:
        """The bias, [R, 1, out]: the parameter `bias`, or that of a linear map."""
        return self.bias

    def forward(self, x: Inputs, graph: WeightedGraph) -> Tensor:
        """[R, N, in] → [R, N, out]."""
        out = self.sums(x, graph)
        return add_bias(out, self.offset.to(out.dtype))


class DenseConv(Conv):
    """The linear layer of an MLP, without messages."""

    numbers_per_arc = 0

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = Linear(replicas, in_channels, out_channels)

    def sums(self, x: Inputs, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """The product x W."""
        return linear_sum([(x, _added(self.linear.weight, shortcut))])

    @property
    def offset(self) -> Tensor:
        """The bias of the linear layer."""
        return _bias(self.linear)


class GCNConv(Conv):
    """D^-½ (A + I) D^-½ x W + b."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = Linear(replicas, in_channels, out_channels, bias=False, glorot=True)
        self.bias = parameter(replicas, 1, out_channels)

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set the bias to 0."""
        nn.init.zeros_(self.bias)

    def sums(self, x: Inputs, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """D^-½ (A + I) D^-½ x W; the narrower of x and x W is sent along the arcs."""
        others = [] if shortcut is None else [(x, shortcut)]
        if _sends_output(x, self.linear):
            sent = graph.symmetric(self.linear(x))
            return linear_sum(others, sent) if others else sent
        return linear_sum([(graph.symmetric(_of_each(x, graph)), self.linear.weight), *others])


class SAGEConv(Conv):
    """mean over neighbors(x) W₁ + x W₂ + b."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.neighbors = Linear(replicas, in_channels, out_channels, bias=False)
        self.self_loop = Linear(replicas, in_channels, out_channels)

    def sums(self, x: Inputs, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """The layer without its bias; the narrower of x and x W₁ is sent along the arcs."""
        own = x, _added(self.self_loop.weight, shortcut)
        if _sends_output(x, self.neighbors):
            return linear_sum([own], graph.mean(self.neighbors(x)))
        return linear_sum([(graph.mean(_of_each(x, graph)), self.neighbors.weight), own])

    @property
    def offset(self) -> Tensor:
        """The bias of the linear map of the node itself."""
        return _bias(self.self_loop)


class ChannelConv(Conv):
    """GraphSAGE with a channel of its own for added edges: mean(given) W₁ + mean(added) W₂ + x W₃ + b."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.neighbors = Linear(replicas, in_channels, out_channels, bias=False)
        self.added = Linear(replicas, in_channels, out_channels, bias=False)
        self.self_loop = Linear(replicas, in_channels, out_channels)

    def sums(self, x: Inputs, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """The layer without its bias; the narrower of x and x W is sent along the arcs."""
        given, added = graph.by_origin
        own = x, _added(self.self_loop.weight, shortcut)
        if _sends_output(x, self.neighbors):
            return linear_sum([own], given.mean(self.neighbors(x)) + added.mean(self.added(x)))
        each = _of_each(x, graph)
        return linear_sum([(given.mean(each), self.neighbors.weight), (added.mean(each), self.added.weight), own])

    @property
    def offset(self) -> Tensor:
        """The bias of the linear map of the node itself."""
        return _bias(self.self_loop)


class GATConv(Conv):
    """Attention over neighbors and the node itself; the output is the concatenation of `heads`."""

    def __init__(
        self, replicas: int, in_channels: int, out_channels: int, heads: int = 1, negative_slope: float = 0.2
    ) -> None:
        super().__init__()
        if heads < 1 or out_channels % heads:
            raise UserError(f"heads={heads} must be at least 1 and divide hidden_channels={out_channels}")
        self.heads, self.negative_slope, self.numbers_per_arc = heads, negative_slope, 16 * heads
        width = out_channels // heads
        self.linear = Linear(replicas, in_channels, out_channels, bias=False, glorot=True)
        self.source = parameter(replicas, heads, width)
        self.target = parameter(replicas, heads, width)
        self.bias = parameter(replicas, 1, out_channels)

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Draw the attention vectors with Glorot's initialization and set the bias to 0."""
        _, heads, width = self.source.shape
        bound = math.sqrt(6 / (heads + width))
        with torch.no_grad():
            self.source.copy_(rng.uniform((heads, width), -bound, bound))
            self.target.copy_(rng.uniform((heads, width), -bound, bound))
        nn.init.zeros_(self.bias)

    def sums(self, x: Inputs, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """The attention-weighted average of x W."""
        hidden: Tensor = self.linear(x)
        target, source = self._scores(hidden)
        sent = graph.attend(hidden, target, source, self.negative_slope)
        return sent if shortcut is None else linear_sum([(x, shortcut)], sent)

    def _scores(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Contributions of target and source to the score of an arc, [R, heads, N] each, in one product."""
        by_head = torch.stack([self.target, self.source], dim=-1)  # [R, heads, width, 2]
        replicas, heads, width, _ = by_head.shape
        own_head = torch.eye(heads, dtype=by_head.dtype, device=by_head.device)
        matrix = torch.einsum("rhws,hk->rhwsk", by_head, own_head).reshape(replicas, heads * width, 2 * heads)
        scores = linear_sum([(hidden, matrix)]).transpose(1, 2)
        return scores[:, :heads], scores[:, heads:]


def _sends_output(x: Inputs, linear: Linear) -> bool:
    """Whether to send x W along the arcs instead of x: if it is narrower, or if x is sparse.

    Both give the same result because `linear` has no bias.
    """
    _, fan_in, fan_out = linear.weight.shape
    return isinstance(x, SparseFeatures) or fan_in > fan_out


def _of_each(x: Inputs, graph: WeightedGraph) -> Tensor:
    """Dense features with a replica axis."""
    assert not isinstance(x, SparseFeatures)
    return x if x.dim() == 3 else x.expand(graph.batch, *x.shape)


def _added(weight: Tensor, shortcut: Tensor | None) -> Tensor:
    return weight if shortcut is None else weight + shortcut


def _bias(linear: Linear) -> Tensor:
    assert linear.bias is not None
    return linear.bias
