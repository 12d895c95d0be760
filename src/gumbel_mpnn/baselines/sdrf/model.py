"""A backbone on a graph that SDRF rewires before training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch_geometric.data import Data

from gumbel_mpnn.baselines.backbone_model import BackboneModel
from gumbel_mpnn.baselines.sdrf.transform import SDRF
from gumbel_mpnn.config import Settings
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.nn.model import Report


@models.register("sdrf", passes_on=backbones.all_defaults)
class SDRFModel(BackboneModel):
    """The model `sdrf` of `gm.fit`: a plain backbone on a graph that SDRF rewires once, before training.

    The module itself does not rewire the graph: `fit` calls `prepare` before training. In your own training loop, apply
    the transform: `gm.GCN(...)(gm.baselines.SDRF(...)(data))`.

    Args:
        in_channels: Number of features per node.
        iterations: Number of steps of SDRF.
        tau: How strongly SDRF prefers the best candidate.
        remove: Whether SDRF removes edges.
        removal_bound: Only edges above this curvature are removed.
        sdrf_seed: Seed of SDRF; all replicas train on the same rewired graph.
        **options: Arguments of `BackboneModel`: `out_channels`, `backbone` and its options.
    """

    space: ClassVar[Mapping[str, Any]] = {
        "iterations": {"low": 10, "high": 1000, "log": True},
        "tau": {"low": 1.0, "high": 100.0, "log": True},
        "removal_bound": {"low": 0.5, "high": 50.0, "log": True},
    }

    def __init__(
        self,
        in_channels: int,
        *,
        iterations: int = 100,
        tau: float = 1.0,
        remove: bool = True,
        removal_bound: float = 0.5,
        sdrf_seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, **options)
        self.sdrf_options = {
            "iterations": iterations,
            "tau": tau,
            "remove": remove,
            "removal_bound": removal_bound,
            "sdrf_seed": sdrf_seed,
        }
        _transform(self.sdrf_options)  # invalid options are reported here, before training

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """Rewire the graph with SDRF; `report` is called with the steps done and the total number of steps."""
        return _transform(settings.options, settings.data.undirected, report).rewire(data)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.sdrf_options.items())
        return f"SDRFModel({self.backbone}, {options})"


def _transform(options: Mapping[str, Any], undirected: bool = True, report: Report | None = None) -> SDRF:
    return SDRF(
        options["iterations"],
        options["tau"],
        options["removal_bound"] if options["remove"] else None,
        undirected=undirected,
        seed=options["sdrf_seed"],
        progress=report,
    )
