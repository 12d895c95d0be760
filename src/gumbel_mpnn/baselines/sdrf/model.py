"""A backbone on a graph that SDRF has rewired before training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.baselines.backbone_model import BackboneModel
from gumbel_mpnn.baselines.sdrf.transform import SDRF
from gumbel_mpnn.config import Settings
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.nn.model import Report


@models.register("sdrf", passes_on=backbones.all_defaults)
class SDRFModel(BackboneModel):
    """The model `sdrf` of `gm.fit`: SDRF once, before training, then a plain backbone.

    The module itself rewires nothing: `fit` makes the graph with `prepare`, before training and once for all epochs,
    and `forward` is the backbone's. In a loop of one's own the transform is all there is to apply:
    `gm.GCN(...)(gm.baselines.SDRF(...)(data))`.

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
        self.sdrf_options = {
            "iterations": iterations,
            "tau": tau,
            "remove": remove,
            "removal_bound": removal_bound,
            "curvature": curvature,
            "sdrf_seed": sdrf_seed,
        }
        _transform(self.sdrf_options)  # what cannot be is told now

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """The graph after SDRF; `report` is called with the steps done and all steps."""
        return _transform(settings.options, settings.data.undirected, report).rewire(data)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.sdrf_options.items())
        return f"SDRFModel({self.backbone}, {options})"


def _transform(options: Mapping[str, Any], undirected: bool = True, report: Report | None = None) -> SDRF:
    """SDRF by the names that its arguments have among the options of the model."""
    return SDRF(
        options["iterations"],
        options["tau"],
        options["removal_bound"] if options["remove"] else None,
        undirected=undirected,
        mode=options["curvature"],
        seed=options["sdrf_seed"],
        progress=report,
    )
