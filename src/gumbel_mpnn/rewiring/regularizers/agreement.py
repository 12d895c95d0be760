"""Agreement: the predictions on several sampled graphs are the same."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gumbel_mpnn.errors import UserError
from gumbel_mpnn.rewiring.regularizers.base import Regularizer, regularizers
from gumbel_mpnn.rewiring.rewired import RewiredGraph


@regularizers.register("agreement")
class Agreement(Regularizer):
    """Mean over samples and all nodes of ‖softmax(z_s) − t‖², t the sharpened mean prediction.

    t ∝ (mean over s of softmax(z_s))^(1/T) is a target: no gradient flows into it. The squared distance is at most 2
    for each node, so that a node on which one graph misleads the model does not outweigh the rest, as it would with
    KL, which grows without bound. Unlike the other terms this one is meant to move the classifier.

    Args:
        weight: λ.
        temperature: T, above 0; below 1 the target is sharper than the mean prediction, at 1 it is the mean.
    """

    compares_samples = True

    def __init__(self, weight: float = 1.0, *, temperature: float = 0.5) -> None:
        super().__init__(weight)
        if not temperature > 0:
            raise UserError(f"the temperature of the agreement must be above 0, but is {temperature}")
        self.temperature = temperature

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """Disagreement of every replica, [R], from the logits of S sampled graphs, [S, R, N, C].

        Logits [R, N, C] are those of one sample. One sample has nothing to disagree with: 0, however unsharp it is.
        """
        if logits.dim() == 3 or logits.shape[0] == 1:
            return logits.new_zeros(logits.shape[-3])
        log_predicted = logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
        mean = log_predicted.detach().logsumexp(0) - math.log(logits.shape[0])
        target = (mean / self.temperature).softmax(-1)
        return (log_predicted.exp() - target).square().sum(-1).mean((0, 2))

    def over_samples(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """The same: this is where samples are compared, not averaged."""
        return self.penalty(logits, graph, y, train_mask)
