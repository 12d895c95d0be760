"""APPNP: predictions from features alone, which then spread along the edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from gumbel_mpnn._util.errors import check_between, check_whole
from gumbel_mpnn.graph import WeightedGraph
from gumbel_mpnn.nn.backbone import Backbone, backbones
from gumbel_mpnn.nn.convs import Conv, DenseConv
from gumbel_mpnn.nn.features import SparseFeatures
from gumbel_mpnn.nn.model import Sizes

COPIES_OF_A_STEP = 4
"""Arrays of all logits that a step of the propagation keeps or makes."""


@backbones.register("appnp")
class APPNP(Backbone):
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

    def make_conv(self, replicas: int, in_channels: int, out_channels: int) -> Conv:
        """Create a linear layer."""
        return DenseConv(replicas, in_channels, out_channels)

    def compute(self, x: Tensor | SparseFeatures, graph: WeightedGraph | Sequence[WeightedGraph]) -> Tensor:
        """Logits [R, N, out], on one graph or on the last of several."""
        own = super().compute(x, graph)
        graph = graph if isinstance(graph, WeightedGraph) else graph[-1]
        logits = own
        for _ in range(self.steps):
            logits = (1 - self.teleport) * graph.symmetric(logits) + self.teleport * own
        return logits

    def message_widths(self, in_channels: int) -> list[int]:
        """Logits are sent in every step."""
        return [int(self.head.weight.shape[2])] * self.steps

    def step_numbers(self, sizes: Sizes, samples: int = 1, weighs_arcs: bool = False) -> int:
        """Those of the MLP, and the logits of every step."""
        logits = sizes.nodes * sum(self.message_widths(self.in_channels))
        return super().step_numbers(sizes, samples, weighs_arcs) + samples * COPIES_OF_A_STEP * logits
