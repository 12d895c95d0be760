"""A model of your own, in one file and one line, with an option that the command line can set.

It is a backbone too: Gumbel-MPNN and the baselines can be put on it.

GUMBEL_MPNN_PLUGINS=examples/own_model.py gumbel-mpnn train demo --model far-gcn --set model.hops=3
GUMBEL_MPNN_PLUGINS=examples/own_model.py gumbel-mpnn train demo --model gumbel-mpnn --set model.backbone=far-gcn
"""

from typing import Any

from torch import Tensor

from gumbel_mpnn.graph import WeightedGraph
from gumbel_mpnn.nn import Backbone, backbones
from gumbel_mpnn.nn.convs import Conv, GCNConv
from gumbel_mpnn.nn.features import Features


class FarConv(GCNConv):
    """A graph convolution whose result is averaged over the neighborhood `hops` − 1 times more."""

    def __init__(self, replicas: int, in_channels: int, out_channels: int, hops: int) -> None:
        super().__init__(replicas, in_channels, out_channels)
        self.hops = hops

    def sums(self, x: Features, graph: WeightedGraph, shortcut: Tensor | None = None) -> Tensor:
        """[R, N, in] → [R, N, out]."""
        out = super().sums(x, graph, shortcut)
        for _ in range(self.hops - 1):
            out = graph.symmetric(out)
        return out


@backbones.register("far-gcn")
class FarGCN(Backbone):
    """A GCN in which every layer looks `hops` hops far."""

    def __init__(self, in_channels: int, *, hops: int = 2, **options: Any) -> None:
        self.hops = hops
        super().__init__(in_channels, **options)

    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> Conv:
        """One layer."""
        return FarConv(replicas, in_channels, out_channels, self.hops)
