"""Finding settings on validation."""

from gumbel_mpnn.tuning.search import Tables, Trial, choices, draws, search

__all__ = ["Tables", "Trial", "choices", "draws", "search"]
