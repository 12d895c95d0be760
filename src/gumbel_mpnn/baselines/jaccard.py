"""GCN-Jaccard: edges between dissimilar nodes are removed before training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gumbel_mpnn._util.errors import DataError, check_between
from gumbel_mpnn.baselines.backbone_model import BackboneModel
from gumbel_mpnn.config import Settings
from gumbel_mpnn.graph import SparseLayout, edge_index_of, sampled_product, without_candidates
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.nn.model import Report


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
    x = x.to_dense().float()
    binary = bool(((x == 0) | (x == 1)).all())
    first, second = (x.sum(-1) if binary else torch.linalg.vector_norm(x, dim=-1))[edge_index]
    shared = edge_products(x, edge_index)
    either = first + second - shared if binary else first * second
    return torch.where(either > 0, shared / either, 0.0)


def edge_products(x: Tensor, edge_index: Tensor) -> Tensor:
    """Product of the features [N, F] of the two nodes of each edge [2, E], → [E], without gathering them."""
    nodes = len(x)
    keys, place = torch.unique(edge_index.amin(0) * nodes + edge_index.amax(0), return_inverse=True)
    layout = SparseLayout.build(keys // nodes, keys % nodes, nodes, nodes)
    return sampled_product(layout, x[None], x[None])[0, place]


@models.register("jaccard", "gcn-jaccard", passes_on=backbones.all_defaults)
class JaccardModel(BackboneModel):
    """The model `jaccard` of `gm.fit`: a plain backbone on a graph without the edges between dissimilar nodes.

    The module itself does not remove edges: `fit` calls `prepare` before training, and for every graph that the model
    is applied to. In your own training loop, apply the transform: `gm.GCN(...)(gm.baselines.Jaccard(0.05)(data))`.

    Args:
        in_channels: Number of features per node.
        threshold: Edges of a smaller similarity are removed; choose it on validation.
        **options: Arguments of `BackboneModel`: `out_channels`, `backbone` and its options.
    """

    space: ClassVar[Mapping[str, Any]] = {"threshold": {"low": 0.0, "high": 0.3}}

    def __init__(self, in_channels: int, *, threshold: float = 0.05, **options: Any) -> None:
        super().__init__(in_channels, **options)
        self.threshold = Jaccard(threshold).threshold  # invalid values are reported here, before training

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """Remove the edges between dissimilar nodes."""
        out: Data = Jaccard(settings.options["threshold"])(data)
        return out

    def __repr__(self) -> str:
        return f"JaccardModel({self.backbone}, threshold={self.threshold})"
