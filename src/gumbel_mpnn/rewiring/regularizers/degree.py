"""Degree: every node has enough neighbors."""

from __future__ import annotations

from torch import Tensor

from gumbel_mpnn.rewiring.regularizers.base import Regularizer, regularizers
from gumbel_mpnn.rewiring.regularizers.soft_labels import weighted_degree
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph

ABOVE_MEAN = 5.0
"""By how much the paper's degree experiment raises the mean."""


@regularizers.register("degree", "dc")
class Degree(Regularizer):
    """L_deg: mean over nodes of ReLU(d* − d_i + δ)², d_i the weighted (in-)degree; the paper's degree regularizer.

    Args:
        weight: λ.
        target: d*, the degree every node should reach; 0 for the mean degree of the given graph plus 5, which the
            paper learns in one experiment. It names no value otherwise: 5 lifts the nodes that have few neighbors.
        tolerance: δ; as the paper has it, it raises the degree at which a node is left alone to d* + δ.
        two_sided: Leave out the ReLU, so that degrees above d* + δ are drawn down to it as well.
    """

    def __init__(
        self, weight: float = 1.0, *, target: float = 5.0, tolerance: float = 0.0, two_sided: bool = False
    ) -> None:
        super().__init__(weight)
        self.target = target
        self.tolerance = tolerance
        self.two_sided = two_sided

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_deg of every replica, [R]."""
        if graph.graph.num_nodes == 0:
            return graph.weight.sum(-1)  # of no pairs: 0
        target = self.target or given_degree(graph) + ABOVE_MEAN
        missing = target + self.tolerance - weighted_degree(graph)
        return (missing if self.two_sided else missing.relu()).square().mean(-1)


def given_degree(graph: RewiredGraph) -> Tensor:
    """The mean degree of the graph before it was rewired, a scalar that stays on its device."""
    pairs = graph.graph
    weight = pairs.times_given(pairs.is_original.to(graph.weight.dtype))
    return weight.sum() * (len(pairs.pair_arcs) / pairs.num_nodes)
