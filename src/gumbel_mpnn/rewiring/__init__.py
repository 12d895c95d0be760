"""The paper's model: score all pairs, draw a graph, classify its nodes and penalise the rewiring."""

from gumbel_mpnn.rewiring import regularizers
from gumbel_mpnn.rewiring.gumbel_mpnn import GumbelMPNN
from gumbel_mpnn.rewiring.learned_graph import Changes, as_data, changes
from gumbel_mpnn.rewiring.losses import agreement
from gumbel_mpnn.rewiring.rewirer import RewiredGraph
from gumbel_mpnn.rewiring.wrap import Rewired

__all__ = [
    "Changes",
    "GumbelMPNN",
    "Rewired",
    "RewiredGraph",
    "agreement",
    "as_data",
    "changes",
    "regularizers",
]
