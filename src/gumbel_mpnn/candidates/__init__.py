"""Candidate strategies: PyG transforms that add pairs of nodes that may become edges."""

from gumbel_mpnn.candidates.strategies import (
    CandidateStrategy,
    Global,
    Local,
    Ricci,
    TwoHop,
    candidates,
    for_batch,
    with_candidates,
)

__all__ = ["CandidateStrategy", "Global", "Local", "Ricci", "TwoHop", "candidates", "for_batch", "with_candidates"]
