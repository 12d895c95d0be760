"""Inter-class distance: neighborhoods of different classes look different."""

from __future__ import annotations

import torch
from torch import Tensor

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.rewiring.regularizers.base import regularizers
from gumbel_mpnn.rewiring.regularizers.soft_labels import (
    SoftLabelRegularizer,
    confidence,
    is_there,
    neighborhood_labels,
    nonzero,
    weighted_degree,
)
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


@regularizers.register("inter-class")
class InterClass(SoftLabelRegularizer):
    """L_inter: mean over pairs of classes of ReLU(m − ‖r_c − r_c'‖₂), r_c the mean neighborhood p̃ in class c.

    A node counts for class c by its belief ỹ_c, by how certain that belief is (1 − H(ỹ) / log C) and by its degree:
    a node without neighbors has no neighborhood to show. The prototype is divided by the sum of these, so how the
    degree is normalised does not matter. Classes that no node counts for are left out.

    The paper divides the sum over ordered pairs by |C|, not by their number |C| (|C| − 1): its L_inter is |C| − 1 times
    as large. As a mean it lies between 0 and m however many classes there are, and λ means the same for all of them.

    Args:
        weight: λ.
        margin: m, the distance from which on two classes are far enough apart. Two distributions are at most √2 apart;
            at 1 the term rests where neighborhoods, the node itself counted, are for .85 of its own class (two classes)
            or for .75 (seven classes), and acts on classes that are more alike than that.
        detach: Keep the gradient from the predictions, so that only edges are moved; see `soft_labels`.
    """

    def __init__(self, weight: float = 1.0, *, margin: float = 1.0, detach: bool = True) -> None:
        if not margin > 0:
            raise UserError(f"the margin between classes must be above 0, but is {margin}")
        self.margin = margin
        super().__init__(weight, detach=detach)

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_inter of every replica, [R]."""
        return self.with_neighborhoods(logits, graph, y, train_mask)[0]

    def with_neighborhoods(
        self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """L_inter of every replica, [R], and the neighborhoods p̃ that it was made from, [R, N, C]."""
        beliefs = self.soft_labels(logits, graph, y, train_mask)
        certain = confidence(logits, train_mask, graph.weight.dtype, detach=self.detach)
        neighborhoods = neighborhood_labels(beliefs, graph)
        return closeness(beliefs, certain, neighborhoods, graph, self.margin), neighborhoods


def closeness(beliefs: Tensor, certain: Tensor, neighborhoods: Tensor, graph: RewiredGraph, margin: float) -> Tensor:
    """L_inter from ỹ [R, N, C], its confidence [R, N] and p̃ [R, N, C], [R]."""
    share = beliefs * (certain * weighted_degree(graph))[..., None]
    total = share.sum(1)
    prototypes = share.transpose(1, 2) @ neighborhoods / nonzero(total)[..., None]
    wide = prototypes.to(torch.promote_types(prototypes.dtype, torch.float32))  # torch knows no distances in 16 bits
    distance = torch.cdist(wide, wide, compute_mode="donot_use_mm_for_euclid_dist")
    present = is_there(total)
    pairs = (present[:, :, None] & present[:, None, :]).triu(1)
    close = (margin - distance).relu().masked_fill(~pairs, 0.0)
    return close.sum((1, 2)) / pairs.sum((1, 2)).clamp(min=1)
