"""kNN-GCN: a backbone on the graph of feature neighbors, whatever the given edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import check_at_least
from gumbel_mpnn.baselines.backbone_model import BackboneModel
from gumbel_mpnn.candidates.chosen import with_candidates
from gumbel_mpnn.config import RewiringSettings, Settings
from gumbel_mpnn.graph import without_candidates, without_pairs
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.nn.model import Report


@models.register("knn", "knn-gcn", passes_on=backbones.all_defaults)
class KNNModel(BackboneModel):
    """The model `knn` of `gm.fit`: a plain backbone on the edges of every node to its most similar nodes.

    Given edges are not used. Similarity is the cosine of the features; nodes of similarity 0 or less are not joined.
    The module itself does not make the graph: `fit` calls `prepare`. In your own training loop, use the candidates of
    `gm.candidates.Local` as edges.

    Args:
        in_channels: Number of features per node.
        neighbors: Number of nodes that every node is joined to; it may be chosen by others too.
        **options: Arguments of `BackboneModel`: `out_channels`, `backbone` and its options.
    """

    space: ClassVar[Mapping[str, Any]] = {"neighbors": {"low": 3, "high": 30, "log": True}}

    def __init__(self, in_channels: int, *, neighbors: int = 10, **options: Any) -> None:
        super().__init__(in_channels, **options)
        check_at_least(1, neighbors=neighbors)
        self.neighbors = neighbors

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """Replace the edges by those to feature neighbors."""
        bare = without_pairs(data, int(data.num_nodes or 0))
        bare.edge_index = torch.empty(2, 0, dtype=torch.int64, device=data.edge_index.device)
        chosen = RewiringSettings(candidates="local", per_node=settings.options["neighbors"])
        standardized = settings.data.features == "standardized"
        found = with_candidates(bare, chosen, standardized, settings.train.partitions)
        pairs = found.candidate_index
        out = without_candidates(found)
        out.edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
        return out

    def __repr__(self) -> str:
        return f"KNNModel({self.backbone}, neighbors={self.neighbors})"
