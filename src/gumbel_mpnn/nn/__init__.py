"""Layers and models with a replica axis."""

from gumbel_mpnn.nn.backbone import GAT, GCN, MLP, Backbone, GraphSAGE, backbones, make_backbone
from gumbel_mpnn.nn.features import SparseFeatures, as_features
from gumbel_mpnn.nn.streams import Streams, derive_seed

__all__ = [
    "GAT",
    "GCN",
    "MLP",
    "Backbone",
    "GraphSAGE",
    "SparseFeatures",
    "Streams",
    "as_features",
    "backbones",
    "derive_seed",
    "make_backbone",
]
