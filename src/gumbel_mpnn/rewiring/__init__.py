"""Rewiring: which pairs of nodes may be edges, how likely each is, and drawing them."""

from gumbel_mpnn.rewiring import candidates, regularizers
from gumbel_mpnn.rewiring.gumbel_mpnn import GumbelMPNN
from gumbel_mpnn.rewiring.rewired import RewiredGraph
from gumbel_mpnn.rewiring.rewirer import Rewirer

__all__ = ["GumbelMPNN", "RewiredGraph", "Rewirer", "candidates", "regularizers"]
