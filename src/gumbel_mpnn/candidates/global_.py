"""Global candidates: the most similar pairs of the whole graph."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import check_at_least
from gumbel_mpnn.candidates.approximate import closest_pairs_approximately
from gumbel_mpnn.candidates.base import candidates
from gumbel_mpnn.candidates.blocks import blocks_of
from gumbel_mpnn.candidates.closest_pairs import closest_pairs
from gumbel_mpnn.candidates.similarity import BySimilarity
from gumbel_mpnn.graph import PairGraph


@candidates.register("global")
class Global(BySimilarity):
    """Most similar pairs of the graph, or of each graph of a batch.

    Only pairs of similarity above 0 are chosen. Ties are broken at random, but always in the same way.

    Args:
        pairs: Number of pairs per graph; 0 for twice the number of undirected edges.
        similarity: `cosine`, or `dot` as in the paper.
        on: Attribute of the graph with the embeddings [N, D].
        search: `exact`; `approximate`, which is exact within `parts` parts of the graph and approximate across them,
            for cosine alone; or `auto`: approximate if there are several parts and more than 50,000 nodes.
        parts: Number of parts, which `fit` sets to `train.partitions`.
    """

    def __init__(
        self, pairs: int = 0, similarity: str = "cosine", on: str = "x", search: str = "auto", parts: int = 1
    ) -> None:
        check_at_least(0, pairs=pairs)
        super().__init__(similarity, on, search, parts)
        self.pairs = pairs

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Most similar pairs, int64 [2, K]."""
        if self.is_approximate(data):
            wanted = self.pairs or 2 * graph.num_pairs
            return closest_pairs_approximately(self.embeddings(data), graph, wanted, self.parts)
        batch = data.get("batch")
        first = graph.pair_index[0]
        if batch is None:
            edges = first.new_tensor([graph.num_pairs])
        else:
            edges = torch.bincount(batch[first], minlength=int(batch[-1]) + 1)
        quota = torch.full_like(edges, self.pairs) if self.pairs else 2 * edges
        return closest_pairs(self.embeddings(data), graph, blocks_of(data), quota)
