"""Alike along edges, different between classes."""

from __future__ import annotations

from torch import Tensor

from gumbel_mpnn.rewiring.regularizers.base import Regularizer, regularizers
from gumbel_mpnn.rewiring.regularizers.beliefs import class_beliefs, confidence, disagreement, neighborhood_beliefs
from gumbel_mpnn.rewiring.regularizers.inter_class import check_margin, closeness
from gumbel_mpnn.rewiring.rewired import RewiredGraph


@regularizers.register("mix")
class Mix(Regularizer):
    """L_Ncon + L_inter: `NeighborhoodConsistency` and `InterClass`, the neighborhoods aggregated once for both.

    Args:
        weight: λ of the sum.
        margin: m of L_inter.
        detach: Keep the gradient from the predictions, so that only edges are moved; see `beliefs`.
    """

    uses_labels = True

    def __init__(self, weight: float = 1.0, *, margin: float = 1.0, detach: bool = True) -> None:
        super().__init__(weight)
        check_margin(margin)
        self.margin = margin
        self.detach = detach

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_Ncon + L_inter of every replica, [R]."""
        dtype = graph.weight.dtype
        beliefs = class_beliefs(logits, y, train_mask, dtype, detach=self.detach)
        certain = confidence(logits, train_mask, dtype, detach=self.detach)
        neighborhoods = neighborhood_beliefs(beliefs, graph)
        return disagreement(neighborhoods, graph) + closeness(beliefs, certain, neighborhoods, graph, self.margin)
