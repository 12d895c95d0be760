"""Layers and models with a replica axis."""

from gumbel_mpnn.nn.appnp import APPNP
from gumbel_mpnn.nn.backbone import GAT, GCN, MLP, Backbone, GraphSAGE, backbones, make_backbone
from gumbel_mpnn.nn.features import SparseFeatures, as_features
from gumbel_mpnn.nn.model import TrainableModel, models
from gumbel_mpnn.nn.replica_rng import ReplicaRNG, derive_seed

__all__ = [
    "APPNP",
    "GAT",
    "GCN",
    "MLP",
    "Backbone",
    "GraphSAGE",
    "ReplicaRNG",
    "SparseFeatures",
    "TrainableModel",
    "as_features",
    "backbones",
    "derive_seed",
    "make_backbone",
    "models",
]
