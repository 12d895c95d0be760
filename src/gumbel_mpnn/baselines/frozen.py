"""Gumbel-MPNN whose edge model never learns: the control for what learning the edges adds."""

from __future__ import annotations

from typing import Any, ClassVar

from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.rewiring.gumbel_mpnn import GumbelMPNN


@models.register("frozen", passes_on=backbones.all_defaults)
class Frozen(GumbelMPNN):
    """Gumbel-MPNN whose scorer and bias by origin keep their initial values.

    Everything else is that of a `GumbelMPNN` with the same settings and seed: initial parameters, random numbers,
    candidates, samples, agreement and evaluation. The belief head, which predicts classes and not edges, is trained; a
    scorer that uses beliefs therefore changes its scores. Terms of the loss that only act on the edges, such as the
    prior and the decoy loss, have no effect.

    Args:
        in_channels: Number of features per node.
        **options: Arguments of `GumbelMPNN`.
    """

    presets_of: ClassVar[tuple[str, ...]] = ("gumbel-mpnn",)

    def __init__(self, in_channels: int, **options: Any) -> None:
        super().__init__(in_channels, **options)
        self.rewirer.requires_grad_(False)
