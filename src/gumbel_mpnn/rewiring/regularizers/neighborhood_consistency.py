"""Neighborhood consistency: edges join nodes whose neighborhoods look alike."""

from __future__ import annotations

from torch import Tensor

from gumbel_mpnn.rewiring.regularizers.base import regularizers
from gumbel_mpnn.rewiring.regularizers.soft_labels import SoftLabelRegularizer, disagreement, neighborhood_labels
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


@regularizers.register("neighborhood-consistency", "pc")
class NeighborhoodConsistency(SoftLabelRegularizer):
    """L_Ncon = Σ w_ij (1 − p̃_i · p̃_j) / Σ w_ij with p̃ the mean of ỹ over a node's neighbors and itself.

    Nodes with the same distribution of labels around them are joined, whether these are their own label or not. The
    gradient reaches a weight both as an edge that is summed over and as part of the neighborhoods of its two ends.

    Args:
        weight: λ.
        detach: Keep the gradient from the predictions, so that only edges are moved; see `soft_labels`.
    """

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_Ncon of every replica, [R]."""
        return disagreement(neighborhood_labels(self.soft_labels(logits, graph, y, train_mask), graph), graph)
