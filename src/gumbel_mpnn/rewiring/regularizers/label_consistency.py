"""Label consistency: edges should join nodes of the same class."""

from __future__ import annotations

from torch import Tensor

from gumbel_mpnn.rewiring.regularizers.base import regularizers
from gumbel_mpnn.rewiring.regularizers.soft_labels import SoftLabelRegularizer, disagreement
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


@regularizers.register("label-consistency", "lc")
class LabelConsistency(SoftLabelRegularizer):
    """The paper's L_label = Σ w_ij (1 − ỹ_i · ỹ_j) / Σ w_ij, which increases homophily.

    Args:
        weight: λ.
        detach: Stop the gradient through the predictions, so that only edges are changed; see `soft_labels`.
        labels: ỹ of nodes that are not in the training set: `soft` (softmax prediction) or `one-hot` (predicted class).
    """

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_label of every replica, [R]."""
        return disagreement(self.soft_labels(logits, graph, y, train_mask), graph)
