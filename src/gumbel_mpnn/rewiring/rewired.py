"""A graph as a rewiring left it: the fixed pairs, how likely each is, and the weights of one draw."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gumbel_mpnn.graph import PairGraph


@dataclass(frozen=True, eq=False)
class RewiredGraph:
    """The pairs of `graph` with what a scorer and a sampler made of them."""

    graph: PairGraph
    theta: Tensor
    """Logit of every pair's probability, [R, P]."""
    weight: Tensor
    """Weight of every pair in this draw, [R, P]."""

    @property
    def probability(self) -> Tensor:
        """Probability of every pair, [R, P]."""
        return self.theta.sigmoid()
