"""DropEdge: random edges are dropped in every training step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError, check_between
from gumbel_mpnn.baselines.backbone_model import BackboneModel
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import SparseFeatures, backbones, models
from gumbel_mpnn.nn.inputs import model_input
from gumbel_mpnn.nn.model import Sizes
from gumbel_mpnn.nn.modules import cross_entropy
from gumbel_mpnn.rewiring.terms import Agreement, mean


@models.register("drop-edge", "dropedge", passes_on=backbones.all_defaults)
class DropEdge(BackboneModel):
    """A backbone that drops random edges in training, but not in evaluation (Rong et al., 2020).

    Degrees are computed from the remaining edges. On an undirected graph, both directions of an edge are dropped
    together. Every replica drops different edges.

    Args:
        in_channels: Number of features per node.
        edge_dropout: Probability that an edge is dropped.
        per_layer: Whether every layer drops different edges; otherwise, all layers of a step drop the same.
        samples: Number of graphs drawn in each step of `training_loss`; the loss is the mean over them.
        agreement: Weight of the agreement between the predictions on these graphs, as in Gumbel-MPNN; needs `samples`
            of 2 or more.
        agreement_ramp: Share of the epochs over which the weight of the agreement grows from 0.
        **options: Arguments of `BackboneModel`: `out_channels`, `backbone` and its options.
    """

    space: ClassVar[Mapping[str, Any]] = {"edge_dropout": {"low": 0.05, "high": 0.8}, "per_layer": [False, True]}

    def __init__(
        self,
        in_channels: int,
        *,
        edge_dropout: float = 0.3,
        per_layer: bool = False,
        samples: int = 1,
        agreement: float = 0.0,
        agreement_ramp: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, **options)
        check_between(0, 1, edge_dropout=edge_dropout, agreement_ramp=agreement_ramp)
        if samples < 1:
            raise UserError(f"samples must be 1 or more, but is {samples}")
        if agreement < 0:
            raise UserError(f"agreement must be 0 or more, but is {agreement}")
        if agreement and samples < 2:
            raise UserError("agreement compares several drawn graphs: set samples to 2 or more")
        self.edge_dropout, self.per_layer, self.samples = edge_dropout, per_layer, samples
        self.agreement = Agreement(agreement, agreement_ramp) if agreement else None

    def forward(
        self,
        x: Tensor | SparseFeatures | Data,
        edge_index: PairGraph | Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Logits of every node, [N, out] or [R, N, out]; in training, random edges are dropped."""
        if not self.training or self.edge_dropout == 0:
            return super().forward(x, edge_index, edge_weight)
        model, dtype = self.backbone, self.backbone.head.weight.dtype
        x, graph, weight = model_input(x, edge_index, edge_weight, in_channels=model.in_channels, dtype=dtype)
        logits = self.backbone.compute(x, self._dropped(x, graph, weight))
        return logits if self.backbone.replicas is not None else logits.squeeze(0)

    def training_loss(
        self,
        x: Tensor | SparseFeatures,
        graph: PairGraph,
        y: Tensor,
        train_mask: Tensor,
        progress: Tensor,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Cross-entropy of every replica with random edges dropped, and the agreement of several draws, [R]."""
        if self.edge_dropout == 0 and self.samples == 1:
            return super().training_loss(x, graph, y, train_mask, progress, weight)
        outputs = [self.backbone.compute(x, self._dropped(x, graph)) for _ in range(self.samples)]
        loss = mean([cross_entropy(logits, y, train_mask, weight) for logits in outputs])
        return loss if self.agreement is None else loss + self.agreement.between(outputs, progress)

    def step_numbers(self, sizes: Sizes) -> int:
        """Numbers that the backbone stores, plus the plain and normalized weights of every arc."""
        draws = self.samples * (len(self.backbone.convs) if self.per_layer else 1)
        return self.backbone.step_numbers(replace(sizes, on_gpu=False), self.samples) + 3 * draws * sizes.arcs

    def _dropped(
        self, x: Tensor | SparseFeatures, graph: PairGraph, weight: Tensor | None = None
    ) -> list[WeightedGraph]:
        """Graph of each layer; dropped pairs have weight 0, others their `weight` or 1."""
        layers = len(self.backbone.convs)
        graphs = [self._draw(x, graph, weight) for _ in range(layers if self.per_layer else 1)]
        return graphs if self.per_layer else graphs * layers

    def _draw(self, x: Tensor | SparseFeatures, graph: PairGraph, weight: Tensor | None = None) -> WeightedGraph:
        remains = (self.rng.noise(graph.num_pairs) >= self.edge_dropout).to(x.dtype)
        return WeightedGraph(graph, remains if weight is None else remains * weight, x.dtype)

    def __repr__(self) -> str:
        return f"DropEdge({self.backbone}, edge_dropout={self.edge_dropout}, per_layer={self.per_layer})"
