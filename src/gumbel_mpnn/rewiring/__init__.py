"""Rewiring: which pairs of nodes may be edges, how likely each is, and drawing them."""

from gumbel_mpnn.rewiring import candidates, regularizers
from gumbel_mpnn.rewiring.drop_edge import DropEdge
from gumbel_mpnn.rewiring.gumbel_mpnn import GumbelMPNN
from gumbel_mpnn.rewiring.on_backbone import OnBackbone
from gumbel_mpnn.rewiring.rewired import Rewired
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph
from gumbel_mpnn.rewiring.sdrf import SDRF

__all__ = [
    "SDRF",
    "DropEdge",
    "GumbelMPNN",
    "OnBackbone",
    "Rewired",
    "RewiredGraph",
    "candidates",
    "regularizers",
]
