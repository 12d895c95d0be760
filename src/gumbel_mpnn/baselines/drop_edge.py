"""Edges are dropped: random ones in every training step (DropEdge), or once those of dissimilar nodes (Jaccard)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gumbel_mpnn.graph import (
    PairGraph,
    SparseLayout,
    WeightedGraph,
    edge_index_of,
    sampled_product,
    without_candidates,
)
from gumbel_mpnn.nn import Backbone, BackboneModel, SparseFeatures, backbones, models
from gumbel_mpnn.nn.features import model_input
from gumbel_mpnn.nn.layers import cross_entropy
from gumbel_mpnn.rewiring.losses import growing_agreement, mean
from gumbel_mpnn.util.errors import DataError, UserError, check_at_least, check_between


@models.register("drop-edge", "dropedge", backbone=backbones)
class DropEdge(BackboneModel):
    """A backbone that drops random edges in training, but not in evaluation (Rong et al., 2020).

    Degrees are computed from the remaining edges. On an undirected graph, both directions of an edge are dropped
    together. Every replica drops different edges.

    Args:
        backbone: A backbone, such as `gm.GCN(...)`, or the name of one.
        edge_dropout: Probability that an edge is dropped.
        per_layer: Whether every layer drops different edges; otherwise, all layers of a step drop the same.
        samples: Number of graphs drawn in each step of `training_loss`; the loss is the mean over them.
        agreement: Weight of the agreement between the predictions on these graphs, as in Gumbel-MPNN; needs `samples`
            of 2 or more.
        agreement_ramp: Share of the epochs over which the weight of the agreement grows from 0.
        **options: With a name, the arguments of the backbone.
    """

    space: ClassVar[Mapping[str, Any]] = {"edge_dropout": {"low": 0.05, "high": 0.8}, "per_layer": [False, True]}

    def __init__(
        self,
        backbone: Backbone | str = "gcn",
        *,
        edge_dropout: float = 0.3,
        per_layer: bool = False,
        samples: int = 1,
        agreement: float = 0.0,
        agreement_ramp: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(backbone, **options)
        check_between(0, 1, edge_dropout=edge_dropout, agreement_ramp=agreement_ramp)
        check_between(0, math.inf, agreement=agreement)
        check_at_least(1, samples=samples)
        if agreement and samples < 2:
            raise UserError("agreement compares several drawn graphs: set samples to 2 or more")
        self.edge_dropout, self.per_layer, self.samples = edge_dropout, per_layer, samples
        self.agreement, self.agreement_ramp = agreement, agreement_ramp

    def forward(
        self,
        x: Tensor | SparseFeatures | Data,
        edge_index: PairGraph | Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Logits of every node, [N, out] or [R, N, out]; in training, random edges are dropped."""
        if not self.training or self.edge_dropout == 0:
            logits: Tensor = super().forward(x, edge_index, edge_weight)
            return logits
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
        if not self.agreement:
            return loss
        return loss + growing_agreement(outputs, self.agreement, self.agreement_ramp, progress)

    def _dropped(
        self, x: Tensor | SparseFeatures, graph: PairGraph, weight: Tensor | None = None
    ) -> list[WeightedGraph]:
        """Graph of each layer; dropped pairs have weight 0, others their `weight` or 1."""
        layers, graphs = len(self.backbone.convs), list[WeightedGraph]()
        for _ in range(layers if self.per_layer else 1):
            remains = (self.rng.noise(graph.num_pairs) >= self.edge_dropout).to(x.dtype)
            graphs.append(WeightedGraph(graph, remains if weight is None else remains * weight, x.dtype))
        return graphs if self.per_layer else graphs * layers

    def __repr__(self) -> str:
        return f"DropEdge({self.backbone}, edge_dropout={self.edge_dropout}, per_layer={self.per_layer})"


class Jaccard(BaseTransform):  # type: ignore[misc]
    """Removes edges whose nodes have dissimilar features (Wu et al., 2019).

    The similarity is Jaccard's for features that are 0 or 1 (shared ones divided by those of either node), and the
    cosine for others. Nodes without features are similar to no node.

    Args:
        threshold: Edges of a smaller similarity are removed.
    """

    def __init__(self, threshold: float = 0.05) -> None:
        check_between(0, 1, threshold=threshold)
        self.threshold = threshold

    def forward(self, data: Data) -> Data:
        """Remove edges with their attributes; candidates are removed too."""
        edge_index = edge_index_of(data)
        if data.get("x") is None:
            raise DataError("this graph has no features to compare: give it data.x, floats of shape [N, F]")
        similar = edge_similarity(data.x, edge_index) >= self.threshold
        out = without_candidates(data)
        out.num_nodes = data.num_nodes  # set first, else PyG may take features for an edge attribute if N = E
        for name in out.edge_attrs():
            if name != "edge_index":
                out[name] = data[name][similar]
        out.edge_index = edge_index[:, similar]
        return out

    def __repr__(self) -> str:
        return f"Jaccard(threshold={self.threshold})"


def edge_similarity(x: Tensor, edge_index: Tensor) -> Tensor:
    """Similarity of the features [N, F] of the two nodes of each edge [2, E]: Jaccard's or cosine, → [E]."""
    x, nodes = x.to_dense().float(), len(x)
    binary = bool(((x == 0) | (x == 1)).all())
    first, second = (x.sum(-1) if binary else torch.linalg.vector_norm(x, dim=-1))[edge_index]
    # Features are not gathered for every edge, which would take the memory of edges × features.
    keys, place = torch.unique(edge_index.amin(0) * nodes + edge_index.amax(0), return_inverse=True)
    layout = SparseLayout.build(keys // nodes, keys % nodes, nodes, nodes)
    shared = sampled_product(layout, x[None], x[None])[0, place]
    either = first + second - shared if binary else first * second
    return torch.where(either > 0, shared / either, 0.0)
