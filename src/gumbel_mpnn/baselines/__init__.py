"""Baselines: backbones on a graph that is rewired without learning, and defenses against wrong edges."""

from gumbel_mpnn.baselines.backbone_model import BackboneModel
from gumbel_mpnn.baselines.controls import Frozen, RandomEdges
from gumbel_mpnn.baselines.drop_edge import DropEdge
from gumbel_mpnn.baselines.gnn_guard import GNNGuard
from gumbel_mpnn.baselines.jaccard import Jaccard, JaccardModel
from gumbel_mpnn.baselines.knn import KNNModel
from gumbel_mpnn.baselines.sdrf import SDRF, SDRFModel, SDRFOfEachGraph
from gumbel_mpnn.baselines.soft_median import SoftMedian

__all__ = [
    "SDRF",
    "BackboneModel",
    "DropEdge",
    "Frozen",
    "GNNGuard",
    "Jaccard",
    "JaccardModel",
    "KNNModel",
    "RandomEdges",
    "SDRFModel",
    "SDRFOfEachGraph",
    "SoftMedian",
]
