"""A backbone on a graph that SDRF has rewired before training."""

from __future__ import annotations

from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.config import Settings
from gumbel_mpnn.rewiring.on_backbone import OnBackbone
from gumbel_mpnn.rewiring.sdrf import SDRF


class SDRFModel(OnBackbone):
    """The model `sdrf` of `gm.fit`: SDRF once, before training, then a plain backbone.

    In a loop of one's own the transform is enough: `gm.GCN(...)(gm.rewiring.SDRF(...)(data))`.

    Args:
        in_channels: Number of features of a node.
        iterations: Of `SDRF`, as are the next.
        tau: How strongly the best candidate is preferred.
        remove: Whether edges are removed at all.
        removal_bound: Edges above this curvature may be.
        curvature: `paper` or `reference`.
        sdrf_seed: Of SDRF's draws: all replicas train on one rewired graph.
        **options: As of `OnBackbone`: `out_channels`, `backbone` and its options.
    """

    def __init__(
        self,
        in_channels: int,
        *,
        iterations: int = 100,
        tau: float = 1.0,
        remove: bool = True,
        removal_bound: float = 0.5,
        curvature: str = "paper",
        sdrf_seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, **options)
        self.transform = SDRF(iterations, tau, removal_bound if remove else None, mode=curvature, seed=sdrf_seed)

    @staticmethod
    def prepare(data: Data, settings: Settings) -> Data:
        """The graph that a model of these settings trains on."""
        options = settings.options
        transform = SDRF(
            options["iterations"],
            options["tau"],
            options["removal_bound"] if options["remove"] else None,
            undirected=settings.data.undirected,
            mode=options["curvature"],
            seed=options["sdrf_seed"],
        )
        return transform.rewire(data)

    def __repr__(self) -> str:
        return f"SDRFModel({self.backbone}, {self.transform})"
