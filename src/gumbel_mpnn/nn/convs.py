"""The message-passing layers of the paper's plain models, with pair weights and a replica axis.

Each equals the PyG layer of the same name where all weights are 1, and the layer on the graph without an edge where
that edge's weight is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from gumbel_mpnn.errors import UserError
from gumbel_mpnn.graph import WeightedGraph
from gumbel_mpnn.nn.features import SparseFeatures
from gumbel_mpnn.nn.modules import Linear, ReplicaModule
from gumbel_mpnn.nn.streams import Streams


class DenseConv(ReplicaModule):
    """No messages at all: the linear layer of an MLP."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = Linear(replicas, in_channels, out_channels)

    def forward(self, x: Tensor | SparseFeatures, graph: WeightedGraph) -> Tensor:
        """[R, N, in] → [R, N, out]."""
        out: Tensor = self.linear(x)
        return out


def narrow_first(
    graph: WeightedGraph, aggregate: Callable[[Tensor], Tensor], linear: Linear, x: Tensor | SparseFeatures
) -> Tensor:
    """aggregate(x W), or aggregate(x) W where x is the narrower: the order does not matter, the width of messages does.

    `linear` has no bias: a bias would be aggregated in one order and not in the other.
    """
    _, fan_in, fan_out = linear.weight.shape
    if isinstance(x, SparseFeatures) or fan_in >= fan_out:
        return aggregate(linear(x))
    shared = x if x.dim() == 3 else x.expand(graph.batch, *x.shape)
    out: Tensor = linear(aggregate(shared))
    return out


class GCNConv(ReplicaModule):
    """D^-½ (A + I) D^-½ x W + b."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = Linear(replicas, in_channels, out_channels, bias=False, glorot=True)
        self.bias = nn.Parameter(torch.zeros(replicas, 1, out_channels))

    def init_own_parameters(self, streams: Streams) -> None:
        """Bias 0."""
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor | SparseFeatures, graph: WeightedGraph) -> Tensor:
        """[R, N, in] → [R, N, out]."""
        out = narrow_first(graph, graph.symmetric, self.linear, x)
        return out + self.bias.to(out.dtype)


class SAGEConv(ReplicaModule):
    """The mean over neighbors times one matrix plus the node itself times another."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.neighbors = Linear(replicas, in_channels, out_channels, bias=False)
        self.self_loop = Linear(replicas, in_channels, out_channels)

    def forward(self, x: Tensor | SparseFeatures, graph: WeightedGraph) -> Tensor:
        """[R, N, in] → [R, N, out]."""
        out: Tensor = narrow_first(graph, graph.mean, self.neighbors, x) + self.self_loop(x)
        return out


class GATConv(ReplicaModule):
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

    def init_own_parameters(self, streams: Streams) -> None:
        """Glorot attention vectors, bias 0."""
        _, heads, width = self.source.shape
        bound = math.sqrt(6 / (heads + width))
        with torch.no_grad():
            self.source.copy_(streams.uniform((heads, width), -bound, bound))
            self.target.copy_(streams.uniform((heads, width), -bound, bound))
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor | SparseFeatures, graph: WeightedGraph) -> Tensor:
        """[R, N, in] → [R, N, out]."""
        hidden: Tensor = self.linear(x)
        replicas, nodes, channels = hidden.shape
        by_head = hidden.view(replicas, nodes, self.heads, -1)
        source = torch.einsum("rnhd,rhd->rhn", by_head, self.source)
        target = torch.einsum("rnhd,rhd->rhn", by_head, self.target)
        out = graph.attend(
            by_head.transpose(1, 2).reshape(replicas * self.heads, nodes, -1),
            target.reshape(-1, nodes),
            source.reshape(-1, nodes),
            self.negative_slope,
        )
        out = out.view(replicas, self.heads, nodes, -1).transpose(1, 2).reshape(replicas, nodes, channels)
        return out + self.bias.to(out.dtype)
