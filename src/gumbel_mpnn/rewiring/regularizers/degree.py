"""Degree: every node should have enough neighbors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from gumbel_mpnn.nn.each_replica import total
from gumbel_mpnn.rewiring.regularizers.base import Regularizer, regularizers
from gumbel_mpnn.rewiring.regularizers.soft_labels import weighted_degree
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph

ABOVE_MEAN = 5.0
"""Increase of the mean degree in the paper's degree experiment."""


@regularizers.register("degree", "dc")
class Degree(Regularizer):
    """The paper's L_deg: mean over nodes of ReLU(d* − d_i + δ)², where d_i is the weighted (in-)degree.

    Args:
        weight: λ.
        target: d*, the degree that every node should reach; 0 for 5 above the mean degree of the given graph, as in the
            paper's degree experiment. The paper gives no other value; the default 5 affects nodes with few neighbors.
        tolerance: δ; as in the paper, there is no penalty from the degree d* + δ on.
        two_sided: Leave out the ReLU, so that degrees above d* + δ are penalised as well.
    """

    space: ClassVar[Mapping[str, Any]] = {"target": [0.0, 5.0]}

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
            return graph.weight.sum(-1)  # 0, since there are no pairs
        target = self.target or given_degree(graph) + ABOVE_MEAN
        missing = target + self.tolerance - weighted_degree(graph)
        missing = missing if self.two_sided else missing.relu()
        return total(missing.square()) / missing.shape[-1]


def given_degree(graph: RewiredGraph) -> Tensor:
    """Mean degree of the given graph, a scalar tensor, so that the device need not be waited for."""
    pairs = graph.graph
    weight = pairs.times_given(pairs.is_original.to(graph.weight.dtype))
    return weight.sum() * (len(pairs.pair_arcs) / pairs.num_nodes)
