"""Controls of Gumbel-MPNN: models in which no edge is learned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from gumbel_mpnn.nn import Backbone, backbones, models
from gumbel_mpnn.rewiring.gumbel_mpnn import GumbelMPNN
from gumbel_mpnn.settings import RewiringSettings


@models.register("frozen", backbone=backbones)
class Frozen(GumbelMPNN):
    """Gumbel-MPNN whose scorer and bias by origin keep their initial values.

    Everything else is that of a `GumbelMPNN` with the same settings and seed: initial parameters, random numbers,
    candidates, samples, agreement and evaluation. The belief head, which predicts classes and not edges, is trained; a
    scorer that uses beliefs therefore changes its scores. Terms of the loss that only act on the edges, such as the
    prior and the decoy loss, have no effect.

    Args:
        backbone: A backbone, such as `gm.GCN(...)`, or the name of one.
        **options: Arguments of `GumbelMPNN`.
    """

    presets_of: ClassVar[tuple[str, ...]] = ("gumbel-mpnn",)

    def __init__(self, backbone: Backbone | str = "gcn", **options: Any) -> None:
        super().__init__(backbone, **options)
        self.rewirer.requires_grad_(False)


@models.register("random", backbone=backbones)
class RandomEdges(GumbelMPNN):
    """Gumbel-MPNN that keeps every given edge with probability `keep` and adds every candidate with probability `add`.

    It has no parameters beyond those of its backbone: the scorer is `constant`, whatever the settings say, and there is
    no belief head. With `origin="none"`, both probabilities are ½. Candidates, samples, agreement and evaluation are
    those of the settings. What only teaches a scorer is left out: the prior, a learned bias by origin and all options
    of the scorer, such as decoys. Regularizers that act on the edges alone have no effect.

    Args:
        backbone: A backbone, such as `gm.GCN(...)`, or the name of one.
        **options: Arguments of `GumbelMPNN`.
    """

    presets_of: ClassVar[tuple[str, ...]] = ("gumbel-mpnn",)

    @classmethod
    def settle(cls, rewiring: RewiringSettings) -> RewiringSettings:
        """The same settings with a constant scorer, and without what teaches a scorer."""
        return replace(
            rewiring,
            scorer="constant",
            origin="none" if rewiring.origin == "none" else "fixed",
            prior=0.0,
            options={name: value for name, value in rewiring.options.items() if not name.startswith("scorer.")},
        )
