"""Inter-class distance: neighborhoods of different classes should differ."""

from __future__ import annotations

import torch
from torch import Tensor

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.rewiring.regularizers.base import regularizers
from gumbel_mpnn.rewiring.regularizers.soft_labels import (
    SoftLabelRegularizer,
    confidence,
    is_positive,
    neighborhood_labels,
    nonzero,
    weighted_degree,
)
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


@regularizers.register("inter-class")
class InterClass(SoftLabelRegularizer):
    """L_inter: mean over pairs of classes of ReLU(m − ‖r_c − r_c'‖₂), where r_c is the mean neighborhood p̃ of class c.

    In the mean r_c, the weight of a node is the product of its soft label ỹ_c, its confidence 1 − H(ỹ) / log C and its
    degree: a node without neighbors has no neighborhood. The weights are divided by their sum, so the normalization of
    the degree does not matter. Classes of total weight 0 are left out.

    The paper divides the sum over ordered pairs of classes by |C| instead of their number |C| (|C| − 1), so its L_inter
    is |C| − 1 times as large. As a mean, L_inter lies between 0 and m for any number of classes.

    Args:
        weight: λ.
        margin: m, the distance from which on two classes do not contribute. The distance of two distributions is at
            most √2. With margin 1, the penalty is 0 if about 85 % (two classes) or 75 % (seven classes) of each
            neighborhood, including the node itself, belong to the class of the node.
        detach: Stop the gradient through the predictions, so that only edges are changed; see `soft_labels`.
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
        """L_inter of every replica, [R], and the neighborhoods p̃ that it is computed from, [R, N, C]."""
        labels = self.soft_labels(logits, graph, y, train_mask)
        certain = confidence(logits, train_mask, graph.weight.dtype, detach=self.detach)
        neighborhoods = neighborhood_labels(labels, graph)
        return closeness(labels, certain, neighborhoods, graph, self.margin), neighborhoods


def closeness(labels: Tensor, certain: Tensor, neighborhoods: Tensor, graph: RewiredGraph, margin: float) -> Tensor:
    """L_inter [R] from soft labels ỹ [R, N, C], their confidence [R, N] and neighborhoods p̃ [R, N, C]."""
    share = labels * (certain * weighted_degree(graph))[..., None]
    total = share.sum(1)
    prototypes = share.transpose(1, 2) @ neighborhoods / nonzero(total)[..., None]
    wide = prototypes.to(torch.promote_types(prototypes.dtype, torch.float32))  # cdist does not support 16 bits
    distance = torch.cdist(wide, wide, compute_mode="donot_use_mm_for_euclid_dist")
    present = is_positive(total)
    pairs = (present[:, :, None] & present[:, None, :]).triu(1)
    close = (margin - distance).relu().masked_fill(~pairs, 0.0)
    return close.sum((1, 2)) / pairs.sum((1, 2)).clamp(min=1)
