"""Baselines: backbones on a graph that is rewired without learning."""

from gumbel_mpnn.baselines.backbone_model import BackboneModel
from gumbel_mpnn.baselines.drop_edge import DropEdge
from gumbel_mpnn.baselines.frozen import Frozen
from gumbel_mpnn.baselines.random_edges import RandomEdges
from gumbel_mpnn.baselines.sdrf import SDRF, SDRFModel, SDRFOfEachGraph

__all__ = ["SDRF", "BackboneModel", "DropEdge", "Frozen", "RandomEdges", "SDRFModel", "SDRFOfEachGraph"]
