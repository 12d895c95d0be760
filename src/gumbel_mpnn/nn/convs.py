"""The message-passing layers of the paper's plain models, with pair weights and a replica axis.

Each equals the PyG layer of the same name where all weights are 1, and the layer on the graph without an edge where
that edge's weight is 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.graph import WeightedGraph
from gumbel_mpnn.nn.features import SparseFeatures
from gumbel_mpnn.nn.fused_linear import Inputs, linear_sum
from gumbel_mpnn.nn.modules import Linear, ReplicaModule
from gumbel_mpnn.nn.replica_rng import ReplicaRNG


class Conv(ReplicaModule, ABC):
    """One layer: a sum of linear maps, some of them of what neighbors send, plus a bias."""

    @abstractmethod
    def sums(self, x: Inputs, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """All but the bias, [R, N, in] → [R, N, out], x times `shortcut` [R, in, out] added in the same passes."""

    @property
    @abstractmethod
    def offset(self) -> Tensor:
        """The bias, [R, 1, out]."""

    def forward(self, x: Inputs, graph: WeightedGraph) -> Tensor:
        """[R, N, in] → [R, N, out]."""
        out = self.sums(x, graph)
        return out + self.offset.to(out.dtype)


class DenseConv(Conv):
    """No messages at all: the linear layer of an MLP."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = Linear(replicas, in_channels, out_channels)

    def sums(self, x: Inputs, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """The product alone."""
        return linear_sum([(x, _added(self.linear.weight, shortcut))])

    @property
    def offset(self) -> Tensor:
        """That of the linear layer."""
        return _bias(self.linear)


class GCNConv(Conv):
    """D^-½ (A + I) D^-½ x W + b."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = Linear(replicas, in_channels, out_channels, bias=False, glorot=True)
        self.bias = nn.Parameter(torch.zeros(replicas, 1, out_channels))

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Bias 0."""
        nn.init.zeros_(self.bias)

    def sums(self, x: Inputs, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """D^-½ (A + I) D^-½ x W; the narrower side goes along the arcs."""
        others = [] if shortcut is None else [(x, shortcut)]
        if _sends_output(x, self.linear):
            sent = graph.symmetric(self.linear(x))
            return linear_sum(others, sent) if others else sent
        return linear_sum([(graph.symmetric(_of_each(x, graph)), self.linear.weight), *others])

    @property
    def offset(self) -> Tensor:
        """The bias of the sum."""
        return self.bias


class SAGEConv(Conv):
    """The mean over neighbors times one matrix plus the node itself times another."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.neighbors = Linear(replicas, in_channels, out_channels, bias=False)
        self.self_loop = Linear(replicas, in_channels, out_channels)

    def sums(self, x: Inputs, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """Both products; the narrower side goes along the arcs."""
        own = x, _added(self.self_loop.weight, shortcut)
        if _sends_output(x, self.neighbors):
            return linear_sum([own], graph.mean(self.neighbors(x)))
        return linear_sum([(graph.mean(_of_each(x, graph)), self.neighbors.weight), own])

    @property
    def offset(self) -> Tensor:
        """That of the node itself."""
        return _bias(self.self_loop)


class GATConv(Conv):
    """Attention over neighbors and self in `heads` parts of the channels."""

    def __init__(
        self, replicas: int, in_channels: int, out_channels: int, heads: int = 1, negative_slope: float = 0.2
    ) -> None:
        super().__init__()
        if heads < 1 or out_channels % heads:
            raise UserError(f"hidden_channels={out_channels} cannot be shared out among heads={heads}")
        self.heads, self.negative_slope = heads, negative_slope
        width = out_channels // heads
        self.linear = Linear(replicas, in_channels, out_channels, bias=False, glorot=True)
        self.source = nn.Parameter(torch.empty(replicas, heads, width))
        self.target = nn.Parameter(torch.empty(replicas, heads, width))
        self.bias = nn.Parameter(torch.zeros(replicas, 1, out_channels))

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Glorot attention vectors, bias 0."""
        _, heads, width = self.source.shape
        bound = math.sqrt(6 / (heads + width))
        with torch.no_grad():
            self.source.copy_(rng.uniform((heads, width), -bound, bound))
            self.target.copy_(rng.uniform((heads, width), -bound, bound))
        nn.init.zeros_(self.bias)

    def sums(self, x: Inputs, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """The average of x W under the shares of attention."""
        hidden: Tensor = self.linear(x)
        target, source = self._scores(hidden)
        sent = graph.attend(hidden, target, source, self.negative_slope)
        return sent if shortcut is None else linear_sum([(x, shortcut)], sent)

    def _scores(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Both parts of the score of an arc, by its target and by its source, [R, heads, N]: one product for all."""
        by_head = torch.stack([self.target, self.source], dim=-1)  # [R, heads, width, 2]
        replicas, heads, width, _ = by_head.shape
        own_head = torch.eye(heads, dtype=by_head.dtype, device=by_head.device)
        matrix = torch.einsum("rhws,hk->rhwsk", by_head, own_head).reshape(replicas, heads * width, 2 * heads)
        scores = linear_sum([(hidden, matrix)]).transpose(1, 2)
        return scores[:, :heads], scores[:, heads:]

    @property
    def offset(self) -> Tensor:
        """The bias of the sum."""
        return self.bias


def _sends_output(x: Inputs, linear: Linear) -> bool:
    """Whether x W goes along the arcs and not x, which gives the same: the narrower does, and never sparse features.

    `linear` has no bias: a bias would be aggregated in one order and not in the other.
    """
    _, fan_in, fan_out = linear.weight.shape
    return isinstance(x, SparseFeatures) or fan_in > fan_out


def _of_each(x: Inputs, graph: WeightedGraph) -> Tensor:
    """Dense features with a replica axis."""
    assert not isinstance(x, SparseFeatures)
    return x if x.dim() == 3 else x.expand(graph.batch, *x.shape)


def _added(weight: Tensor, shortcut: Tensor | None) -> Tensor:
    """Two linear maps of the same are one."""
    return weight if shortcut is None else weight + shortcut


def _bias(linear: Linear) -> Tensor:
    assert linear.bias is not None
    return linear.bias
