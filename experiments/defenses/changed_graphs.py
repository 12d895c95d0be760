"""Plain backbones on a graph that is changed before training: GCN-Jaccard and kNN-GCN."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch_geometric.data import Data

from gumbel_mpnn.baselines import Jaccard
from gumbel_mpnn.candidates import with_candidates
from gumbel_mpnn.graph import without_candidates, without_pairs
from gumbel_mpnn.nn import Backbone, BackboneModel, backbones, models
from gumbel_mpnn.settings import RewiringSettings, Settings

Report = Callable[[int, int], None]


@models.register("jaccard", "gcn-jaccard", backbone=backbones)
class JaccardModel(BackboneModel):
    """A plain backbone on a graph without the edges between dissimilar nodes (`gm.baselines.Jaccard`).

    Args:
        backbone: A backbone, such as `gm.GCN(...)`, or the name of one.
        threshold: Edges of a smaller similarity are removed; choose it on validation.
        **options: With a name, the arguments of the backbone.
    """

    space: ClassVar[Mapping[str, Any]] = {"threshold": {"low": 0.0, "high": 0.3}}

    def __init__(self, backbone: Backbone | str = "gcn", *, threshold: float = 0.05, **options: Any) -> None:
        super().__init__(backbone, **options)
        self.threshold = Jaccard(threshold).threshold  # invalid values are reported here, before training

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """Remove the edges between dissimilar nodes."""
        out: Data = Jaccard(settings.options["threshold"])(data)
        return out


@models.register("knn", "knn-gcn", backbone=backbones)
class KNNModel(BackboneModel):
    """A plain backbone on the edges of every node to its most similar nodes; given edges are not used.

    Similarity is the cosine of the features; nodes of similarity 0 or less are not joined.

    Args:
        backbone: A backbone, such as `gm.GCN(...)`, or the name of one.
        neighbors: Number of nodes that every node is joined to; it may be chosen by others too.
        **options: With a name, the arguments of the backbone.
    """

    space: ClassVar[Mapping[str, Any]] = {"neighbors": {"low": 3, "high": 30, "log": True}}

    def __init__(self, backbone: Backbone | str = "gcn", *, neighbors: int = 10, **options: Any) -> None:
        super().__init__(backbone, **options)
        self.neighbors = neighbors

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """Replace the edges by those to feature neighbors."""
        bare = without_pairs(data, int(data.num_nodes or 0))
        bare.edge_index = torch.empty(2, 0, dtype=torch.int64, device=data.edge_index.device)
        chosen = RewiringSettings(candidates="local", options={"candidates.per_node": settings.options["neighbors"]})
        found = with_candidates(bare, chosen, settings.data.features == "standardized", settings.train.partitions)
        pairs, out = found.candidate_index, without_candidates(found)
        out.edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
        return out
