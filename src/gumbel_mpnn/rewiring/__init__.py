"""The paper's model: score all pairs, draw a graph, classify its nodes and penalise the rewiring."""

from gumbel_mpnn.rewiring import regularizers
from gumbel_mpnn.rewiring.changes import Changes, changes
from gumbel_mpnn.rewiring.gumbel_mpnn import GumbelMPNN
from gumbel_mpnn.rewiring.rewired import Rewired
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph

__all__ = ["Changes", "GumbelMPNN", "Rewired", "RewiredGraph", "changes", "regularizers"]
