"""Message-passing layers with pair weights and a replica axis.

With all weights 1, each layer equals the PyG layer of the same name. An edge of weight 0 has no effect.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gumbel_mpnn.graph import WeightedGraph
from gumbel_mpnn.nn.features import Features, SparseFeatures
from gumbel_mpnn.nn.layers import Linear, ReplicaModule, linear_sum, parameter
from gumbel_mpnn.nn.replica import ReplicaRNG, add_bias
from gumbel_mpnn.util.errors import UserError

NEGATIVE_SLOPE = 0.2
"""Slope of GAT's leaky ReLU below 0."""


class Conv(ReplicaModule, ABC):
    """One layer: a sum of linear maps of a node's features and of messages from its neighbors, plus a bias."""

    bias: nn.Parameter
    numbers_per_arc: int = 8
    """Upper bound of the numbers that a training step keeps of every arc."""

    @abstractmethod
    def sums(self, x: Features, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """Output without the bias, [R, N, in] → [R, N, out], plus x times `shortcut` [R, in, out] if given."""

    @property
    def offset(self) -> Tensor:
        """The bias, [R, 1, out]: the parameter `bias`, or that of a linear map."""
        return self.bias

    def forward(self, x: Features, graph: WeightedGraph) -> Tensor:
        """[R, N, in] → [R, N, out]."""
        out = self.sums(x, graph)
        return add_bias(out, self.offset.to(out.dtype))


class GCNConv(Conv):
    """D^-½ (A + I) D^-½ x W + b."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = Linear(replicas, in_channels, out_channels, bias=False, glorot=True)
        self.bias = parameter(replicas, 1, out_channels)

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set the bias to 0."""
        nn.init.zeros_(self.bias)

    def sums(self, x: Features, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """D^-½ (A + I) D^-½ x W; the narrower of x and x W is sent along the arcs."""
        others = [] if shortcut is None else [(x, shortcut)]
        if _sends_output(x, self.linear):
            return linear_sum(others, graph.symmetric(self.linear(x)))
        return linear_sum([(graph.symmetric(_of_each(x, graph)), self.linear.weight), *others])


class MeanConv(Conv):
    """Σ mean over neighbors(x) W₁ + x W₂ + b, with a matrix W₁ and a mean of its own for every channel of messages."""

    channels: ClassVar[int]

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        maps = (Linear(replicas, in_channels, out_channels, bias=False) for _ in range(self.channels))
        self.neighbors = nn.ModuleList(maps)
        self.self_loop = Linear(replicas, in_channels, out_channels)

    def sums(self, x: Features, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """The layer without its bias; the narrower of x and x W₁ is sent along the arcs."""
        own = x, self.self_loop.weight if shortcut is None else self.self_loop.weight + shortcut
        graphs = graph.by_origin if self.channels == 2 else [graph] * self.channels
        channels: list[tuple[WeightedGraph, Any]] = list(zip(graphs, self.neighbors, strict=True))
        if channels and _sends_output(x, channels[0][1]):
            first, *others = (each.mean(linear(x)) for each, linear in channels)
            return linear_sum([own], sum(others, first))
        return linear_sum([*((each.mean(_of_each(x, each)), linear.weight) for each, linear in channels), own])

    @property
    def offset(self) -> Tensor:
        """The bias of the linear map of the node itself."""
        assert self.self_loop.bias is not None
        return self.self_loop.bias


class DenseConv(MeanConv):
    """x W + b, the layer of an MLP: no messages."""

    channels, numbers_per_arc = 0, 0


class SAGEConv(MeanConv):
    """GraphSAGE with mean aggregation."""

    channels = 1


class ChannelConv(MeanConv):
    """GraphSAGE with a channel for given edges and one for added edges."""

    channels = 2


class GATConv(Conv):
    """Attention over neighbors and the node itself; the output is the concatenation of `heads`."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int, heads: int = 1) -> None:
        super().__init__()
        if heads < 1 or out_channels % heads:
            raise UserError(f"heads={heads} must be at least 1 and divide hidden_channels={out_channels}")
        self.heads, self.numbers_per_arc = heads, 16 * heads
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

    def sums(self, x: Features, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """The attention-weighted average of x W."""
        hidden: Tensor = self.linear(x)
        target, source = self._scores(hidden)
        sent = graph.attend(hidden, target, source, NEGATIVE_SLOPE)
        return linear_sum([] if shortcut is None else [(x, shortcut)], sent)

    def _scores(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Contributions of target and source to the score of an arc, [R, heads, N] each, in one product."""
        by_head = torch.stack([self.target, self.source], dim=-1)  # [R, heads, width, 2]
        replicas, heads, width, _ = by_head.shape
        own_head = torch.eye(heads, dtype=by_head.dtype, device=by_head.device)
        matrix = torch.einsum("rhws,hk->rhwsk", by_head, own_head).reshape(replicas, heads * width, 2 * heads)
        scores = linear_sum([(hidden, matrix)]).transpose(1, 2)
        return scores[:, :heads], scores[:, heads:]


def _sends_output(x: Features, linear: Linear) -> bool:
    """Whether to send x W along the arcs instead of x: if it is narrower, or if x is sparse; W has no bias."""
    _, fan_in, fan_out = linear.weight.shape
    return isinstance(x, SparseFeatures) or fan_in > fan_out


def _of_each(x: Features, graph: WeightedGraph) -> Tensor:
    """Dense features with a replica axis."""
    assert not isinstance(x, SparseFeatures)
    return x if x.dim() == 3 else x.expand(graph.batch, *x.shape)
