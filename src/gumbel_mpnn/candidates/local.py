"""Local candidates: the most similar nodes of each node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import check_at_least
from gumbel_mpnn.candidates.approximate import nearest_approximately
from gumbel_mpnn.candidates.base import candidates
from gumbel_mpnn.candidates.blocks import blocks_of
from gumbel_mpnn.candidates.nearest import nearest
from gumbel_mpnn.candidates.similarity import BySimilarity
from gumbel_mpnn.graph import PairGraph


@candidates.register("local")
class Local(BySimilarity):
    """For each node, the `per_node` most similar nodes that are not its neighbors.

    A node can be chosen by many others, far more often by dot product than by cosine. Only nodes of similarity above 0
    are chosen. Ties are broken at random, but always in the same way.

    Args:
        per_node: Number of nodes that each node chooses; a pair that both nodes choose counts once.
        similarity: `cosine`, or `dot` as in the paper.
        on: Attribute of the graph with the embeddings [N, D].
        search: `exact`; `approximate`, which is exact within `parts` parts of the graph and approximate across them,
            for cosine alone; or `auto`: approximate if there are several parts and more than 50,000 nodes.
        parts: Number of parts, which `fit` sets to `train.partitions`.
    """

    space: ClassVar[Mapping[str, Any]] = {"per_node": [3, 5, 10]}

    def __init__(
        self, per_node: int = 5, similarity: str = "cosine", on: str = "x", search: str = "auto", parts: int = 1
    ) -> None:
        check_at_least(1, per_node=per_node)
        super().__init__(similarity, on, search, parts)
        self.per_node = per_node

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs of each node and the nodes it chose, int64 [2, K]."""
        if self.is_approximate(data):
            chosen = nearest_approximately(self.embeddings(data), graph, self.per_node, self.parts)
        else:
            chosen = nearest(self.embeddings(data), graph, blocks_of(data), self.per_node)
        node, place = (chosen >= 0).nonzero().T
        return torch.stack([node, chosen[node, place]])
