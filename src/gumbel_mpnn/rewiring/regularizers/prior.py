"""Prior: the rewired graph should stay close to the given graph."""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import logsigmoid

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.nn.each_replica import sigmoid, total
from gumbel_mpnn.rewiring.regularizers.base import Regularizer, regularizers
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


@regularizers.register("prior")
class Prior(Regularizer):
    """Mean over pairs of KL(σ(θ) ‖ π), where π is the prior probability of a pair to be an edge.

    Without it, a scorer may add most candidates and overfit.

    Args:
        weight: λ.
        keep: π of given edges, between 0 and 1.
        add: π of candidates, between 0 and 1.
    """

    def __init__(self, weight: float = 1.0, *, keep: float = 0.95, add: float = 0.05) -> None:
        super().__init__(weight)
        for name, value in (("keep", keep), ("add", add)):
            if not 0 < value < 1:
                raise UserError(f"the prior probability {name} must lie between 0 and 1, but is {value}")
        self.keep = keep
        self.add = add

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """Mean divergence of every replica, [R]."""
        theta, original = graph.theta, graph.graph.is_original
        # Each probability is multiplied by its own logarithm, which avoids 0 · ∞ and the cancellation of large numbers.
        edge = logsigmoid(theta) - _choose(original, math.log(self.keep), math.log(self.add), theta)
        no_edge = logsigmoid(-theta) - _choose(original, math.log1p(-self.keep), math.log1p(-self.add), theta)
        divergence = sigmoid(theta) * edge + sigmoid(-theta) * no_edge
        return total(divergence) / max(graph.graph.num_pairs, 1)


def _choose(original: Tensor, given: float, candidate: float, like: Tensor) -> Tensor:
    # Filled on the device: copying a number from the host cannot be captured in a CUDA graph.
    return like.new_full(original.shape, candidate).masked_fill(original, given)
