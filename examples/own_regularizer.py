"""A regularizer of your own, in one file and one line, with an option that the command line can set.

GUMBEL_MPNN_PLUGINS=examples/own_regularizer.py gumbel-mpnn train demo --model gumbel-mpnn \
    --set rewiring.regularizer=edge-share --set rewiring.regularizer.weight=0.5 --set rewiring.regularizer.share=0.3
"""

from torch import Tensor

from gumbel_mpnn.rewiring import RewiredGraph
from gumbel_mpnn.rewiring.regularizers import Regularizer, regularizers


@regularizers.register("edge-share")
class EdgeShare(Regularizer):
    """(mean probability of all pairs − share)²: about this share of the pairs become edges.

    Args:
        weight: λ.
        share: Share of the pairs, between 0 and 1.
    """

    def __init__(self, weight: float = 1.0, *, share: float = 0.5) -> None:
        super().__init__(weight)
        self.share = share

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L of every replica, [R]."""
        return (graph.probability.mean(-1) - self.share).square()
