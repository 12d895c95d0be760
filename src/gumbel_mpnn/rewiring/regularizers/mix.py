"""Neighborhood consistency and inter-class distance together."""

from __future__ import annotations

from torch import Tensor

from gumbel_mpnn.rewiring.regularizers.base import regularizers
from gumbel_mpnn.rewiring.regularizers.inter_class import InterClass
from gumbel_mpnn.rewiring.regularizers.soft_labels import disagreement
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


@regularizers.register("mix")
class Mix(InterClass):
    """L_Ncon + L_inter: the sum of `NeighborhoodConsistency` and `InterClass`, with neighborhoods computed once.

    Args:
        weight: λ of the sum.
        margin: m of L_inter.
        detach: Stop the gradient through the predictions, so that only edges are changed; see `soft_labels`.
        labels: ỹ of nodes that are not in the training set, `soft` or `one-hot`, in both terms.
        weighting: Weights of L_inter, see `InterClass`.
        prototypes: Prototypes of L_inter, see `InterClass`.
        factor: Factor of L_inter, see `InterClass`.
    """

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_Ncon + L_inter of every replica, [R]."""
        closeness, neighborhoods = self.with_neighborhoods(logits, graph, y, train_mask)
        return disagreement(neighborhoods, graph) + closeness
