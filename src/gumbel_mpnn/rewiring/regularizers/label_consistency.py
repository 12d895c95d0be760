"""Label consistency: edges join nodes of one class."""

from __future__ import annotations

from torch import Tensor

from gumbel_mpnn.rewiring.regularizers.base import Regularizer, regularizers
from gumbel_mpnn.rewiring.regularizers.beliefs import class_beliefs, disagreement
from gumbel_mpnn.rewiring.rewired import RewiredGraph


@regularizers.register("label-consistency", "lc")
class LabelConsistency(Regularizer):
    """L_label = Σ w_ij (1 − ỹ_i · ỹ_j) / Σ w_ij, the paper's label consistency; it raises homophily.

    Args:
        weight: λ.
        detach: Keep the gradient from the predictions, so that only edges are moved; see `beliefs`.
    """

    uses_labels = True

    def __init__(self, weight: float = 1.0, *, detach: bool = True) -> None:
        super().__init__(weight)
        self.detach = detach

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_label of every replica, [R]."""
        return disagreement(class_beliefs(logits, y, train_mask, graph.weight.dtype, detach=self.detach), graph)
