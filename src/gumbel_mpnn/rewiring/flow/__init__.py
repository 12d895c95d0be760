"""Stochastic discrete Ricci flow, step by step, exact and incremental."""

from gumbel_mpnn.rewiring.flow.flow import Flow

__all__ = ["Flow"]
