"""Base class of models that train a plain backbone on a changed graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures, make_backbone
from gumbel_mpnn.nn.model import Sizes, TrainableModel, Work


class BackboneModel(TrainableModel):
    """A plain backbone; subclasses change the graph.

    All arguments but the first are keyword-only.

    Args:
        in_channels: Number of features per node.
        out_channels: Number of classes.
        backbone: `gcn`, `sage`, `sage-channels`, `gat`, `appnp` or `mlp`.
        replicas: Number of models R trained together, with output [R, N, out]; None for one model with output [N, out].
        seeds: One seed per replica; drawn from torch's global generator by default.
        **options: Options of the backbone, such as `hidden_channels=64` (see `gm.GCN` and `gm.GAT`); options of other
            backbones are ignored.
    """

    presets_of: ClassVar[tuple[str, ...]] = ("gcn",)

    def __init__(
        self,
        in_channels: int,
        *,
        out_channels: int,
        backbone: str = "gcn",
        replicas: int | None = None,
        seeds: Sequence[int] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.backbone = make_backbone(
            self, backbone, in_channels, options, out_channels=out_channels, replicas=replicas, seeds=seeds
        )

    def reset_parameters(self) -> None:
        """Initialize all parameters from the seeds of the replicas."""
        self.backbone.reset_parameters()

    @property
    def rng(self) -> ReplicaRNG:
        """Random streams of training, one per replica."""
        return self.backbone.rng

    def forward(
        self,
        x: Tensor | SparseFeatures | Data,
        edge_index: PairGraph | Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Logits of every node, [N, out] or [R, N, out]; takes the arguments of the backbone."""
        logits: Tensor = self.backbone(x, edge_index, edge_weight)
        return logits

    def training_loss(
        self,
        x: Tensor | SparseFeatures,
        graph: PairGraph,
        y: Tensor,
        train_mask: Tensor,
        progress: Tensor,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Loss of every replica, [R]."""
        return self.backbone.training_loss(x, graph, y, train_mask, progress, weight)

    @property
    def width(self) -> int:
        """Width of the backbone."""
        return self.backbone.width

    def step_numbers(self, sizes: Sizes) -> int:
        """Numbers that the backbone stores in a training step."""
        return self.backbone.step_numbers(sizes)

    def step_work(self, sizes: Sizes, in_channels: int) -> Work:
        """What the backbone does in a training step."""
        return self.backbone.step_work(sizes, in_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backbone})"
