"""Candidate strategies: PyG transforms that add pairs of nodes that may become edges."""

from gumbel_mpnn.candidates.base import CandidateStrategy, candidates, for_batch
from gumbel_mpnn.candidates.cache import Cached
from gumbel_mpnn.candidates.global_ import Global
from gumbel_mpnn.candidates.local import Local
from gumbel_mpnn.candidates.ricci import Ricci
from gumbel_mpnn.candidates.two_hop import TwoHop

__all__ = ["Cached", "CandidateStrategy", "Global", "Local", "Ricci", "TwoHop", "candidates", "for_batch"]
