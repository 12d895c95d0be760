"""Draws edges from the binary concrete distribution: Gumbel-softmax for the two classes "edge" and "no edge".

A pair with logit θ is an edge with probability σ(θ). If u is uniform in (0, 1), then θ + log u − log(1 − u) is above 0
with exactly this probability (the difference of two Gumbel variables is logistic). The relaxed weight is the sigmoid of
this sum divided by the temperature τ; its gradient reaches θ.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.replica import sigmoid
from gumbel_mpnn.util.errors import UserError

SMALLEST = torch.finfo(torch.float32).eps
"""Distance of uniform numbers from 0 and 1: the noise stays finite, below 16 in absolute value."""


def sample(theta: Tensor, tau: Tensor | float, rng: ReplicaRNG, *, hard: bool = True) -> Tensor:
    """Draw a weight for every pair, [R, P] → [R, P], at a temperature above 0, a tensor if it changes during training.

    If `hard`, weights are 0 and 1 with the gradient of the relaxed weights (straight-through).
    """
    if not isinstance(tau, Tensor) and not tau > 0:
        raise UserError(f"the temperature tau must be above 0, but is {tau}")
    uniform = rng.noise(theta.shape[1]).clamp_(SMALLEST, 1 - SMALLEST)
    noisy = theta + (torch.log(uniform) - torch.log1p(-uniform))
    soft = sigmoid(noisy / tau).to(theta.dtype)  # the noise has 32 bits, logits may have 16
    if not hard:
        return soft
    drawn = (noisy > 0).to(theta.dtype)
    return drawn + (soft - soft.detach())
