"""Finding settings on validation."""

from gumbel_mpnn.tuning.search import Trial, choices, draws, search

__all__ = ["Trial", "choices", "draws", "search"]
