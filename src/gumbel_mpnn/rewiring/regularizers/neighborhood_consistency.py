"""Neighborhood consistency: edges should join nodes with similar neighborhoods."""

from __future__ import annotations

from torch import Tensor

from gumbel_mpnn.rewiring.regularizers.base import regularizers
from gumbel_mpnn.rewiring.regularizers.soft_labels import SoftLabelRegularizer, disagreement, neighborhood_labels
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


@regularizers.register("neighborhood-consistency", "pc")
class NeighborhoodConsistency(SoftLabelRegularizer):
    """L_Ncon = Σ w_ij (1 − p̃_i · p̃_j) / Σ w_ij, where p̃ is the mean of ỹ over the neighbors of a node and itself.

    It favors edges between nodes with the same distribution of labels around them, whatever their own labels are. A
    weight w_ij receives gradient as a weight in the sum and through the neighborhoods p̃_i and p̃_j.

    Args:
        weight: λ.
        detach: Stop the gradient through the predictions, so that only edges are changed; see `soft_labels`.
        labels: ỹ of nodes that are not in the training set: `soft` (softmax prediction) or `one-hot` (predicted class).
    """

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_Ncon of every replica, [R]."""
        return disagreement(neighborhood_labels(self.soft_labels(logits, graph, y, train_mask), graph), graph)
