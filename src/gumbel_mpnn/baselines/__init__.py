"""Baselines: backbones on a graph that is rewired without learning, and controls of Gumbel-MPNN."""

from gumbel_mpnn.baselines.controls import Frozen, RandomEdges
from gumbel_mpnn.baselines.drop_edge import DropEdge, Jaccard
from gumbel_mpnn.baselines.sdrf import SDRF, SDRFModel

__all__ = ["SDRF", "DropEdge", "Frozen", "Jaccard", "RandomEdges", "SDRFModel"]
