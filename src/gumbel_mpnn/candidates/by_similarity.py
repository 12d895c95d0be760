"""What strategies share that choose pairs by the similarity of their nodes."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.candidates.base import CandidateStrategy
from gumbel_mpnn.candidates.similarity import check_similarity, embeddings


class BySimilarity(CandidateStrategy):
    """A strategy that compares nodes.

    Args:
        similarity: `cosine`, or `dot` (the paper's).
        on: The attribute of the graph with the embeddings [N, D].
    """

    def __init__(self, similarity: str, on: str) -> None:
        check_similarity(similarity)
        self.similarity, self.on = similarity, on

    @property
    def reads(self) -> tuple[str, ...]:
        """The embeddings."""
        return (self.on,)

    def embeddings(self, data: Data) -> Tensor:
        """Float32 [N, D]; their dot products order all pairs by similarity."""
        return embeddings(data, self.on, self.similarity)
